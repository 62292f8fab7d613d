/* external.h - buffers that another library makes, recycled whole.
 *
 * Floor 2. A buffer of NCCL's has the handle types, the granularity and the peers that the library gives its
 * own memory, so nobody but the library can make one; between a free and the next request of the same size on
 * the device it waits here. What may run on it still is told by the fence of the context in which it was
 * freed (fence.c). The same rules as in pool.h hold: inside a hook scope, no malloc, no lock across a call of
 * the vendor's.
 *
 * Every buffer is in one state: live, held (freed, while somebody has it registered), pending, idle, or on
 * its way back. */
#ifndef MS_POOL_EXTERNAL_EXTERNAL_H
#define MS_POOL_EXTERNAL_EXTERNAL_H

#include <stdatomic.h>

#include "pool/api/pool.h"

/** Who makes buffers and takes them back; a status of the library's, 0 for success. */
struct ms_external_source {
    int (*make)(uint64_t bytes, uint64_t *address_p);
    int (*unmake)(uint64_t address);
};

/** `granted` is what the library is expected to make of `requested`: it is asked for the latter, and the
 * driver then says what it made. */
struct ms_external_request {
    const struct ms_external_source *source;
    const struct ms_gpu *gpu;
    uint64_t context; /* the calling thread's, on `device` */
    int device;
    uint64_t requested, granted;
};

struct ms_external_block {
    uint64_t address, requested, granted;
    int device;
    uint32_t record_id;
    bool live;
    uint32_t own; /* index */
};

/** The number of records of buffers: while it is 0, whatever else is asked here costs one load. */
extern _Atomic uint32_t ms_external_count;
static inline bool ms_external_any(void)
{
    return atomic_load_explicit(&ms_external_count, memory_order_relaxed) != 0;
}

/** An idle buffer of exactly this size from this source; may close an epoch and look at its event for a
 * moment. */
bool ms_external_take(const struct ms_external_request *request, struct ms_external_block *block_p);
/** A new one. When it cannot be had, what is idle on the device goes back and it is asked for once more.
 * `status_p` is the library's; with MS_EXTERNAL_LIMIT it was not asked: MEMSHIM_LIMIT leaves no room. */
enum { MS_EXTERNAL_LIMIT = -1 };
bool ms_external_make(const struct ms_external_request *request, struct ms_external_block *block_p,
                      int *status_p);
/** Sets the record id that the record wants back, before the program knows the address. */
void ms_external_set_record_id(const struct ms_external_block *block, uint32_t record_id);

/** First half of a free. PASSED if the address lies in none; REFUSED if it is not the beginning of a live
 * one. */
enum ms_pool_verdict ms_external_free_begin(uint64_t address, struct ms_external_block *block_p);
/** Second half: into the pending list, behind the fence of `context`. */
void ms_external_free_end(const struct ms_external_block *block, const struct ms_gpu *gpu, uint64_t context);
/** The program took it apart itself, or it is given to the vendor without us: nothing of it stays. False if
 * it was not live. */
bool ms_external_forget(uint64_t address, struct ms_external_block *block_p);

/** The buffer that the address lies in, live or not. */
bool ms_external_find(uint64_t address, struct ms_external_block *block_p);
/** Somebody has the live buffer registered: freed meanwhile, it waits for the last of them. */
bool ms_external_hold(uint64_t address);
void ms_external_release(uint64_t address);
/** Somebody may keep a handle to its memory for good: freed, it goes back and is never recycled. */
void ms_external_spend(uint64_t address);

/** Give idle buffers of the device back, but for `keep_bytes` of them. Returns the bytes given back. */
uint64_t ms_external_trim(int device, uint64_t keep_bytes);

/* For the rest of the pool. */
struct ms_heap;
/** The lock under which all of it changes: for stop.c. */
bool ms_external_lock_within(unsigned timeout_ms);
void ms_external_unlock(void);
uint64_t ms_external_idle_bytes(int device);
void ms_external_add_figures(int device, struct ms_pool_figures *sum);
void ms_external_walk(void (*tell)(void *arg, const struct ms_piece_record *piece), void *arg);

#endif
