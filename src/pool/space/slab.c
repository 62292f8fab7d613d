/* slab.c - blocks of up to 64 KiB: fixed classes, in spans.
 *
 * A span is an extent that is cut into slots of one class; it is taken from a chunk and goes back as soon as
 * it is empty. The first spans of a class are small and later ones larger, so that a class of which a program
 * has three blocks does not hold a megabyte. Classes are 512 bytes apart up to 4 KiB and then an eighth of a
 * power of two: a ninth is lost at most. Heap's lock held throughout. */
#include <string.h>

#include "pool/space/extents.h"
#include "pool/space/tables.h"

enum { MAP_BITS = 16 * 64 };

/* A multiple of the slot's size, at least a unit; twice the last one's number of slots, within bounds. */
static uint32_t slots_of_next_span(const struct ms_extents *extents, uint32_t class_index, uint32_t fewest)
{
    uint64_t bytes = ms_slab_bytes(class_index);
    uint64_t most = MS_SPAN_MOST_BYTES / bytes;
    uint64_t wanted = (uint64_t)fewest
                      << (extents->span_count[class_index] < 4 ? extents->span_count[class_index] / 2 : 4);
    if (most > MAP_BITS)
        most = MAP_BITS;
    if (wanted > MS_SPAN_SLOTS && wanted * bytes > 4 * MS_UNIT_BYTES)
        wanted = MS_SPAN_SLOTS > fewest ? MS_SPAN_SLOTS : fewest;
    return (uint32_t)(wanted > most ? most : wanted);
}

static void slab_list(struct ms_extents *extents, struct ms_extent *span)
{
    struct ms_extent **head = &extents->spans[span->class_index];
    span->previous = NULL;
    span->next = *head;
    if (*head)
        (*head)->previous = span;
    *head = span;
    span->listed = true;
}

static void unlist(struct ms_extents *extents, struct ms_extent *span)
{
    if (span->previous)
        span->previous->next = span->next;
    else
        extents->spans[span->class_index] = span->next;
    if (span->next)
        span->next->previous = span->previous;
    span->next = span->previous = NULL;
    span->listed = false;
}

static struct ms_extent *new_span(struct ms_extents *extents, uint32_t class_index)
{
    uint64_t slot_bytes = ms_slab_bytes(class_index);
    uint32_t fewest = (uint32_t)((MS_UNIT_BYTES + slot_bytes - 1) / slot_bytes);
    uint32_t count = slots_of_next_span(extents, class_index, fewest), order;
    struct ms_extent *span = ms_extent_take(extents, count * slot_bytes, MS_STEP_BYTES);
    if (!span && count > fewest)
        span = ms_extent_take(extents, (count = fewest) * slot_bytes,
                              MS_STEP_BYTES); /* what is left between others */
    if (!span)
        return NULL;
    struct ms_slot *slots = ms_table_array(MS_ARRAY_SLOTS, count * sizeof(*slots), &order);
    if (!slots) {
        ms_extent_put(extents, span);
        return NULL;
    }
    span->span.order = order;
    span->slot_bytes = slot_bytes;
    span->class_index = (uint8_t)class_index;
    span->span.reciprocal =
        (((uint64_t)1 << 32) + slot_bytes / MS_STEP_BYTES - 1) / (slot_bytes / MS_STEP_BYTES);
    span->span.used = 0;
    memset(span->map, 0, sizeof(span->map));
    for (uint32_t i = 0; i < count; i++) {
        slots[i].extent = span;
        slots[i].index = i;
        span->map[i / 64] |= (uint64_t)1 << i % 64;
    }
    ms_span_set_slots(span, slots, count);
    extents->span_count[class_index]++;
    slab_list(extents, span);
    return span;
}

static uint32_t slab_take_of(struct ms_extents *extents, struct ms_extent *span, struct ms_slot **items,
                             uint32_t count)
{
    uint32_t taken = 0, slot_count;
    struct ms_slot *slots = ms_span_slots(span, &slot_count);
    for (uint32_t word = 0; word < MS_ARRAY_LEN(span->map) && taken < count; word++) {
        while (span->map[word] && taken < count) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(span->map[word]);
            span->map[word] &= span->map[word] - 1;
            items[taken++] = &slots[i];
            ms_slot_set(&slots[i], MS_SLOT_READY);
        }
    }
    span->span.used += taken;
    if (span->span.used == slot_count)
        unlist(extents, span);
    return taken;
}

uint32_t ms_slab_take(struct ms_extents *extents, uint32_t class_index, struct ms_slot **items,
                      uint32_t count)
{
    uint32_t taken = 0;
    struct ms_extent *span = extents->spans[class_index];
    if (!span)
        span = new_span(extents, class_index);
    for (; span && taken < count; span = extents->spans[class_index])
        taken += slab_take_of(extents, span, items + taken, count - taken);
    return taken;
}

void ms_slab_put(struct ms_extents *extents, struct ms_slot *slot)
{
    struct ms_extent *span = slot->extent;
    ms_slot_set(slot, MS_SLOT_FREE);
    span->map[slot->index / 64] |= (uint64_t)1 << slot->index % 64;
    span->span.used--;
    if (!span->listed)
        slab_list(extents, span);
    if (span->span.used)
        return;
    unlist(extents, span);
    extents->span_count[span->class_index]--;
    uint32_t count;
    struct ms_slot *slots = ms_span_slots(span, &count);
    ms_span_set_slots(span, NULL, 0);
    ms_table_drop_array(MS_ARRAY_SLOTS, slots, span->span.order);
    ms_extent_put(extents, span);
}
