/* budget.c - how many calls of the vendor's less memory is worth.
 *
 * A plain cache, which gives nothing back while there is memory, asks the vendor once for every 2 MiB of
 * small blocks, once for every 20 MiB of middling ones, and once for each large block that nothing vacant can
 * hold. Each heap counts how often such a cache would have asked by now. What the heap itself asked less than
 * twice that is its budget: it may be spent on giving back before a growth, and on chunks that fit more
 * closely. A growth that only takes again what was given back is owed, and adds nothing.
 *
 * Also here: what is large and vacant is split as long as the device has plenty; near its end it is kept
 * whole, since what is split cannot go back before all of it is free. Heap's lock held. */
#include "config.h"

#include "pool/internal.h"

void ms_budget_use(struct ms_heap *heap, uint64_t bytes, bool taken)
{
    struct ms_budget *budget = &heap->budget;
    if (bytes >= MS_PLAIN_LARGE_BYTES)
        return;
    struct ms_budget_use *use = bytes <= MS_MIB ? &budget->small : &budget->middling;
    use->bytes += taken ? bytes : -bytes;
    if (use->peak_bytes < use->bytes)
        use->peak_bytes = use->bytes;
}

static void earn_fences(struct ms_budget *budget, uint64_t shares)
{
    int64_t fences = budget->fences + (int64_t)shares, most = MS_FENCES_MOST * MS_FREES_PER_FENCE;
    budget->fences = (int32_t)(fences < most ? fences : most);
}

void ms_budget_grew(struct ms_heap *heap, uint64_t granted, uint64_t bytes)
{
    struct ms_budget *budget = &heap->budget;
    uint64_t used = heap->reserved_bytes - heap->vacant_bytes - heap->run_free_bytes + granted;
    if (budget->used_peak_bytes < used)
        budget->used_peak_bytes = used;
    if (heap->reserved_bytes > budget->reserved_peak_bytes) {
        uint64_t more = heap->reserved_bytes - budget->reserved_peak_bytes;
        earn_fences(budget, MS_FENCES_MOST * MS_FREES_PER_FENCE * more / heap->reserved_bytes);
        budget->reserved_peak_bytes = heap->reserved_bytes;
    }
    if (granted < MS_PLAIN_LARGE_BYTES)
        return;
    if (budget->owed_bytes >= granted)
        budget->owed_bytes -= granted;
    else
        budget->large_calls += bytes / ms_round_up(granted, MS_PAGE_BYTES);
}

void ms_budget_owe(struct ms_heap *heap, uint64_t bytes)
{
    heap->budget.owed_bytes += bytes;
}

int64_t ms_budget_left(const struct ms_heap *heap)
{
    const struct ms_budget *budget = &heap->budget;
    uint64_t plain =
        ms_round_up(budget->small.peak_bytes, MS_PLAIN_SMALL_BYTES) / MS_PLAIN_SMALL_BYTES +
        ms_round_up(budget->middling.peak_bytes, MS_PLAIN_MIDDLING_BYTES) / MS_PLAIN_MIDDLING_BYTES +
        budget->large_calls;
    return (int64_t)(MS_PLAIN_TIMES * plain -
                     atomic_load_explicit(&heap->vendor_allocs, memory_order_relaxed) -
                     atomic_load_explicit(&heap->vendor_frees, memory_order_relaxed));
}

bool ms_budget_splits(const struct ms_heap *heap, uint64_t bytes)
{
    return bytes >= MS_PAGE_BYTES &&
           ms_heap_left(heap) + heap->reserved_bytes > heap->budget.used_peak_bytes / 4 * MS_SPLIT_QUARTERS;
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
