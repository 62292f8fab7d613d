/* pins.c - blocks that others may know: exported, registered, captured.
 *
 * A hash table of addresses with a count each. A block that is freed while it is
 * pinned stays as it is until the last pin is undone. A whole block that was ever pinned goes back to the
 * vendor then, since a stale handle to it must never lead to the next block. One lock, taken inside a thread
 * cache's and outside the tables'. */
#include <string.h>

#include "pool/api/internal.h"

struct pin {
    uint64_t address; /* 0: a free place */
    uint32_t count;
    struct ms_slot *freed; /* waits for the last pin */
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_PINS);
static struct pin *pins;
static uint32_t pin_count, pin_room, pin_order;
_Atomic uint32_t ms_pin_count;

/* The place where an address belongs; `pin_room` is a power of two, at most half of it is taken. Lock held
 * from here on. */
static uint32_t home_of(uint64_t address)
{
    return (uint32_t)((address >> 9) * 0x9e3779b97f4a7c15u >> 32) & (pin_room - 1);
}

/* The pin of this address, or the free place where it would be. */
static struct pin *pins_place_of(uint64_t address)
{
    uint32_t at = home_of(address);
    while (pins[at].address && pins[at].address != address)
        at = (at + 1) & (pin_room - 1);
    return &pins[at];
}

static struct pin *pins_find(uint64_t address)
{
    struct pin *pin = pin_count ? pins_place_of(address) : NULL;
    return pin && pin->address ? pin : NULL;
}

/* The pins that follow move up, so that no search ends before them. */
static void pins_drop(struct pin *pin)
{
    uint32_t gap = (uint32_t)(pin - pins), at = gap;
    for (;;) {
        at = (at + 1) & (pin_room - 1);
        if (!pins[at].address)
            break;
        if (((at - home_of(pins[at].address)) & (pin_room - 1)) < ((at - gap) & (pin_room - 1)))
            continue;
        pins[gap] = pins[at];
        gap = at;
    }
    pins[gap].address = 0;
    atomic_store_explicit(&ms_pin_count, --pin_count, memory_order_relaxed);
}

static void pins_reset(void)
{
    ms_lock_reset(&lock);
    pins = NULL;
    pin_count = pin_room = 0;
    atomic_store_explicit(&ms_pin_count, 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_POOL, pins_reset);

uint32_t ms_pins_of(uint64_t address)
{
    ms_lock(&lock);
    const struct pin *pin = pins_find(address);
    uint32_t count = pin ? pin->count : 0;
    ms_unlock(&lock);
    return count;
}

void ms_pins_forget(uint64_t address, uint64_t bytes)
{
    if (!ms_pins_any())
        return;
    ms_lock(&lock);
    for (uint32_t i = 0; i < pin_room;) {
        if (pins[i].address && pins[i].address - address < bytes)
            pins_drop(&pins[i]); /* another may be in this place now */
        else
            i++;
    }
    ms_unlock(&lock);
}

/* A whole block leaves with its segment. */
static void pins_let_go(struct ms_slot *slot)
{
    struct ms_segment *segment = slot->extent->segment;
    if (atomic_load_explicit(&segment->use, memory_order_relaxed) == MS_SEGMENT_DEDICATED)
        segment->release = true;
}

bool ms_pins_hold(struct ms_heap *heap, struct ms_slot *slot, uint64_t address)
{
    bool held = false;
    ms_lock(&lock);
    struct pin *pin = pins_find(address);
    if (pin && pin->count) {
        /* Whoever takes the last pin away gives it to others, as soon as the lock is let go. */
        atomic_fetch_add_explicit(&heap->pinned_bytes, slot->extent->slot_bytes, memory_order_relaxed);
        pin->freed = slot;
        held = true;
    } else if (pin) {
        pins_let_go(slot);
        pins_drop(pin);
    }
    ms_unlock(&lock);
    return held;
}

static bool widen(void)
{
    struct pin *narrow = pins;
    uint32_t order, narrow_order = pin_order, narrow_room = pin_room, room = pin_room ? pin_room * 2 : 64;
    struct pin *wider = ms_table_array(MS_ARRAY_OWN, room * sizeof(*wider), &order);
    if (!wider)
        return false;
    pins = wider;
    pin_room = room;
    pin_order = order;
    for (uint32_t i = 0; i < narrow_room; i++) {
        if (narrow[i].address)
            *pins_place_of(narrow[i].address) = narrow[i];
    }
    ms_table_drop_array(MS_ARRAY_OWN, narrow, narrow_order);
    return true;
}

static struct pin *pins_make(uint64_t address)
{
    if (pin_count * 2 >= pin_room && !widen())
        return NULL;
    struct pin *pin = pins_place_of(address);
    *pin = (struct pin){.address = address};
    atomic_store_explicit(&ms_pin_count, ++pin_count, memory_order_relaxed);
    return pin;
}

bool ms_pool_pin(uint64_t address)
{
    struct ms_pool_block block;
    if (!ms_pool_find(address, &block))
        return false;
    ms_lock(&lock);
    struct pin *pin = pins_find(block.address);
    if (!pin)
        pin = pins_make(block.address);
    if (pin)
        pin->count++;
    ms_unlock(&lock);
    return pin != NULL;
}

void ms_pool_unpin(uint64_t address)
{
    struct ms_slot *slot = NULL;
    ms_lock(&lock);
    struct pin *pin = pins_find(address);
    if (pin && pin->count && --pin->count == 0 && pin->freed) {
        slot = pin->freed;
        pins_drop(pin);
    }
    ms_unlock(&lock);
    if (!slot)
        return;
    struct ms_heap *heap = slot->extent->segment->heap;
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    if (ms_slot_state(slot) == MS_SLOT_PINNED) {
        atomic_fetch_sub_explicit(&heap->pinned_bytes, slot->extent->slot_bytes, memory_order_relaxed);
        pins_let_go(slot);
        ms_tcache_put(&heap->cache, tcache, slot);
    }
    ms_tcache_unlock(tcache);
}
