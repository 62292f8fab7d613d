/* neighbours.h - other processes on the devices: a share of one's own, and memory that goes from one to
 * another.
 *
 * Floor 3. The pages (share/) say what each takes; the quota (quota/quota.h) is told what others leave, where
 * MEMSHIM_SHARE is set. A process without it is on the page all the same, and takes what it can: it asks
 * others for what is free in them when the vendor refuses, and is asked. No lock is held where the vendor is
 * called. */
#ifndef MS_HOOKS_SERVE_NEIGHBOURS_H
#define MS_HOOKS_SERVE_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "vendor/gpu.h"

/** Once, when memshim starts; again in a fork child. */
void ms_neighbours_start(void);
/** This process is about to take memory of the device: it takes its place on the page, once. Opens a file. */
void ms_neighbours_meet(const struct ms_gpu *gpu, int device);
/** The pool's part of the device has changed, of which so much is free. */
void ms_neighbours_tell(int device, uint64_t cached_bytes);
/** The driver says that so much is free, in the calling thread's context or behind its last look. */
void ms_neighbours_tell_free(int device, uint64_t free_bytes);

/** The bytes that other processes on the page have of the device: they are in use there, and not this
 * process's. It takes its place first, where it would. */
uint64_t ms_neighbours_use(const struct ms_gpu *gpu, int device);

/** As ms_neighbours_use, without taking a place or asking the kernel; 0 without a place. */
uint64_t ms_neighbours_have(int device);

/** The vendor, or the share, has refused `bytes`: others are asked for what is free in them. True if any
 * heard, and the vendor may have more now. Waits for them, MEMSHIM_OOM_WAIT_MS at most and no more than a
 * second. */
bool ms_neighbours_ask(const struct ms_gpu *gpu, int device, uint64_t bytes);
/** Others have asked this process: what is free in it goes back, as far as they want it. */
void ms_neighbours_answer(void);

#endif
