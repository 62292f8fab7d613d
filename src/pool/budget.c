/* budget.c - how many calls of the vendor's less memory is worth.
 *
 * A plain cache, which gives nothing back while there is memory, asks the vendor once for every 2 MiB of
 * small blocks, once for every 20 MiB of middling ones, and once for each large block that nothing vacant can
 * hold. Each heap counts how often such a cache would have asked by now. What the heap itself asked less than
 * that is its budget: it may be spent on giving back before a growth, and on chunks that fit more closely. A
 * growth that only takes again what was given back is owed, and adds nothing.
 *
 * Also here: from when on the end of the device's memory is near. What is large and vacant is split as long
 * as the device has plenty; then only for what takes much of it, since what is split cannot go back before all
 * of it is free; near the end it is kept whole, and calls of the vendor's count for less. Heap's lock held. */
#include "config.h"

#include "pool/internal.h"

#define SMALL_SEGMENT (2 * MS_MIB)
#define LARGE_SEGMENT (20 * MS_MIB)
/* In quarters of what is reserved: what the device has to have left so that any vacant segment is split, and so that
 * any is at all. Between the two a request may have a segment of up to three times its size, if an eighth of what the
 * device has left is more than what it leaves over. */
enum { SPLIT_ANY_QUARTERS = 10, SPLIT_QUARTERS = 3, SPLIT_TIMES = 3, SPLIT_LEFT_SHARE = 8 };
/* After each growth so many fences may come before something is split, then one for every so many times. */
enum { FENCES_AFTER_GROWTH = 512, TIMES_PER_FENCE = 64 };

void ms_budget_use(struct ms_heap *heap, uint64_t bytes, bool taken)
{
    struct ms_budget *budget = &heap->budget;
    if (bytes >= MS_BUDGET_LARGE_BYTES)
        return;
    struct ms_budget_use *use = bytes <= MS_MIB ? &budget->small : &budget->middling;
    use->bytes += taken ? bytes : -bytes;
    if (use->peak_bytes < use->bytes)
        use->peak_bytes = use->bytes;
}

void ms_budget_grew(struct ms_heap *heap, uint64_t granted, uint64_t bytes)
{
    struct ms_budget *budget = &heap->budget;
    budget->fences = FENCES_AFTER_GROWTH * TIMES_PER_FENCE;
    if (granted < MS_BUDGET_LARGE_BYTES)
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
    uint64_t plain = ms_round_up(budget->small.peak_bytes, SMALL_SEGMENT) / SMALL_SEGMENT +
                     ms_round_up(budget->middling.peak_bytes, LARGE_SEGMENT) / LARGE_SEGMENT +
                     budget->large_calls;
    return (int64_t)(plain - atomic_load_explicit(&heap->vendor_allocs, memory_order_relaxed) -
                     atomic_load_explicit(&heap->vendor_frees, memory_order_relaxed));
}

bool ms_budget_short(const struct ms_heap *heap, uint32_t quarters)
{
    return ms_heap_left(heap) < heap->reserved_bytes / 4 * quarters;
}

uint64_t ms_budget_splits(const struct ms_heap *heap, uint64_t bytes)
{
    if (bytes < MS_PAGE_BYTES || ms_budget_short(heap, SPLIT_QUARTERS))
        return 0;
    if (!ms_budget_short(heap, SPLIT_ANY_QUARTERS))
        return UINT64_MAX;
    uint64_t times = bytes * SPLIT_TIMES, over = bytes + ms_heap_left(heap) / SPLIT_LEFT_SHARE;
    return times < over ? times : over;
}

bool ms_budget_fence(struct ms_heap *heap)
{
    struct ms_budget *budget = &heap->budget;
    budget->fences++;
    if (budget->fences <= TIMES_PER_FENCE)
        return false;
    budget->fences -= TIMES_PER_FENCE + 1;
    return true;
}
