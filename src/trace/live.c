/* live.c - see live.h.
 *
 * Floor 3.5. Open addressing, linear probing, no tombstones: what follows a place that becomes free moves
 * up. */
#include "trace/live.h"

#include <stdlib.h>

enum { ROOM = 1024 };

static size_t place_of(const struct ms_trace_live *live, uint64_t id)
{
    size_t place = (id * 0x9e3779b97f4a7c15u >> 20) & (live->room - 1);

    while (live->places[place].id && live->places[place].id != id)
        place = (place + 1) & (live->room - 1);
    return place;
}

const struct ms_trace_event *ms_trace_live_find(const struct ms_trace_live *live, uint64_t id)
{
    const struct ms_trace_event *event = live->room ? &live->places[place_of(live, id)] : NULL;

    return event && event->id ? event : NULL;
}

static bool live_make_room(struct ms_trace_live *live)
{
    struct ms_trace_live larger = {.room = live->room ? live->room * 2 : ROOM};

    if (live->count + 1 < live->room / 4 * 3)
        return true;
    larger.places = calloc(larger.room, sizeof(*larger.places));
    if (!larger.places)
        return false;
    for (size_t i = 0; i < live->room; i++)
        if (live->places[i].id)
            larger.places[place_of(&larger, live->places[i].id)] = live->places[i];
    free(live->places);
    live->places = larger.places;
    live->room = larger.room;
    return true;
}

bool ms_trace_live_add(struct ms_trace_live *live, const struct ms_trace_event *event)
{
    struct ms_trace_event *place;

    if (!live_make_room(live))
        return false;
    place = &live->places[place_of(live, event->id)];
    live->count += !place->id;
    live->bytes += event->bytes - (place->id ? place->bytes : 0);
    *place = *event;
    return true;
}

void ms_trace_live_remove(struct ms_trace_live *live, uint64_t id)
{
    size_t mask = live->room - 1, gap, next;

    if (!live->room || !live->places[gap = place_of(live, id)].id)
        return;
    live->bytes -= live->places[gap].bytes;
    for (next = (gap + 1) & mask; live->places[next].id; next = (next + 1) & mask) {
        size_t home = (live->places[next].id * 0x9e3779b97f4a7c15u >> 20) & mask;

        if (((next - home) & mask) < ((next - gap) & mask))
            continue;
        live->places[gap] = live->places[next];
        gap = next;
    }
    live->places[gap].id = 0;
    live->count--;
}
