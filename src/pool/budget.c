/* budget.c - how many calls of the vendor's less memory is worth.
 *
 * A plain cache, which gives nothing back while there is memory, asks the vendor once for every 2 MiB of
 * small blocks, once for every 20 MiB of middling ones, and once for each large block that nothing vacant can
 * hold. Each heap counts how often such a cache would have asked by now. What the heap itself asked less than
 * twice that is its budget: it may be spent on giving back before a growth, and on chunks that fit more
 * closely. A growth that only takes again what was given back is owed, and adds nothing.
 *
 * Also here: from when on the end of the device's memory is near. What is large and vacant is split as long
 * as the device has plenty; then only for what takes much of it, since what is split cannot go back before
 * all of it is free; near the end it is kept whole, and calls of the vendor's count for less. Heap's lock
 * held. */
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
    if (budget->largest_bytes < granted)
        budget->largest_bytes = granted;
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

bool ms_budget_short(const struct ms_heap *heap, uint32_t quarters)
{
    return ms_heap_left(heap) < heap->reserved_bytes / 4 * quarters;
}

/* The largest segment of which `bytes` may be taken since giving back was in vain; 0: it was not. */
static uint64_t splits_in_vain(const struct ms_heap *heap, uint64_t bytes)
{
    const struct ms_budget *budget = &heap->budget;
    uint64_t churned = atomic_load_explicit(&heap->churned_bytes, memory_order_relaxed),
             left = ms_heap_left(heap), most = left + heap->reserved_bytes,
             used = MS_VAIN_USED_TIMES * budget->used_peak_bytes;
    if (churned <= heap->reserved_bytes / MS_VAIN_SHARE || most <= used)
        return 0;
    if (most > used + MS_VAIN_ROOMY_LARGEST * budget->largest_bytes)
        return UINT64_MAX;
    uint64_t whole = left + heap->vacant_bytes + bytes,
             needs =
                 MS_VAIN_WHOLE_LARGEST * budget->largest_bytes + heap->run_free_bytes / MS_VAIN_FREE_SHARE;
    return whole > needs ? (whole - needs) / 2 : 0;
}

uint64_t ms_budget_splits(const struct ms_heap *heap, uint64_t bytes)
{
    if (bytes < MS_PAGE_BYTES)
        return 0;
    if (!ms_budget_short(heap, MS_SPLIT_ANY_QUARTERS))
        return UINT64_MAX;
    uint64_t in_vain = splits_in_vain(heap, bytes);
    if (ms_budget_short(heap, MS_SPLIT_QUARTERS))
        return in_vain;
    uint64_t times = bytes * MS_SPLIT_TIMES, over = bytes + ms_heap_left(heap) / MS_SPLIT_LEFT_SHARE;
    uint64_t most = times < over ? times : over;
    return most > in_vain ? most : in_vain;
}

void ms_budget_fenced(struct ms_heap *heap)
{
    struct ms_budget *budget = &heap->budget;
    if (budget->fences > -MS_FENCES_OWED * MS_FREES_PER_FENCE)
        budget->fences -= MS_FREES_PER_FENCE;
}

bool ms_budget_flush(struct ms_heap *heap, bool *may_fence_p)
{
    struct ms_budget *budget = &heap->budget;
    uint32_t frees = atomic_exchange_explicit(&heap->fence.freed_count, 0, memory_order_relaxed);
    earn_fences(budget, frees);
    budget->frees += frees;
    *may_fence_p = budget->fences >= MS_FREES_PER_FENCE;
    if (!*may_fence_p && budget->frees < MS_FREES_PER_FLUSH)
        return false;
    budget->frees = 0;
    return true;
}
