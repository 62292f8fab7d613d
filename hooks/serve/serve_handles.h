/* serve_handles.h - physical memory by handle, recycled whole (pool/external/recycled.h): what a program
 * gives back it gets again.
 *
 * Floor 3. For vendors whose file can give a handle back (gpu.h, handle_free); the classes RECYCLED_* of
 * classes.def. A handle is recycled if it was asked for with properties that the row packs into `flags`, if
 * it was released as often as it was made known, and if it is neither mapped, nor was it ever exported,
 * retained or linked: whoever could still reach the memory would else reach the next owner's.
 *
 * No fence is needed. Work reaches the memory of a handle through a mapping alone, the program has ended each
 * with the vendor's own unmapping before the handle comes here, and work that comes too late finds no
 * mapping, as it would natively. */
#ifndef MS_HOOKS_SERVE_SERVE_HANDLES_H
#define MS_HOOKS_SERVE_SERVE_HANDLES_H

#include "vendor/gpu.h"
#include "hooks/dispatch.h"
#include "pool/external/recycled.h"

/* Around the calls, for dispatch.c. What begins may set call->answered and call->status: then the vendor is
 * not called. */
void ms_recycled_create_begin(struct ms_call *call);
void ms_recycled_create_end(struct ms_call *call, int status);
void ms_recycled_release_begin(struct ms_call *call);
void ms_recycled_release_end(struct ms_call *call, int status);
/** A handle that waits here is none to the program. */
void ms_recycled_refuse(struct ms_call *call);
void ms_recycled_map_begin(struct ms_call *call);
void ms_recycled_map_end(struct ms_call *call, int status);
void ms_recycled_share_end(struct ms_call *call, int status);

/** As what the handle that the call made may be recycled; false if it may not. */
bool ms_recycled_key_of(const struct ms_call *call, struct ms_recycled_key *key_p);
/** With what its memory is filled when it is first mapped (MEMSHIM_POISON), or 0. */
int ms_recycled_fill(const struct ms_call *call);

/** The program has rested (serve.h, ms_serve_see_to_due): the next of these calls gives back what is not
 * needed. */
void ms_recycled_rested(void);
/** At the end of a call, inside its hook scope: of such a vendor's it sees to a rest, the pool's as well. No
 * lock held. */
void ms_recycled_end_rest(const struct ms_gpu *gpu);
static inline void ms_recycled_see_to_rest(const struct ms_call *call)
{
    if (MS_UNLIKELY(call->gpu && call->gpu->vendor && call->gpu->vendor->handle_free))
        ms_recycled_end_rest(call->gpu);
}

/** Give back what waits of a device. Returns the bytes. */
uint64_t ms_recycled_give_back(int device);
/** The device, or with index -1 all of the vendor's, may be reset by a call that begins. */
void ms_recycled_device_ending(const struct ms_gpu *gpu, int index);
/** The handles that wait, as of one moment (struct ms_pool_source): nothing comes or goes between the first
 * and the last of these. */
bool ms_recycled_stop(unsigned timeout_ms);
void ms_recycled_tell_figures(void);
void ms_recycled_tell_pieces(void);
void ms_recycled_go(void);

/* handles.c */

/** The handle in args.key leaves the program for good; false if it must go to the vendor instead. */
bool ms_handle_recycle(struct ms_call *call, struct ms_recycled_key *key_p);
/** The handle in args.key, and the one mapped at args.given, are never recycled. */
void ms_handle_pin(struct ms_call *call);

#endif
