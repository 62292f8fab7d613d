/* pins.c - blocks that others may know: exported, registered, captured.
 *
 * A small table of addresses with a count each; programs pin few blocks. A block that is freed while it is
 * pinned stays as it is until the last pin is undone. A whole block that was ever pinned goes back to the
 * vendor then, since a stale handle to it must never lead to the next block. One lock, taken inside a lease's
 * and outside the tables'. */
#include "config.h"

#include <string.h>

#include "pool/internal.h"

struct pin {
    uint64_t address;
    uint32_t count;
    bool ever;
    struct ms_slot *freed; /* waits for the last pin */
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_PINS);
static struct pin *pins;
static uint32_t pin_count, pin_room, pin_order;
_Atomic uint32_t ms_pin_count;

/* Lock held. */
static struct pin *find(uint64_t address)
{
    for (uint32_t i = 0; i < pin_count; i++) {
        if (pins[i].address == address)
            return &pins[i];
    }
    return NULL;
}

static void drop(struct pin *pin)
{
    *pin = pins[--pin_count];
    atomic_store_explicit(&ms_pin_count, pin_count, memory_order_relaxed);
}

void ms_pins_reset(void)
{
    ms_lock_reset(&lock);
    pins = NULL;
    pin_count = pin_room = 0;
    atomic_store_explicit(&ms_pin_count, 0, memory_order_relaxed);
}

uint32_t ms_pins_of(uint64_t address)
{
    ms_lock(&lock);
    const struct pin *pin = find(address);
    uint32_t count = pin ? pin->count : 0;
    ms_unlock(&lock);
    return count;
}

void ms_pins_forget(uint64_t address, uint64_t bytes)
{
    if (!ms_pins_any())
        return;
    ms_lock(&lock);
    for (uint32_t i = pin_count; i-- > 0;) {
        if (pins[i].address - address < bytes)
            drop(&pins[i]);
    }
    ms_unlock(&lock);
}

/* A whole block leaves with its segment. */
static void let_go(struct ms_slot *slot)
{
    struct ms_segment *segment = slot->run->segment;
    if (atomic_load_explicit(&segment->use, memory_order_relaxed) == MS_SEGMENT_SINGLE)
        segment->release = true;
}

bool ms_pins_hold(struct ms_heap *heap, struct ms_slot *slot, uint64_t address)
{
    bool held = false;
    ms_lock(&lock);
    struct pin *pin = find(address);
    if (pin && pin->count) {
        pin->freed = slot;
        held = true;
    } else if (pin) {
        let_go(slot);
        drop(pin);
    }
    ms_unlock(&lock);
    if (held)
        atomic_fetch_add_explicit(&heap->pinned_bytes, slot->run->slot_bytes, memory_order_relaxed);
    return held;
}

/* Lock held. */
static struct pin *make(uint64_t address)
{
    if (pin_count == pin_room) {
        uint32_t order, room = pin_room ? pin_room * 2 : 64;
        struct pin *wider = ms_table_array(room * sizeof(*wider), &order);
        if (!wider)
            return NULL;
        if (pin_count)
            memcpy(wider, pins, pin_count * sizeof(*pins));
        ms_table_drop_array(pins, pin_order);
        pins = wider;
        pin_room = room;
        pin_order = order;
    }
    struct pin *pin = &pins[pin_count++];
    *pin = (struct pin){.address = address};
    atomic_store_explicit(&ms_pin_count, pin_count, memory_order_relaxed);
    return pin;
}

bool ms_pool_pin(uint64_t address)
{
    struct ms_pool_block block;
    if (!ms_pool_find(address, &block))
        return false;
    ms_lock(&lock);
    struct pin *pin = find(block.address);
    if (!pin)
        pin = make(block.address);
    if (pin)
        pin->count++;
    ms_unlock(&lock);
    return pin != NULL;
}

void ms_pool_unpin(uint64_t address)
{
    struct ms_slot *slot = NULL;
    ms_lock(&lock);
    struct pin *pin = find(address);
    if (pin && pin->count && --pin->count == 0 && pin->freed) {
        slot = pin->freed;
        drop(pin);
    }
    ms_unlock(&lock);
    if (!slot)
        return;
    struct ms_heap *heap = slot->run->segment->heap;
    struct ms_lease *lease = ms_lease_lock(heap);
    if (ms_slot_state(slot) == MS_SLOT_PINNED) {
        atomic_fetch_sub_explicit(&heap->pinned_bytes, slot->run->slot_bytes, memory_order_relaxed);
        let_go(slot);
        ms_lease_put(heap, lease, slot);
    }
    ms_unlock(&lease->lock);
}
