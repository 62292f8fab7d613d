/* host_floor.c - see host_floor.h. Runs in the program's threads, inside a hook scope. One thread at a time
 * decides (a lock of its own), under which the vendor is never called.
 *
 * Announced first, looked at then, as a share is (share/admission.h): what is asked for is on the page before
 * the others' words, and then the host's memory, are read. So of two processes at least one sees the other,
 * or its memory. */
#include "hooks/serve/host_floor.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/options/options.h"
#include "base/thread/cancel.h"
#include "quota/host.h"
#include "quota/quota.h"
#include "share/member.h"

/* Of a share of the host's memory at least this: what a system needs to go on answering. */
#define FLOOR_LEAST_BYTES ((uint64_t)1 << 30)
/* A request that is small beside what the last look left needs no look of its own, for a while: so the files
 * are read a hundred times a second, or once for each larger request. All 127 processes of a page together
 * take no more than half of what was left in that way. */
#define SMALL_PART  256
#define LOOK_OLD_NS 10000000u
enum { NAPS_MOST = 8 };

static struct ms_lock floor_lock = MS_LOCK_INIT(MS_RANK_SHARE);
static _Atomic uint64_t asked_bytes; /* of the vendor, and not answered */
/* The last look, and what was let through since; the lock's. */
static uint64_t look_ns, look_left, since_bytes;

bool ms_host_floor_is_set(void)
{
    return ms_option_size(MS_OPT_HOST_FLOOR, UINT64_MAX / 200) != UINT64_MAX;
}

static uint64_t floor_of(uint64_t total_bytes)
{
    uint64_t bytes = ms_option_size(MS_OPT_HOST_FLOOR, total_bytes);

    return ms_option_is_percent(MS_OPT_HOST_FLOOR) && bytes < FLOOR_LEAST_BYTES ? FLOOR_LEAST_BYTES : bytes;
}

/* So much can be asked for in all; `there_bytes` is what the process has of the device. Under the lock. */
static uint64_t look(uint64_t there_bytes)
{
    struct ms_host host;
    int cancel_state = ms_cancel_hold();
    bool known = ms_host_read("", &host);
    uint64_t floor, left, in_group;

    ms_cancel_release(cancel_state);
    if (!known)
        return UINT64_MAX;
    floor = floor_of(host.total_bytes);
    left = host.available_bytes > floor ? host.available_bytes - floor : 0;
    if (host.group_bytes == UINT64_MAX)
        return left;
    in_group = host.group_bytes > there_bytes ? host.group_bytes - there_bytes : 0;
    return in_group < left ? in_group : left;
}

static void announce(int device, uint64_t bytes)
{
    struct ms_admission *admission = ms_share_of(device);

    atomic_fetch_add(&asked_bytes, bytes);
    if (admission)
        ms_admission_asks(admission, bytes);
}

static void take_back(int device, uint64_t bytes)
{
    struct ms_admission *admission = ms_share_of(device);

    atomic_fetch_sub(&asked_bytes, bytes);
    if (admission)
        ms_admission_answered(admission, bytes);
}

/* Before the host's memory is read: what others were given meanwhile is in that. */
static uint64_t asked_by_others(int device, bool *before_us_p)
{
    struct ms_admission *admission = ms_share_of(device);

    *before_us_p = false;
    return admission ? ms_admission_others_ask(admission, before_us_p) : 0;
}

static uint64_t there(int device)
{
    uint64_t taken = ms_quota_taken(device), asked = atomic_load(&asked_bytes);

    return taken > asked ? taken - asked : 0;
}

/* True if what is announced fits. With others' requests in the way, whoever has the lower row stays
 * announced, and the others make room for a moment: so one of them gets it. */
static bool fits(int device, uint64_t bytes)
{
    uint64_t nap = 0, others, asked;
    bool others_first;

    for (int naps = 0;; naps++) {
        if (naps == 1 && ms_share_of(device))
            ms_admission_sweep(ms_share_of(device)); /* who was killed asks for nothing */
        others = asked_by_others(device, &others_first);
        asked = atomic_load(&asked_bytes);
        look_left = look(there(device));
        look_ns = ms_clock_ns();
        since_bytes = bytes;
        if (asked <= look_left && others <= look_left - asked)
            return true;
        if (!others || naps >= NAPS_MOST)
            return false;
        if (others_first)
            take_back(device, bytes);
        ms_clock_sleep_longer(&nap);
        if (others_first)
            announce(device, bytes);
    }
}

static bool is_small(uint64_t bytes)
{
    bool small = look_ns && ms_clock_ns() - look_ns < LOOK_OLD_NS && since_bytes < look_left / SMALL_PART &&
                 bytes < look_left / SMALL_PART - since_bytes;

    since_bytes += small ? bytes : 0;
    return small;
}

static bool floor_take(int device, uint64_t bytes, uint64_t taken_bytes)
{
    bool taken;

    (void)taken_bytes;
    ms_lock(&floor_lock);
    announce(device, bytes);
    taken = is_small(bytes) || fits(device, bytes);
    if (!taken)
        take_back(device, bytes);
    ms_unlock(&floor_lock);
    return taken;
}

static uint64_t floor_room(int device)
{
    bool others_first;
    uint64_t asked, left;

    ms_lock(&floor_lock);
    asked = atomic_load(&asked_bytes) + asked_by_others(device, &others_first);
    left = look(there(device));
    ms_unlock(&floor_lock);
    return left > asked ? left - asked : 0;
}

static const struct ms_quota_bound host = {.take = floor_take, .answered = take_back, .room = floor_room};

/* --- which devices --- */

static bool is_integrated(const struct ms_gpu *gpu, int index)
{
    CUdevice device = index;
    int integrated = 0;

    return gpu->device_attribute && gpu->device_get && gpu->device_get(&device, index) == CUDA_SUCCESS &&
           gpu->device_attribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device) == CUDA_SUCCESS &&
           integrated;
}

bool ms_host_floor_meet(const struct ms_gpu *gpu, int device)
{
    bool any = false;

    if (!ms_host_floor_is_set() || ms_gpu_maker(gpu) != MS_MAKER_CUDA)
        return false;
    for (int index = 0; index < ms_device_count(MS_MAKER_CUDA); index++) {
        if (!is_integrated(gpu, index))
            continue;
        any = true;
        if (ms_device_number(MS_MAKER_CUDA, index) == device)
            ms_quota_ask(device, MS_QUOTA_HOST, &host);
    }
    return any;
}

uint64_t ms_host_floor_free(int device, uint64_t free_bytes)
{
    return ms_quota_is_asked(device, MS_QUOTA_HOST) ? floor_room(device) : free_bytes;
}

static void host_floor_reset(void)
{
    ms_lock_reset(&floor_lock);
    atomic_store(&asked_bytes, 0);
    look_ns = look_left = since_bytes = 0;
}
MS_AT_FORK(MS_FORK_SERVICE, host_floor_reset);
