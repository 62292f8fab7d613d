/* budget.h - what a heap may spend on fences; see budget.c.
 *
 * Floor 2, for src/pool/ alone. Part of a heap, under the heap's lock. */
#ifndef MS_POOL_POLICY_BUDGET_H
#define MS_POOL_POLICY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct ms_heap;

struct ms_budget {
    int32_t fences;               /* in shares of one */
    uint64_t reserved_peak_bytes; /* the most that earned any */
};

/** The vendor gave a segment. */
void ms_budget_grew(struct ms_heap *heap);
/** Before something is split: whether a fence may be spent on a closer fit. */
bool ms_budget_may_fence(struct ms_heap *heap);
/** A fence was, on whatever. */
void ms_budget_fenced(struct ms_heap *heap);

#endif
