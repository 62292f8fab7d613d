/* quota.h - what the process takes of each device, and how much of it the process may take.
 *
 * Floor 1.5. One number for each device counts whatever the vendor gave this process there: the pool's
 * segments, blocks that the vendor made, handles that wait to be used again, contexts and modules as they
 * were measured, and what is being asked of the vendor just now. Memory is *reserved* before the vendor is
 * asked, all of it or nothing, so that no two threads pass the limit together; and *given back* once the
 * vendor has it, or has refused. Any thread, also in a signal handler; no allocation, and no lock but where a
 * device is shared (share/).
 *
 * A hooked call reserves for memory that somebody else counts when it is there, and counts out again before
 * the vendor has it back: the record. So each thread has a *purse*, open for as long as such a call is: what
 * the call has reserved lies there, what comes meanwhile is taken out of it, what goes meanwhile is put into
 * it, and what is left at the end is given back. A thread that is unwound out of a call, or ends in it,
 * leaves its purse as it is: too much is counted, until the thread's next call or for good, and never too
 * little. */
#ifndef MS_QUOTA_QUOTA_H
#define MS_QUOTA_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/devices.h"

/** True if there is a limit at all: from the beginning on, of which devices and how much comes later. */
extern MS_HIDDEN _Atomic bool ms_quota_bounded;
static inline bool ms_quota_is_bounded(void)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_quota_bounded, memory_order_relaxed));
}
/** Before the first call: there may be limits. And: there will be none. */
void ms_quota_bound(void);
void ms_quota_unbound(void);
/** The process may take so much of the device; UINT64_MAX for any amount. The first word counts. */
void ms_quota_allow(int device, uint64_t limit_bytes);
/** True once ms_quota_allow was called for it. */
bool ms_quota_is_known(int device);
/** The bytes that the process may take; UINT64_MAX without a limit, and while it is not known. */
uint64_t ms_quota_limit(int device);

/** Who has a say besides the limit: other processes on the device, or the host whose memory it uses. */
enum ms_quota_who { MS_QUOTA_OTHERS, MS_QUOTA_HOST, MS_QUOTA_BOUNDS, MS_QUOTA_LIMIT, MS_QUOTA_NOBODY };
/** The way to ask one of them. Any thread of the program's calls these; none of them calls the vendor. */
struct ms_quota_bound {
    bool (*take)(int device, uint64_t bytes, uint64_t taken_bytes); /* `taken_bytes` without these */
    /* The vendor has answered: these are there, or are about to be given back. */
    void (*answered)(int device, uint64_t bytes);
    void (*note)(int device, uint64_t bytes); /* they are there, whatever is left */
    void (*give_back)(int device, uint64_t bytes);
    uint64_t (*room)(int device);
};
/** From now on `who` is asked about a device. `bound` lives on. */
void ms_quota_ask(int device, enum ms_quota_who who, const struct ms_quota_bound *bound);
bool ms_quota_is_asked(int device, enum ms_quota_who who);

/** Counts bytes that the vendor is about to be asked for. False, and nothing has changed, if the limit, or
 * who else has a say, leaves less. */
bool ms_quota_reserve(int device, uint64_t bytes);
/** Who refused what this thread reserved last: there may be room for it by now. Once for each refusal;
 * nobody, if it was not refused, or of another device. */
enum ms_quota_who ms_quota_refused_by(int device);
/** The vendor has answered the request for which `reserved` bytes were counted, and gave `given` of them: the
 * rest is given back. */
void ms_quota_settle(int device, uint64_t reserved, uint64_t given);
/** Counts bytes that are there, whatever is left: no purse has them. Until they are given back. */
void ms_quota_hold(int device, uint64_t bytes);
/** The vendor has these back. */
void ms_quota_give_back(int device, uint64_t bytes);
/** The bytes that are counted; those that the limit and all who have a say leave (UINT64_MAX where nothing
 * bounds them); one of these; and those that the limit alone leaves. */
uint64_t ms_quota_taken(int device);
uint64_t ms_quota_room(int device);
uint64_t ms_quota_room_of(int device, enum ms_quota_who who);
uint64_t ms_quota_own_room(int device);

/** Opens the thread's purse; what a call that was left has put there is given back first. */
void ms_quota_call_begins(void);
/** As ms_quota_reserve, into the purse, which is open. */
bool ms_quota_call_reserve(int device, uint64_t bytes);
/** The vendor has answered, and what it gave is counted: what is left in the purse is given back. */
void ms_quota_call_ends(void);

/** Memory that the vendor gave is there, or is no more: out of the purse, or into it, if one is open. What a
 * purse does not have is counted whatever the limit says, since it is there. */
void ms_quota_came(int device, uint64_t bytes);
void ms_quota_went(int device, uint64_t bytes);

#endif
