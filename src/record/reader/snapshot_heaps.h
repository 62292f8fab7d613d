/* snapshot_heaps.h - what the allocators of the inner layer still have of the device.
 *
 * Floor 2. An allocator says how much it has when it gives or takes a piece, and nothing when it gives a
 * segment back: after PyTorch's empty_cache() its last word is of before. */
#ifndef MS_RECORD_READER_SNAPSHOT_HEAPS_H
#define MS_RECORD_READER_SNAPSHOT_HEAPS_H

#include "record/reader/snapshot.h"

/** No heap of a filled snapshot has more than what is live on its device and was not allocated by a library
 * of the vendor's, nor less than its pieces. */
void ms_snapshot_heaps_bound(struct ms_snapshot *snapshot);
/** The bytes that the allocators of a device have of it: now, and at most, which of several may be more than
 * they ever had at once. Those that do not say have what they gave on. */
void ms_snapshot_heaps(const struct ms_snapshot *snapshot, int device, uint64_t *now_p, uint64_t *most_p);
/** True of a block that PyTorch's caching allocator took (libc10_cuda.so, libc10_hip.so). */
bool ms_snapshot_is_pytorchs(const struct ms_snapshot *snapshot, const struct ms_block *block);

#endif
