/* neighbours.c - see neighbours.h. Runs in the program's threads, inside a hook scope, and where
 * MEMSHIM_YIELD=thread in one thread of memshim's own, which sleeps until others ask. */
#include "hooks/serve/neighbours.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/options/options.h"
#include "base/thread/cancel.h"
#include "hooks/hook_scope.h"
#include "hooks/serve/host_floor.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/serve.h"
#include "hooks/serve/serve_handles.h"
#include "pool/stream/driver_frees.h"
#include "quota/quota.h"
#include "record/file/process.h"
#include "record/footprint/footprints.h"
#include "share/asks.h"
#include "share/member.h"

enum { WHY_BYTES = 400, ANSWERS_MOST = 4, JOIN_NAPS_MOST = 400, BUSY_NS = 1000000 };
/* Who is at work answers within milliseconds; who is not delays others by this, once. */
#define ANSWER_MOST_MS 1000u
#define AWAIT_NS       1000000000u

enum { UNMET, MEETING, MET };
static _Atomic int met[MS_DEVICES_MAX];
static _Atomic bool answering[MS_DEVICES_MAX];
static _Atomic int met_count;
static char group[MS_SHARE_GROUP_PATH];

/* --- the share ------------------------------------------------------------------------------------------ */

static bool share_take(int device, uint64_t bytes, uint64_t taken_bytes)
{
    struct ms_admission *admission = ms_share_held(device, taken_bytes);
    uint64_t missing;

    return !admission || ms_admission_take(admission, bytes, &missing);
}

static void share_note(int device, uint64_t bytes)
{
    struct ms_admission *admission = ms_share_of(device);

    if (admission)
        ms_admission_note(admission, bytes);
}

static void share_give(int device, uint64_t bytes)
{
    struct ms_admission *admission = ms_share_of(device);

    if (admission)
        ms_admission_give(admission, bytes);
}

static uint64_t share_room(int device)
{
    struct ms_admission *admission = ms_share_of(device);

    if (!admission)
        return UINT64_MAX;
    ms_admission_sweep(admission);
    return ms_admission_room(admission);
}

static const struct ms_quota_bound others = {
    .take = share_take, .note = share_note, .give_back = share_give, .room = share_room};

/* True if it is the share that leaves less than the bytes. */
static bool share_refuses(int device, uint64_t bytes)
{
    return ms_quota_room_of(device, MS_QUOTA_OTHERS) < bytes;
}

/* --- a place on the page -------------------------------------------------------------------------------- */

static bool has_share(void)
{
    return *ms_option_text(MS_OPT_SHARE) != '\0';
}

static bool gives_way(void)
{
    return ms_option_int(MS_OPT_YIELD) != MS_YIELD_OFF;
}

static bool has_identity(const uint8_t uuid[16])
{
    unsigned sum = 0;

    for (int i = 0; i < 16; i++)
        sum |= uuid[i];
    return sum != 0;
}

/* Without a share nobody has asked for it, and a process that finds no page is as it always was. */
static void say_joined(int device, enum ms_share_joined joined, const char *why)
{
    enum ms_log_level level = has_share() || *ms_option_text(MS_OPT_SHARE_GROUP) ? MS_LOG_WARN : MS_LOG_INFO;

    if (joined == MS_SHARE_ALONE)
        ms_diagnostic(level, "share", "%s %d is not shared with other processes: %s", ms_device_api(device),
                      ms_device_index(device), why);
    else if (joined == MS_SHARE_UNGUARANTEED)
        ms_diagnostic(level, "share", "nothing of %s %d is kept for this process: %s", ms_device_api(device),
                      ms_device_index(device), why);
}

/* As the driver says; UINT64_MAX where the calling thread's context is another device's. */
static uint64_t free_of(const struct ms_gpu *gpu, int device)
{
    size_t left = 0, total = 0;
    uint64_t context;

    if (ms_gpu_current(gpu, &context) != device || !ms_gpu_memory(gpu, &left, &total))
        return UINT64_MAX;
    return ms_host_floor_free(device, left);
}

static void meet(const struct ms_gpu *gpu, int device)
{
    struct ms_gpu_description about = {.total_bytes = 0};
    struct ms_share_wish wish = {.device = device, .used_bytes = ms_quota_taken(device)};
    char why[WHY_BYTES] = "its driver does not say which one it is";
    enum ms_share_joined joined = MS_SHARE_ALONE;
    int cancel_state = ms_cancel_hold();

    ms_gpu_describe(gpu, device, &about);
    wish.total_bytes = about.total_bytes;
    memcpy(wish.uuid, about.uuid, sizeof wish.uuid);
    wish.most_bytes = ms_limit_of(about.total_bytes);
    if (has_share()) {
        uint64_t most;
        ms_option_pair(MS_OPT_SHARE, about.total_bytes, &wish.guarantee_bytes, &most);
        if (wish.guarantee_bytes > wish.most_bytes)
            wish.guarantee_bytes = wish.most_bytes;
    }
    wish.free_bytes = free_of(gpu, device);
    wish.directory = ms_share_group(group, sizeof group) ? group : NULL;
    if (about.total_bytes && has_identity(about.uuid))
        joined = ms_share_join(&wish, why, sizeof why);
    if (joined != MS_SHARE_ALONE && has_share())
        ms_quota_ask(device, MS_QUOTA_OTHERS, &others);
    say_joined(device, joined, why);
    ms_cancel_release(cancel_state);
}

/* --- asking --------------------------------------------------------------------------------------------- */

static void count(unsigned which, uint64_t change)
{
    atomic_fetch_add_explicit(&ms_process()->neighbours[which], change, memory_order_relaxed);
}

/* The share has refused the bytes, by what others without a place had when the driver was asked last. True if
 * it does no more. */
static bool has_room_by_now(const struct ms_gpu *gpu, int device, uint64_t bytes)
{
    /* where nobody knows what they have, the vendor decides */
    ms_neighbours_tell_free(device, free_of(gpu, device));
    return !share_refuses(device, bytes);
}

bool ms_neighbours_ask(const struct ms_gpu *gpu, int device, uint64_t bytes)
{
    struct ms_admission *admission = ms_share_of(device);
    uint64_t wait_ms = (uint64_t)ms_option_int(MS_OPT_OOM_WAIT_MS);
    bool is_refused = share_refuses(device, bytes);
    struct ms_asks_result result;

    if (!admission || !gives_way() || ms_quota_own_room(device) < bytes)
        return false;
    if (is_refused && has_room_by_now(gpu, device, bytes))
        return true;
    wait_ms = wait_ms < ANSWER_MOST_MS ? wait_ms : ANSWER_MOST_MS;
    result = ms_asks_make(admission, bytes, is_refused, wait_ms * 1000000u);
    count(MS_NEIGHBOURS_ASKED, result.asked > 0);
    count(MS_NEIGHBOURS_HEARD, result.heard);
    count(MS_NEIGHBOURS_BROUGHT, result.brought_bytes);
    return result.heard > 0 || (is_refused && has_room_by_now(gpu, device, bytes));
}

/* --- being asked ---------------------------------------------------------------------------------------- */

static uint64_t give_back(int device, uint64_t bytes)
{
    uint64_t given;

    if (!ms_serve_is_on() || !bytes || !gives_way())
        return 0;
    given = ms_recycled_give_back(device);
    if (given < bytes)
        given += ms_pool_give_back(device, bytes - given);
    ms_driver_frees_settle(device);
    return given;
}

/* One thread at a time: an answer says that all that was wanted by then has gone back. Who comes meanwhile
 * leaves it to that one, which looks again. */
static void answer_on(int device)
{
    struct ms_admission *admission = ms_share_of(device);
    uint64_t wanted, given;
    uint32_t asks;

    if (!admission || !ms_asks_wait_here(admission) || atomic_exchange(&answering[device], true))
        return;
    for (int turn = 0; turn < ANSWERS_MOST && ms_asks_wait_here(admission); turn++) {
        wanted = ms_asks_hear(admission, &asks);
        given = give_back(device, wanted);
        count(MS_NEIGHBOURS_ASKED_HERE, 1);
        count(MS_NEIGHBOURS_GIVEN, given);
        ms_asks_answered(admission, asks, given);
    }
    atomic_store(&answering[device], false);
}

void ms_neighbours_answer(void)
{
    int cancel_state = ms_cancel_hold();

    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (atomic_load_explicit(&met[device], memory_order_acquire) == MET)
            answer_on(device);
    }
    ms_cancel_release(cancel_state);
}

/* Every few milliseconds, in a thread that asks for the time. */
static void look_for_asks(void)
{
    struct ms_admission *admission;

    if (!atomic_load_explicit(&met_count, memory_order_relaxed))
        return;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (atomic_load_explicit(&met[device], memory_order_acquire) == MET &&
            (admission = ms_share_of(device)) != NULL && ms_asks_wait_here(admission))
            atomic_fetch_or_explicit(&ms_serve_due, MS_SERVE_ASKED, memory_order_relaxed);
    }
}

/* It lives as long as the process has its place, and dies in a fork, where the child begins another. */
static void *answer_for_ever(void *arg)
{
    int device = (int)(intptr_t)arg;
    struct ms_admission *admission;
    struct ms_hook_scope scope;

    while ((admission = ms_share_of(device)) != NULL) {
        ms_asks_await(admission, AWAIT_NS);
        ms_hook_scope_enter(&scope);
        ms_neighbours_answer();
        ms_hook_scope_leave(&scope);
        if (ms_asks_wait_here(admission)) /* another thread is at it */
            ms_clock_sleep(BUSY_NS);
    }
    return NULL;
}

static void start_thread(int device)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, answer_for_ever, (void *)(intptr_t)device) == 0)
        pthread_detach(thread);
    else
        ms_diagnostic(MS_LOG_WARN, "share",
                      "no thread can be started: memory goes back at the next call instead");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- from outside --------------------------------------------------------------------------------------- */

void ms_neighbours_start(void)
{
    ms_clock_watch(look_for_asks);
}

void ms_neighbours_meet(const struct ms_gpu *gpu, int device)
{
    int state = UNMET;
    uint64_t nap = 0;

    if (device < 0 || device >= MS_DEVICES_MAX || (!gives_way() && !has_share()))
        return;
    if (!atomic_compare_exchange_strong(&met[device], &state, MEETING)) {
        /* what others take meanwhile would not be on the page */
        for (int i = 0; i < JOIN_NAPS_MOST && atomic_load(&met[device]) == MEETING; i++)
            ms_clock_sleep_longer(&nap);
        return;
    }
    meet(gpu, device);
    atomic_fetch_add(&met_count, 1);
    atomic_store(&met[device], MET);
    if (ms_option_int(MS_OPT_YIELD) == MS_YIELD_THREAD && ms_share_of(device))
        start_thread(device);
}

void ms_neighbours_tell(int device, uint64_t cached_bytes)
{
    struct ms_admission *admission = ms_share_of(device);
    struct ms_share_row *row;

    if (!admission)
        return;
    row = &admission->page->rows[admission->row];
    if (!ms_quota_is_asked(device, MS_QUOTA_OTHERS)) /* else each request has told it */
        atomic_store_explicit(&row->used_bytes, ms_quota_taken(device), memory_order_relaxed);
    atomic_store_explicit(&row->cached_bytes, cached_bytes, memory_order_relaxed);
    atomic_store_explicit(&row->contexts_bytes, ms_ledger_taken(device), memory_order_relaxed);
}

void ms_neighbours_tell_free(int device, uint64_t free_bytes)
{
    struct ms_admission *admission = ms_share_of(device);

    if (!admission)
        return;
    ms_admission_sweep(admission);
    ms_admission_tell_free(admission->page, free_bytes);
}

uint64_t ms_neighbours_use(const struct ms_gpu *gpu, int device)
{
    if (ms_limit_or_service())
        ms_neighbours_meet(gpu, device);
    return ms_share_of(device) ? ms_admission_others_use(ms_share_of(device)) : 0;
}

uint64_t ms_neighbours_have(int device)
{
    const struct ms_admission *admission = ms_share_of(device);

    return admission ? ms_admission_others_have(admission) : 0;
}

static void neighbours_reset(void)
{
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        atomic_store_explicit(&met[device], UNMET, memory_order_relaxed);
        atomic_store_explicit(&answering[device], false, memory_order_relaxed);
    }
    atomic_store_explicit(&met_count, 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_SERVICE, neighbours_reset);
