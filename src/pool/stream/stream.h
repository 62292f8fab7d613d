/* stream.h - memory that is given and freed in the order of streams.
 *
 * Floor 2; the rules of pool.h hold here too. A *stream* is one of the driver's, told by what the driver says
 * it is (cuStreamGetId), since handles come back and one handle means another stream in each thread. A *pool*
 * is one of the program's own, from which the driver gives us segments, so that place, access and lifetime
 * are the driver's. Memory of one pool for one stream is a *flow*: a heap of its own, whose blocks that
 * stream may have again as soon as it has freed them. What another stream frees goes home when an event that
 * was recorded there after the free is done. */
#ifndef MS_POOL_STREAM_STREAM_H
#define MS_POOL_STREAM_STREAM_H

#include "pool/api/pool.h"

struct ms_stream;

/** In the place of a pool: the current one of the stream's device. */
#define MS_MEMPOOL_CURRENT UINT64_MAX

/** The stream that `handle` names in the calling thread: 0 and 1 the legacy one of its current context, 2 its
 * own there. NULL for what the driver does not know, and where it cannot tell streams apart. May call the
 * vendor. */
struct ms_stream *ms_stream_of(const struct ms_gpu *gpu, uint64_t handle);
uint64_t ms_stream_context(const struct ms_stream *stream);
/** The context of a stream that was seen made and has not ended; 0 if there is none of that handle. For the
 * thread that keeps it from ending. */
uint64_t ms_stream_context_seen(uint64_t handle);
int ms_stream_device(const struct ms_stream *stream);
/** True if the stream's calls belong into a graph just now, or are forbidden: then the driver has to be
 * asked. */
bool ms_stream_captures(const struct ms_stream *stream);

/** True if the address lies in memory that was taken for a stream. */
bool ms_stream_owns(uint64_t address);
/** Memory of a pool that the stream may use at once. PASSED where the pool is not served, and where it has no
 * memory: the vendor answers as it stands. REFUSED, for want of memory, where MEMSHIM_LIMIT does not leave
 * it. */
enum ms_pool_verdict ms_stream_alloc(struct ms_stream *stream, uint64_t pool, uint64_t bytes,
                                     enum ms_pool_how how, struct ms_pool_block *block_p);
/** Second half of a free, of a block that is `ordered`, in stream order. */
void ms_stream_free_end(struct ms_pool_block *block, struct ms_stream *stream);
/** As ms_stream_free_end, on a stream that the driver knows and ms_stream_of does not. False if no event
 * could be recorded there; then the block stays as it is, for ever. */
bool ms_stream_free_end_unknown(const struct ms_gpu *gpu, const struct ms_pool_block *block, uint64_t handle);

/** The program made one in this context. No lock held. */
void ms_stream_born(const struct ms_gpu *gpu, uint64_t context, uint64_t handle);
/** Under ms_pool_capture_enter: before a stream is destroyed. Its stream arenas are for others when its work
 * is done; the fences of the context wait for that as well. False if it is not known; where the vendor
 * refuses, a known one is born anew. */
bool ms_stream_ending(uint64_t context, uint64_t handle);
/** A context is gone, and with it its streams, whose work is over. */
void ms_stream_context_died(uint64_t context);
/** The program waited for a stream, an event or the context: what is idle goes back. */
void ms_stream_at_sync(const struct ms_gpu *gpu, int device);
/** Memory is short: gives back what no stream uses, of all pools on the device. Returns the bytes. */
uint64_t ms_stream_trim(int device);
/** The bytes that ms_stream_trim would give back, or more. */
uint64_t ms_stream_reclaimable(int device);

/* --- pools ------------------------------------------------------------------------------------------- */

/** How the driver's pool may hand memory from one stream to another. */
enum ms_mempool_rule {
    MS_MEMPOOL_FOLLOW_EVENTS,
    MS_MEMPOOL_OPPORTUNISTIC,
    MS_MEMPOOL_INTERNAL,
    MS_MEMPOOL_THRESHOLD
};

/** The program made a pool, `plain` of the device's own memory; only what was made so that memshim knows how
 * it behaves is served. */
void ms_mempool_made(const struct ms_gpu *gpu, uint64_t pool, int device, bool plain, bool served);
/** Around its end: no more requests; and, when the driver agreed, memory goes back as its blocks are
 * freed. */
struct ms_mempool;
struct ms_mempool *ms_mempool_ending(uint64_t pool);
void ms_mempool_ended(struct ms_mempool *ending, uint64_t pool, bool gone);
/** The pool was made with a most that it may hold. */
void ms_mempool_bounded(uint64_t pool);
void ms_mempool_set(uint64_t pool, enum ms_mempool_rule rule, uint64_t value);
/** Another pool became the current one of its device, or may have. */
void ms_mempool_current_changed(void);
/** Before the program trims it: what no stream uses goes to the driver, which keeps what it is told to. */
void ms_mempool_trim(uint64_t pool);

/** An allocation was made in the pool, or in the device's current one (MS_MEMPOOL_CURRENT): it is among those
 * that are asked about. */
void ms_mempool_seen(const struct ms_gpu *gpu, int device, uint64_t pool);
/** The device whose own memory a pool's is; MS_DEVICE_NONE if it is the host's, or managed, or not known. */
int ms_mempool_device(uint64_t pool);
/** Sums over the driver's pools of a device that were seen and are there. */
struct ms_mempool_sums {
    uint64_t idle; /* reserved, and not used as the driver says, which counts what is being freed as used */
    uint64_t reserved, used;
    uint64_t held; /* by us */
};
/** Asks the driver; no lock held. */
struct ms_mempool_sums ms_mempool_sums_of(int device);
/** Counts what pools that are served have of the device in nobody's use for this process (quota.h): the
 * driver takes memory for a pool in units, and keeps it there up to a threshold. Where there are limits,
 * whenever that may have changed. Calls the vendor; no lock of the caller's. */
void ms_mempool_count_idle(int device);
/** Memory is short under a limit: what lies idle in them goes back to the device, as the driver's own
 * requests would have it. The bytes. No lock of the caller's. */
uint64_t ms_mempool_trim_idle(int device);
/** Of that, what a request of a stream takes, which is then the request's: at most `bytes`. Until it is put
 * back, or what is idle was counted anew. And: how much there is. */
uint64_t ms_mempool_take_idle(int device, uint64_t bytes);
void ms_mempool_put_idle(int device, uint64_t bytes);
uint64_t ms_mempool_idle_counted(int device);

/** The bytes of a pool that are in use: for attributes. False if it is not served. */
struct ms_mempool_use {
    uint64_t held;       /* of what the driver believes is in use: our segments */
    uint64_t used, high; /* by the program: what it asked for, in steps of 512 */
};
bool ms_mempool_use(uint64_t pool, struct ms_mempool_use *use_p);
/** The high mark is what is in use now. */
void ms_mempool_reset_high(uint64_t pool);

/** Numbers from here on stand for pools of a device that are no more. */
#define MS_FORMER_POOLS ((uint64_t)1 << 48)

/** Figures of the memory of each pool for each stream. */
void ms_stream_each(void (*tell)(uint32_t i, const struct ms_stream_figures *figures));

/** The bytes that are free on the device in memory of other streams than that of this number, and those of
 * them that are vacant. */
uint64_t ms_stream_free_elsewhere(int device, uint64_t stream, uint64_t *cached_p);

#endif
