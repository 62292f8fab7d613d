/* budget.h - what a heap may spend on calls of the vendor's; see budget.c.
 *
 * Floor 2, for src/pool/ alone. Part of a heap, under the heap's lock. */
#ifndef MS_POOL_BUDGET_H
#define MS_POOL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct ms_heap;

/** Runs of up to 1 MiB are small, what has as much as this is large. */

struct ms_budget_use {
    uint64_t bytes, peak_bytes; /* of runs */
};
struct ms_budget {
    struct ms_budget_use small, middling;
    uint64_t large_calls, owed_bytes;
    int32_t fences;               /* in shares of one */
    uint64_t reserved_peak_bytes; /* the most that earned any */
    uint64_t used_peak_bytes;     /* the most that was in use when the vendor gave more */
};

/** A run is used, or is not any more. */
void ms_budget_use(struct ms_heap *heap, uint64_t bytes, bool taken);
/** The vendor gave a segment of `bytes` for a request of `granted`. */
void ms_budget_grew(struct ms_heap *heap, uint64_t granted, uint64_t bytes);
/** So much was given back that will be asked for again. */
void ms_budget_owe(struct ms_heap *heap, uint64_t bytes);
/** Calls of the vendor's; negative if it is overdrawn. */
int64_t ms_budget_left(const struct ms_heap *heap);
/** Whether a request of `bytes` splits any vacant segment; else by the rules for small ones alone. */
bool ms_budget_splits(const struct ms_heap *heap, uint64_t bytes);

/** Before something is split: whether a fence may be spent on a closer fit. */
bool ms_budget_may_fence(struct ms_heap *heap);
/** A fence was, on whatever. */
void ms_budget_fenced(struct ms_heap *heap);

#endif
