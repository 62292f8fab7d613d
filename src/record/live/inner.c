/* inner.c - see inner.h.
 *
 * Floor 2. Heaps are few and for ever: they are found by going through them, without a lock; the lock
 * (MS_RANK_TIMELINE) is for making one. */
#include <stdio.h>
#include <string.h>

#include "base/at_fork.h"
#include "record/live/inner.h"

enum { GRANULE_BITS = 21, GRANULES = 1 << 16 };
#define GRANULE (UINT64_C(1) << GRANULE_BITS)

/* The granules, by their address, in which a piece began that ends with its block: a bit each. */
static _Atomic uint64_t begun[GRANULES / 64];

static struct ms_lock heap_lock = MS_LOCK_INIT(MS_RANK_TIMELINE);

static struct ms_heap_row *heap_at(uint32_t heap)
{
    return &MS_ROWS(HEAPS, struct ms_heap_row)[heap - 1];
}

static uint32_t heap_find(const char *name, int device, uint16_t api)
{
    uint32_t rows = (uint32_t)ms_table_rows(MS_TABLE_HEAPS);
    for (uint32_t heap = 1; heap <= rows; heap++) {
        const struct ms_heap_row *row = heap_at(heap);
        if (atomic_load_explicit(&row->state, memory_order_acquire) == 1 && row->device == device &&
            row->api == api && strncmp(row->name, name, sizeof row->name - 1) == 0)
            return heap;
    }
    return 0;
}

static uint32_t heap_make(const char *name, int device, uint16_t api)
{
    uint64_t rows = ms_table_rows(MS_TABLE_HEAPS);
    if (rows >= MS_TABLE_HEAPS_ROWS || !ms_table_reserve(MS_TABLE_HEAPS, rows + 1)) {
        ms_table_drop(MS_TABLE_HEAPS);
        return 0;
    }
    struct ms_heap_row *row = heap_at((uint32_t)rows + 1);
    row->device = (int16_t)device;
    row->api = api;
    snprintf(row->name, sizeof row->name, "%s", name);
    atomic_store_explicit(&row->state, 1, memory_order_release);
    ms_table_publish(MS_TABLE_HEAPS, rows + 1);
    return (uint32_t)rows + 1;
}

uint32_t ms_heap_open(const char *name, int device, uint16_t api)
{
    uint32_t heap = heap_find(name, device, api);
    if (heap)
        return heap;
    ms_lock(&heap_lock);
    heap = heap_find(name, device, api);
    if (!heap)
        heap = heap_make(name, device, api);
    ms_unlock(&heap_lock);
    return heap;
}

uint32_t ms_heap_on(uint32_t heap, int device)
{
    if (!heap || heap > ms_table_rows(MS_TABLE_HEAPS))
        return 0;
    const struct ms_heap_row *row = heap_at(heap);
    return row->device == device ? heap : ms_heap_open(row->name, device, row->api);
}

static void heap_raise_peak(struct ms_heap_row *row, uint64_t bytes)
{
    uint64_t most = atomic_load_explicit(&row->peak_reserved_bytes, memory_order_relaxed);
    while (bytes > most && !atomic_compare_exchange_weak_explicit(&row->peak_reserved_bytes, &most, bytes,
                                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void ms_heap_reserved(uint32_t heap, uint64_t bytes)
{
    if (!heap)
        return;
    struct ms_heap_row *row = heap_at(heap);
    heap_raise_peak(row, bytes);
    atomic_store_explicit(&row->reserved_bytes, bytes, memory_order_relaxed);
}

void ms_heap_reserved_more(uint32_t heap, int64_t bytes)
{
    if (!heap)
        return;
    struct ms_heap_row *row = heap_at(heap);
    uint64_t before = atomic_fetch_add_explicit(&row->reserved_bytes, (uint64_t)bytes, memory_order_relaxed);
    if (bytes > 0)
        heap_raise_peak(row, before + (uint64_t)bytes);
}

void ms_heaps_copy(struct ms_heap_row *rows, uint32_t count)
{
    memcpy((void *)rows, MS_ROWS(HEAPS, struct ms_heap_row), count * sizeof *rows);
    for (uint32_t i = 0; i < count; i++)
        rows[i].live_bytes = rows[i].live_count = 0;
}

static void clamp_heap(_Atomic uint64_t *value, uint64_t most)
{
    if (atomic_load(value) > most)
        atomic_store(value, most);
}

void ms_heaps_clean(void)
{
    uint64_t rows = ms_table_reserved(MS_TABLE_HEAPS), count = 0;
    for (; count < rows && atomic_load(&heap_at((uint32_t)count + 1)->state) == 1; count++) {
        struct ms_heap_row *row = heap_at((uint32_t)count + 1);
        row->name[sizeof row->name - 1] = '\0';
        row->device = ms_device_is_known(row->device) ? row->device : MS_DEVICE_NONE;
        clamp_heap(&row->peak_reserved_bytes, INT64_MAX);
        clamp_heap(&row->reserved_bytes, atomic_load(&row->peak_reserved_bytes));
    }
    ms_table_publish(MS_TABLE_HEAPS, count);
}

static _Atomic uint64_t *begun_word(uint64_t granule, uint64_t *bit_p)
{
    *bit_p = UINT64_C(1) << (granule & 63);
    return &begun[granule % GRANULES / 64];
}

static void begun_note(uint64_t address)
{
    uint64_t bit;
    _Atomic uint64_t *word = begun_word(address >> GRANULE_BITS, &bit);
    if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    if (!ms_slow_path(MS_SLOW_PATH_INNER))
        ms_slow_path_set(MS_SLOW_PATH_INNER);
}

/* True if a piece may have begun in one of the granules. */
static bool begun_within(uint64_t first, uint64_t last)
{
    uint64_t bit;
    if (last - first >= GRANULES)
        return true;
    for (uint64_t granule = first; granule <= last; granule++) {
        _Atomic uint64_t *word = begun_word(granule, &bit);
        if (atomic_load_explicit(word, memory_order_relaxed) & bit)
            return true;
    }
    return false;
}

/* The granules that lie whole in a block that ends: no other block has pieces there. */
static void begun_forget(uint64_t begin, uint64_t end)
{
    uint64_t bit, first = (begin + GRANULE - 1) >> GRANULE_BITS, past = end >> GRANULE_BITS;
    for (uint64_t granule = first; granule < past && past - first < GRANULES; granule++) {
        _Atomic uint64_t *word = begun_word(granule, &bit);
        atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
    }
}

/* Rows are looked at without a lock; what is found is looked up again by its address. */
MS_UNSYNCHRONIZED void ms_inner_end_within(const struct ms_block *block)
{
    uint64_t begin = block->key, end = begin + block->bytes;
    if (block->space != MS_SPACE_ADDRESS || !block->bytes || end < begin ||
        !begun_within(begin >> GRANULE_BITS, (end - 1) >> GRANULE_BITS))
        return;
    uint32_t rows = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS);
    for (uint32_t record_id = 1; record_id <= rows; record_id++) {
        const struct ms_block_row *row = ms_block_row_at(record_id - 1);
        uint64_t key = row->key;
        if (ms_block_row_is_live(row) && ms_block_row_space(row) == MS_SPACE_INNER && key >= begin &&
            key < end)
            ms_inner_free(key);
    }
    begun_forget(begin, end);
}

void ms_inner_alloc(uint64_t heap, uint64_t address, uint64_t bytes, int device, uint16_t api,
                    uint32_t thread, ms_stack_id stack, bool ends_with_block)
{
    const struct ms_block block = {.key = address,
                                   .space = MS_SPACE_INNER,
                                   .bytes = bytes,
                                   .requested = bytes,
                                   .context = heap,
                                   .outlives_context = true,
                                   .kind = MS_KIND_INNER,
                                   .device = (int16_t)ms_device_inner(device),
                                   .api = api,
                                   .thread = thread,
                                   .stack = stack};
    if (ends_with_block)
        begun_note(address);
    ms_ledger_alloc(&block);
}

bool ms_inner_free(uint64_t address)
{
    return ms_ledger_free_begin(MS_SPACE_INNER, address, NULL);
}

void ms_inner_free_all(uint64_t heap)
{
    ms_ledger_heap_ended(heap);
}

bool ms_inner_resize(uint64_t address, uint64_t bytes)
{
    return ms_ledger_resize(MS_SPACE_INNER, address, bytes);
}

bool ms_inner_name(uint64_t address, uint32_t name)
{
    return ms_ledger_name(MS_SPACE_INNER, address, name);
}

int ms_inner_api(uint64_t address)
{
    struct ms_block block;
    return ms_ledger_find(MS_SPACE_INNER, address, &block) ? block.api : -1;
}

static void heaps_reset(void)
{
    ms_lock_reset(&heap_lock);
    memset((void *)begun, 0, sizeof begun);
    ms_slow_path_clear(MS_SLOW_PATH_INNER);
}
MS_AT_FORK(MS_FORK_RECORD, heaps_reset);
