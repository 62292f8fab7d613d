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

#include "base/keyed.h"
#include "base/lock.h"
#include "hooks/observe/invalid_free.h"
#include "pool/external/external.h"

enum { HOLDS_MAX = 1 << 16 };

struct hold {
    struct ms_keyed by; /* the holder and the handle, or the thread while it is in the group */
    uint64_t holder, handle, bytes;
    uint64_t address; /* of a buffer of ours, which is held; or 0 */
    const void *out;  /* NULL: not in a group */
    uint32_t thread;
    uint32_t row; /* where the record counts it; 0: nowhere */
};

static struct ms_keyed_table holds = MS_KEYED_TABLE(struct hold, 64, 4096);
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_EXPORT);
static MS_TLS unsigned groups, waiting; /* that the thread is in; what it registered in them */

static uint64_t hold_key(const struct hold *hold)
{
    return hold->out ? hold->thread : hold->holder >> 4 ^ hold->handle >> 3;
}

/* No lock held: the registration is over. */
static void buffer_holds_end(const struct hold *hold)
{
    if (hold->row)
        ms_ledger_invalid_free_undone(hold->row, hold->bytes);
    if (hold->address)
        ms_external_release(hold->address);
}

static void note_hold(struct hold *hold)
{
    struct hold *noted;

    ms_lock(&lock);
    noted = holds.count < HOLDS_MAX ? ms_keyed_add(&holds, hold_key(hold)) : NULL;
    if (noted) {
        hold->by = noted->by;
        *noted = *hold;
    }
    ms_unlock(&lock);
    if (noted)
        return;
    if (hold->address)
        ms_external_spend(hold->address); /* nobody will know when it is over */
    buffer_holds_end(hold);
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
        note_hold(&hold);
}

/* Of a group that failed, or goes on without the thread, no handle is known. */
static void group_ended(int status)
{
    uint32_t thread = ms_thread_id();

    ms_lock(&lock);
    for (void **place = ms_keyed_find(&holds, thread); *place;) {
        struct hold *hold = *place;
        if (!hold->out || hold->thread != thread) {
            place = ms_keyed_after(place, thread);
            continue;
        }
        if (status == 0)
            memcpy(&hold->handle, hold->out, sizeof(hold->handle));
        hold->out = NULL;
        ms_keyed_rename(&holds, hold, hold_key(hold));
        place = ms_keyed_find(&holds, thread);
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
    struct hold wanted = {.holder = call->args.given, .handle = call->args.key}, *hold = NULL;
    uint64_t key = hold_key(&wanted);

    ms_lock(&lock);
    for (void **place = ms_keyed_find(&holds, key); wanted.handle && *place;
         place = ms_keyed_after(place, key)) {
        hold = *place;
        if (!hold->out && hold->holder == wanted.holder && hold->handle == wanted.handle)
            break;
        hold = NULL;
    }
    if (hold) {
        wanted = *hold;
        ms_keyed_remove(&holds, hold);
    }
    ms_unlock(&lock);
    if (hold)
        buffer_holds_end(&wanted);
}

/* One of the holder's, in this bucket or behind it. */
static bool take_any(uint64_t holder, unsigned *bucket_p, struct hold *hold_p)
{
    struct hold *hold = NULL;

    ms_lock(&lock);
    for (; holds.count && !hold && *bucket_p < holds.bucket_count; *bucket_p += !hold) {
        hold = holds.buckets[*bucket_p];
        while (hold && hold->holder != holder)
            hold = hold->by.next;
    }
    if (hold) {
        *hold_p = *hold;
        ms_keyed_remove(&holds, hold);
    }
    ms_unlock(&lock);
    return hold != NULL;
}

void ms_holder_ended(uint64_t holder)
{
    struct hold hold;

    for (unsigned bucket = 0; take_any(holder, &bucket, &hold);)
        buffer_holds_end(&hold);
}

static void holds_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&holds);
}
MS_AT_FORK(MS_FORK_SERVICE, holds_reset);
