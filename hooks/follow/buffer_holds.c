/* buffer_holds.c - what is registered, by whom; see buffers.h.
 *
 * Runs in the program's threads, inside the frame of the call. Owns tables under a lock (MS_RANK_EXPORT) that
 * is never held across a call of the vendor's or of the pool's. Allocates from the arena, some at once.
 *
 * A registration keeps a buffer of ours from being used again, and is counted in the record for as long as it
 * lasts: what is left in the end is a finding. Handle 0: not known, or not before the end of the group in
 * which `thread` registered it. The library writes it to `out` then, which is looked at at that moment alone.
 * What stays unknown is held as long as the holder lives. */
#include "hooks/follow/buffers.h"

#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "hooks/observe/invalid_free.h"
#include "pool/external/external.h"

enum { BUCKETS = 4096, CHUNK = 64, HOLDS_MAX = 1 << 16 };

static struct hold {
    struct hold *next;
    uint64_t holder, handle, bytes;
    uint64_t address; /* of a buffer of ours, which is held; or 0 */
    const void *out;
    uint32_t thread;
    uint32_t row; /* where the record counts it; 0: nowhere */
} * buckets[BUCKETS], *waiting_holds, *spare;
static uint32_t made;
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_EXPORT);
static MS_TLS unsigned groups, waiting; /* that the thread is in; what it registered in them */

static struct hold **buffer_holds_bucket_of(uint64_t holder, uint64_t handle)
{
    return &buckets[((holder >> 4 ^ handle >> 3) * 0x9e3779b97f4a7c15u >> 52) % BUCKETS];
}

static void buffer_holds_put(struct hold **list, struct hold *hold)
{
    hold->next = *list;
    *list = hold;
}

static struct hold *buffer_holds_take(struct hold **link)
{
    struct hold *hold = *link;

    *link = hold->next;
    return hold;
}

/* Under the lock; NULL without memory, or of too many. */
static struct hold *take_spare(void)
{
    struct hold *chunk;

    if (!spare && made < HOLDS_MAX && (chunk = ms_arena_alloc(CHUNK * sizeof(*chunk))) != NULL) {
        made += CHUNK;
        for (unsigned i = 0; i < CHUNK; i++)
            buffer_holds_put(&spare, &chunk[i]);
    }
    return spare ? buffer_holds_take(&spare) : NULL;
}

/* No lock held: the registration is over. */
static void buffer_holds_end(const struct hold *hold)
{
    if (hold->row)
        ms_ledger_invalid_free_undone(hold->row, hold->bytes);
    if (hold->address)
        ms_external_release(hold->address);
}

static void note_hold(const struct hold *hold, bool is_waiting)
{
    struct hold *noted;

    ms_lock(&lock);
    noted = take_spare();
    if (noted) {
        *noted = *hold;
        buffer_holds_put(is_waiting ? &waiting_holds : buffer_holds_bucket_of(hold->holder, hold->handle),
                         noted);
    }
    ms_unlock(&lock);
    if (noted)
        return;
    if (hold->address)
        ms_external_spend(hold->address); /* nobody will know when it is over */
    buffer_holds_end(hold);
}

/* Takes out the first of a list that is the holder's: of this handle, or whichever. */
static bool buffer_holds_take_of(struct hold **list, uint64_t holder, const uint64_t *handle,
                                 struct hold *hold_p)
{
    for (struct hold **link = list; *link; link = &(*link)->next) {
        if ((*link)->holder != holder || (handle && (*link)->handle != *handle))
            continue;
        *hold_p = **link;
        buffer_holds_put(&spare, buffer_holds_take(link));
        return true;
    }
    return false;
}

uint64_t ms_hold_handle(const struct ms_args *args)
{
    uint64_t handle = 0;

    memcpy(&handle, args->out, sizeof(handle));
    return handle;
}

/* In a group the handle is written when the group ends. Where the library registers nothing, as it may be
 * told to, it gives no handle. */
void ms_hold_begun(const struct ms_call *call)
{
    uint64_t handle = ms_hold_handle(&call->args);
    bool later = groups && (handle == call->args.flags || !handle), known = handle && !later;
    struct hold hold = {.holder = call->args.given,
                        .handle = handle == call->args.flags ? 0 : handle,
                        .bytes = call->args.bytes,
                        .out = later ? call->args.out : NULL,
                        .thread = ms_thread_id()};

    hold.address = ms_external_any() && ms_external_hold(call->args.key) ? call->args.key : 0;
    hold.row = known || later ? ms_invalid_free_of_registration(call) : 0;
    waiting += later;
    if (hold.address || hold.row)
        note_hold(&hold, later);
}

/* Of a group that failed, or goes on without the thread, no handle is known. */
static void group_ended(int status)
{
    uint32_t thread = ms_thread_id();
    struct hold **link = &waiting_holds;

    ms_lock(&lock);
    while (*link) {
        struct hold *hold = *link;
        if (hold->thread != thread) {
            link = &hold->next;
            continue;
        }
        if (status == 0)
            memcpy(&hold->handle, hold->out, sizeof(hold->handle));
        hold->out = NULL;
        buffer_holds_take(link);
        buffer_holds_put(buffer_holds_bucket_of(hold->holder, hold->handle), hold);
    }
    ms_unlock(&lock);
    waiting = 0;
}

unsigned ms_hold_groups(void)
{
    return groups;
}

void ms_hold_group(bool begins, int status)
{
    if (begins) {
        groups += status == 0;
        return;
    }
    groups -= groups > 0;
    if (!groups && waiting)
        group_ended(status);
}

void ms_hold_ended(const struct ms_call *call)
{
    uint64_t handle = call->args.key;
    struct hold hold;
    bool found;

    ms_lock(&lock);
    found = handle && buffer_holds_take_of(buffer_holds_bucket_of(call->args.given, handle), call->args.given,
                                           &handle, &hold);
    ms_unlock(&lock);
    if (found)
        buffer_holds_end(&hold);
}

/* One of the holder's, wherever it is. */
static bool take_any(uint64_t holder, unsigned *bucket_p, struct hold *hold_p)
{
    bool found;

    ms_lock(&lock);
    found = buffer_holds_take_of(&waiting_holds, holder, NULL, hold_p);
    while (!found && *bucket_p < BUCKETS)
        if (!(found = buffer_holds_take_of(&buckets[*bucket_p], holder, NULL, hold_p)))
            ++*bucket_p;
    ms_unlock(&lock);
    return found;
}

void ms_holder_ended(uint64_t holder)
{
    struct hold hold;

    for (unsigned bucket = 0; made && take_any(holder, &bucket, &hold);)
        buffer_holds_end(&hold);
}

static void holds_reset(void)
{
    ms_lock_reset(&lock);
    memset(buckets, 0, sizeof(buckets));
    waiting_holds = spare = NULL;
    made = 0;
}
MS_AT_FORK(MS_FORK_SERVICE, holds_reset);
