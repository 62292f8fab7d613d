/* driver_frees.h - what was freed in the order of a stream, until the device has it; see driver_frees.c.
 *
 * Floor 2, for src/pool/ and the hooks that tell what is free. */
#ifndef MS_POOL_STREAM_DRIVER_FREES_H
#define MS_POOL_STREAM_DRIVER_FREES_H

#include <stdbool.h>
#include <stdint.h>

struct ms_stream;

/** `bytes` of the device's were freed in the stream just now, with nothing put into it since. The streams'
 * lock held. Calls the vendor, waits for nothing. */
void ms_driver_frees_note(struct ms_stream *stream, int device, uint64_t bytes);

/** The device has what is over by now. Before anything that takes memory from the driver's pools, or that
 * tells what is free. No lock of ours held. Calls the vendor, waits for nothing. Returns the bytes. */
uint64_t ms_driver_frees_settle(int device);

/** The bytes of driver frees that the device does not have yet. Without a lock. */
uint64_t ms_driver_frees_pending(int device);

/** Settles until `deadline`, as long as something is under way in streams of ours, where nothing waits for
 * work of the program's; and with `others`, for a moment, what is under way in streams of the program's. */
void ms_driver_frees_await(int device, bool others, uint64_t deadline);

/** The stream is gone with its context, and what was freed in it is the device's. The streams' lock held. */
void ms_driver_frees_died(struct ms_stream *stream);

/** Vacant memory is taken out of its heap, under that heap's lock, to be given back; and is the device's by
 * now, or in its heap again. Whoever finds no memory in between is not to be told that there is none. */
void ms_driver_frees_begin(int device);
void ms_driver_frees_end(int device);
/** How often that has ended by other threads, to be compared; and whether it has begun since, or is under
 * way. */
uint64_t ms_driver_frees_ended(int device);
bool ms_driver_frees_since(int device, uint64_t ended_before);
/** True if some thread is between ms_driver_frees_begin and ms_driver_frees_end. */
bool ms_driver_frees_under_way(int device);

#endif
