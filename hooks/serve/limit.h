/* limit.h - MEMSHIM_LIMIT: what a device's limit is, and room under it for a call that the vendor answers.
 *
 * Floor 3. The quota (quota/quota.h) says yes or no; the pool asks it by itself. */
#ifndef MS_HOOKS_SERVE_LIMIT_H
#define MS_HOOKS_SERVE_LIMIT_H

#include "quota/quota.h"
#include "hooks/dispatch.h"
#include "hooks/serve/serve.h"

/** True if memshim decides anything about memory in this process: it serves, or there is a limit or a share.
 */
static inline bool ms_limit_or_service(void)
{
    return ms_serve_is_on() || ms_quota_is_bounded();
}
/** Once, when memshim starts. */
void ms_limit_start(void);
/** True if MEMSHIM_LIMIT or MEMSHIM_SHARE is set. */
bool ms_limit_is_set(void);
/** The bytes of a device of `total_bytes` that the process may take: the less of MEMSHIM_LIMIT and of the
 * most that MEMSHIM_SHARE allows; UINT64_MAX without either. */
uint64_t ms_limit_of(uint64_t total_bytes);
/** The quota knows the device's limit, and who else has a say, from now on; or that there is neither. Asks
 * the vendor, once. No lock held. */
void ms_limit_learn(const struct ms_gpu *gpu, int device);
/** Before the vendor is asked: memory that the call takes of a device lies in the thread's purse then. Where
 * the limit leaves less, what memshim itself keeps goes back first, as at the vendor's out-of-memory. False:
 * there is no room, and the vendor is not to be asked. In a hook scope, no lock held; may wait. */
bool ms_limit_reserve(const struct ms_call *call);

#endif
