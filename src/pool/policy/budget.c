/* budget.c - how many fences may be spent before something is split: a growth beyond what was ever reserved
 * earns its share of the most, and so many frees of large blocks earn one. Heap's lock held. */
#include "pool/api/internal.h"

static void earn_fences(struct ms_budget *budget, uint64_t shares)
{
    int64_t fences = budget->fences + (int64_t)shares, most = MS_FENCES_MOST * MS_FREES_PER_FENCE;
    budget->fences = (int32_t)(fences < most ? fences : most);
}

void ms_budget_grew(struct ms_heap *heap)
{
    struct ms_budget *budget = &heap->budget;
    if (heap->reserved_bytes > budget->reserved_peak_bytes) {
        uint64_t more = heap->reserved_bytes - budget->reserved_peak_bytes;
        earn_fences(budget, MS_FENCES_MOST * MS_FREES_PER_FENCE * more / heap->reserved_bytes);
        budget->reserved_peak_bytes = heap->reserved_bytes;
    }
}

bool ms_budget_may_fence(struct ms_heap *heap)
{
    struct ms_budget *budget = &heap->budget;
    earn_fences(budget, atomic_exchange_explicit(&heap->fence.freed_count, 0, memory_order_relaxed));
    return budget->fences >= MS_FREES_PER_FENCE;
}

void ms_budget_fenced(struct ms_heap *heap)
{
    struct ms_budget *budget = &heap->budget;
    budget->fences -= budget->fences < MS_FREES_PER_FENCE ? budget->fences : MS_FREES_PER_FENCE;
}
