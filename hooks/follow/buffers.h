/* buffers.h - buffers of a library that ends in another interface: NCCL's, which end in the driver.
 *
 * Floor 3. A request is answered with a buffer that was freed and is of the same device and granted size, or
 * by the library itself, whose calls of the driver are then no blocks of their own. What is freed waits in
 * src/pool/external/external.c. A buffer that is registered or has a window is not recycled. Whatever does
 * not fit (another copy of the library, memory that is no handle's) is left to the vendor, and followed
 * through the driver's functions. */
#ifndef MS_HOOKS_FOLLOW_BUFFERS_H
#define MS_HOOKS_FOLLOW_BUFFERS_H

#include "hooks/dispatch.h"

/* Around the calls, for dispatch.c. What begins may set call->answered and call->status: then the library is
 * not called. */
void ms_buffer_alloc_begin(struct ms_call *call);
void ms_buffer_free_begin(struct ms_call *call);
void ms_buffer_hold_begin(struct ms_call *call);
void ms_buffer_hold_end(struct ms_call *call, int status);
void ms_buffer_release_end(struct ms_call *call, int status);
void ms_buffer_holder_end(struct ms_call *call, int status);
void ms_buffer_group_begun(struct ms_call *call, int status);
void ms_buffer_group_ended(struct ms_call *call, int status);

/* Calls from the driver's hooks: a program may take a buffer apart by itself, as the library does. */

/** Its handle was asked for. True if the address lies in one of ours. */
bool ms_buffer_retained(uint64_t address);
/** It was unmapped: it is over. True if it was one of ours; the reference of its maker goes with the next
 * release. */
bool ms_buffer_unmapped(uint64_t address, uint64_t bytes);
/** True if the release of a handle that nobody knows is that of an unmapped buffer's maker. */
bool ms_buffer_released(void);

/* buffer_holds.c: what is registered is not used again. For buffers.c. */

/** The value at the place where the call puts its handle. */
uint64_t ms_hold_handle(const struct ms_args *args);
/** Registered; `args.flags` stood where the handle is put, before. */
void ms_hold_begun(const struct ms_call *call);
void ms_hold_ended(const struct ms_call *call);
/** A group of the thread begins, or ends with `status`: then the handles are there of what was registered in
 * it. */
void ms_hold_group(bool begins, int status);
/** How many the thread is in. */
unsigned ms_hold_groups(void);
/** A communicator is over, and what it registered. */
void ms_holder_ended(uint64_t holder);

#endif
