/* wait.h - waiting for the device as the vendor's own free does; see wait.c.
 *
 * Floor 2. Under MEMSHIM_FREE=strict, with MEMSHIM_POISON=free, and where the driver has no event over a
 * context. */
#ifndef MS_POOL_FENCE_WAIT_H
#define MS_POOL_FENCE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct ms_heap;
struct ms_segment;

/** Returns when everything is over that was issued in the heap's context before the call; what was freed
 * before is retired then. No lock held. The vendor's status, which may be that of the program's earlier work.
 * `*waited_p` is false, and the status 0, where nothing could be waited for: a capture is open, which an
 * event over the context and a wait for the device would both destroy. */
int ms_wait_for_work(struct ms_heap *heap, bool *waited_p);

/** True if the program may free here at all, as the vendor's free would tell: not in a host function of a
 * stream, where nothing may be waited for, since it may be what the device waits for. Frees nothing. No lock
 * held. */
bool ms_wait_is_permitted(const struct ms_heap *heap);

/** The vendor's free where it waits for the device (gpu.h, `free_is_sync`): while no capture is open, which
 * that would destroy; else "not ready". No lock held. The vendor's status. */
int ms_wait_free(struct ms_heap *heap, const struct ms_segment *segment);

#endif
