/* buffer_holds.c - which buffers are registered, by whom; see buffers.h.
 *
 * Runs in the program's threads, inside the frame of the call. Owns a table under a lock (MS_RANK_EXPORT)
 * that is never held across a call of the vendor's or of the pool's. No allocation. */
#include "hooks/buffers.h"

#include <string.h>

#include "base/lock.h"
#include "pool/foreign.h"

#define HOLDS 1024

/* Handle 0: not known, or not before the end of the group in which `thread` registered it. The library writes
 * it to `out` then, which is looked at at that moment alone. What stays unknown is held as long as the holder
 * lives. */
static struct hold {
    uint64_t holder, handle, address;
    const void *out;
    uint32_t thread;
} holds[HOLDS];
static uint32_t hold_count;
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_EXPORT);
static MS_TLS unsigned groups, waiting; /* that the thread is in; what it registered in them */

static void note_hold(uint64_t holder, uint64_t handle, uint64_t address, const void *out)
{
    bool noted = false;

    if (!ms_foreign_hold(address))
        return;
    ms_lock(&lock);
    if (hold_count < HOLDS) {
        holds[hold_count++] = (struct hold){holder, handle, address, out, ms_thread_id()};
        noted = true;
    }
    ms_unlock(&lock);
    if (!noted) {
        ms_foreign_spend(address); /* nobody will know when it is over */
        ms_foreign_release(address);
    }
}

/* One of the holder's: of this handle, or whichever comes first. 0 if there is none. */
static uint64_t take_hold(uint64_t holder, uint64_t handle, bool any)
{
    uint64_t address = 0;

    ms_lock(&lock);
    for (uint32_t i = 0; i < hold_count && !address; i++) {
        if (holds[i].holder == holder && (any || holds[i].handle == handle)) {
            address = holds[i].address;
            holds[i] = holds[--hold_count];
        }
    }
    ms_unlock(&lock);
    return address;
}

uint64_t ms_hold_handle(const struct ms_args *args)
{
    uint64_t handle = 0;

    memcpy(&handle, args->out, sizeof(handle));
    return handle;
}

/* In a group the handle is written when the group ends. */
void ms_hold_begun(const struct ms_call *call)
{
    uint64_t handle = ms_hold_handle(&call->args);
    bool later = groups && (handle == call->args.flags || !handle);

    if (handle == call->args.flags)
        handle = 0;
    waiting += later;
    note_hold(call->args.given, handle, call->args.key, later ? call->args.out : NULL);
}

/* Of a group that failed, or goes on without the thread, no handle is known. */
static void group_ended(int status)
{
    uint32_t thread = ms_thread_id();

    ms_lock(&lock);
    for (uint32_t i = 0; i < hold_count; i++) {
        struct hold *hold = &holds[i];
        if (!hold->out || hold->thread != thread)
            continue;
        if (status == 0)
            memcpy(&hold->handle, hold->out, sizeof(hold->handle));
        hold->out = NULL;
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
    uint64_t address = call->args.key ? take_hold(call->args.given, call->args.key, false) : 0;

    if (address)
        ms_foreign_release(address);
}

void ms_holder_ended(uint64_t holder)
{
    uint64_t address;

    while ((address = take_hold(holder, 0, true)) != 0)
        ms_foreign_release(address);
}

void ms_holds_reset(void)
{
    ms_lock_reset(&lock);
    hold_count = 0;
}
