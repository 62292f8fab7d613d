/* budget.h - what a heap may spend on fences; see budget.c.
 *
 * Floor 2, for src/pool/ alone. Part of a heap, under the heap's lock. */
#ifndef MS_POOL_BUDGET_H
#define MS_POOL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct ms_heap;

struct ms_budget {
    int32_t fences;               /* in shares of one */
    uint64_t reserved_peak_bytes; /* the most that earned any */
    uint64_t used_peak_bytes;     /* the most that was in use when the vendor gave more */
};

/** The vendor gave a segment for a request of `granted`. */
void ms_budget_grew(struct ms_heap *heap, uint64_t granted);
/** Whether a request of `bytes` splits any vacant segment; else by the rules for small ones alone. */
bool ms_budget_splits(const struct ms_heap *heap, uint64_t bytes);

/** Before something is split: whether a fence may be spent on a closer fit. */
bool ms_budget_may_fence(struct ms_heap *heap);
/** A fence was, on whatever. */
void ms_budget_fenced(struct ms_heap *heap);

#endif
