/*
 * Memory pools, between pool.c (how memory is carved), poolapi.c (what programs call) and poolshare.c (other
 * processes). Everything in a pool is under the memory lock; a pool lives as long as its handle or an
 * allocation from it.
 */
#ifndef MEMSIM_CUDA_POOL_H
#define MEMSIM_CUDA_POOL_H

#include "sim/cuda/graph/graph.h"

enum part_state {
    PART_FREE,
    PART_USED,
    PART_PENDING, /* freed in stream order, the stream is not there yet */
    PART_DONE,    /* the stream got there, but only those that are ordered behind it may have it */
};

#define SIM_POOL_BINS 64

struct pool_part {
    struct pool_part *next, *prev; /* neighbours that touch it */
    /* of those that are free and of a size, or of those that wait */
    struct pool_part *list_next, **list_link;
    size_t offset, bytes; /* in the arena */
    size_t asked;         /* so much counts as used: what was asked for, and not yet given back */
    enum part_state state;
    struct sim_block *block; /* of a used or pending part that is still in the table */
    struct sim_ticket freed; /* of one that waits; the queue is referenced */
};

struct pool_unit;

struct CUmemPoolHandle_st {
    struct sim_object object;
    struct CUmemPoolHandle_st *next; /* of all pools */
    CUmemPoolProps props;
    struct sim_device *device; /* NULL for memory of the host */
    struct sim_arena *arena;   /* the device's, or own */
    struct sim_arena own;
    bool is_default, imported;
    bool retired; /* destroyed, with blocks in it */
    unsigned readable, writable;
    struct pool_unit *units;               /* what is reserved, by address */
    struct pool_part *bins[SIM_POOL_BINS]; /* free parts, by the power of two of their size */
    struct pool_part *waiting;             /* pending and done ones */
    int follow_events, opportunistic, internal;
    uint64_t threshold;
    size_t reserved, reserved_high, used, used_high;
    size_t asked; /* while it is counted for the books */
};

extern struct CUmemPoolHandle_st *sim_pools; /* all of them */

/** The device's default pool, made on first use; NULL if memory ran out. Takes the memory lock. */
struct CUmemPoolHandle_st *sim_pool_default(struct sim_device *device);
struct CUmemPoolHandle_st *sim_pool_new(const CUmemPoolProps *props, CUresult *status_p);
struct CUmemPoolHandle_st *sim_pool_new_over(const CUmemPoolProps *props, int fd, CUresult *status_p);
CUresult sim_pool_alloc(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue,
                        CUdeviceptr *address_p);
void sim_pool_spread_access(struct CUmemPoolHandle_st *pool);
void sim_pool_collect(struct CUmemPoolHandle_st *pool, bool over);

/* poolapi.c: a device's default pool, and the one that its plain stream-ordered allocations come from. */
CUresult sim_pool_get_default(CUmemoryPool *pool_p, CUdevice ordinal);
CUresult sim_pool_get_current(CUmemoryPool *pool_p, CUdevice ordinal);
CUresult sim_pool_set_current(CUdevice ordinal, CUmemoryPool handle);

/* poolplace.c */
/** A pool that ends is no place's current one any more. Takes the places' lock. */
void sim_place_forget(const struct CUmemPoolHandle_st *pool);

/* poolpart.c */
void sim_part_list(struct CUmemPoolHandle_st *pool, struct pool_part *part);
void sim_part_join(struct CUmemPoolHandle_st *pool, struct pool_part *part);
bool sim_part_cut(struct CUmemPoolHandle_st *pool, struct pool_part *part, size_t bytes);
struct pool_part *sim_part_find_free(struct CUmemPoolHandle_st *pool, size_t bytes);
void sim_part_unlist(struct pool_part *part);
void sim_part_wait(struct CUmemPoolHandle_st *pool, struct pool_part *part);
void sim_part_release(struct CUmemPoolHandle_st *pool, struct pool_part *part);
void sim_part_release_all(struct CUmemPoolHandle_st *pool);

/* poolunit.c */
bool sim_unit_grow(struct CUmemPoolHandle_st *pool, size_t bytes);
void sim_unit_first(struct CUmemPoolHandle_st *pool);
void sim_unit_begins(struct CUmemPoolHandle_st *pool, struct pool_part *part);
struct pool_part *sim_unit_part(const struct CUmemPoolHandle_st *pool, size_t offset);
void sim_unit_freed(struct CUmemPoolHandle_st *pool, const struct pool_part *part,
                    const struct sim_ticket *ticket);
void sim_unit_end(struct CUmemPoolHandle_st *pool);
void sim_unit_settle(const struct sim_device *device);
void sim_pool_trim(struct CUmemPoolHandle_st *pool, size_t keep);

#endif
