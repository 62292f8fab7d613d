/* course.c - see course.h.
 *
 * Floor 5. */
#include "cli/tune/course.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/array.h"
#include "cli/tune/pieces.h"
#include "record/live/ledger.h"
#include "trace/reader.h"

enum { THREADS_MAX = 1024 };

/* The block that an id stands for now: a table with open addressing, at most half full. Ids may be any
 * numbers, and one may come again for another block once the first is freed. */
struct place {
    uint64_t id;
    uint32_t block; /* UINT32_MAX: none that is live */
    bool used;
};

struct reading {
    const char *path;
    struct ms_course *course;
    struct place *places;
    uint64_t *bytes;     /* by block */
    uint64_t *phase_ids; /* by phase: its number while it is open; 0: it has ended */
    size_t phase_room;
    size_t place_room, place_count, event_room, block_room, number;
    uint32_t threads[THREADS_MAX]; /* by the number that they have here */
    uint16_t thread_count;
    uint64_t live;
    const struct ms_pieces
        *pieces; /* both layers are read, but for the blocks that have pieces; NULL: one is */
    size_t outer_count;
    char *error;
    size_t error_bytes;
};

static int fail(const struct reading *reading, const char *what)
{
    snprintf(reading->error, reading->error_bytes, "%s: event %zu %s", reading->path, reading->number, what);
    return -1;
}

static struct place *place_find(struct place *places, size_t room, uint64_t id)
{
    size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);

    while (places[at].used && places[at].id != id)
        at = (at + 1) & (room - 1);
    return &places[at];
}

static int places_grow(struct reading *reading)
{
    size_t room = reading->place_room ? 2 * reading->place_room : 4096;
    struct place *places = calloc(room, sizeof(*places));

    if (!places)
        return fail(reading, "finds no memory");
    for (size_t i = 0; i < reading->place_room; i++)
        if (reading->places[i].used && reading->places[i].block != UINT32_MAX)
            *place_find(places, room, reading->places[i].id) = reading->places[i];
    free(reading->places);
    reading->places = places;
    reading->place_room = room;
    reading->place_count = 0;
    for (size_t i = 0; i < room; i++)
        reading->place_count += places[i].used;
    return 0;
}

/* The place of an id, new or not; NULL after an error. */
static struct place *place_of(struct reading *reading, uint64_t id)
{
    struct place *place;

    if (2 * reading->place_count >= reading->place_room && places_grow(reading) < 0)
        return NULL;
    place = place_find(reading->places, reading->place_room, id);
    if (!place->used) {
        *place = (struct place){.id = id, .block = UINT32_MAX, .used = true};
        reading->place_count++;
    }
    return place;
}

/* Gives an allocation its number, and a free that of its allocation. */
static int take_block(struct reading *reading, uint64_t id, struct ms_course_event *event)
{
    struct ms_course *course = reading->course;
    struct place *place = place_of(reading, id);
    uint64_t *bytes;

    if (!place)
        return -1;
    if ((event->bytes == 0) != (place->block != UINT32_MAX))
        return fail(reading, event->bytes ? "allocates what is not freed yet" : "frees what is not there");
    if (!event->bytes) {
        event->block = place->block;
        place->block = UINT32_MAX;
        reading->live -= reading->bytes[event->block];
        return 0;
    }
    bytes = ms_array_grow(reading->bytes, sizeof(*bytes), course->block_count, &reading->block_room, 4096);
    if (!bytes || course->block_count == UINT32_MAX - 1)
        return fail(reading, "finds no memory");
    reading->bytes = bytes;
    event->block = place->block = course->block_count;
    reading->bytes[course->block_count++] = event->bytes;
    if (__builtin_add_overflow(reading->live, event->bytes, &reading->live) || reading->live > INT64_MAX)
        return fail(reading, "has more memory live than any machine");
    if (reading->live > course->live_peak) {
        course->live_peak = reading->live;
        course->live_peak_event = course->count;
    }
    return 0;
}

static int take_event(struct reading *reading, uint64_t id, struct ms_course_event *event)
{
    struct ms_course *course = reading->course;
    struct ms_course_event *events;

    event->device = course->streams[event->stream].device;
    if (take_block(reading, id, event) < 0)
        return -1;
    events = ms_array_grow(course->events, sizeof(*events), course->count, &reading->event_room, 4096);
    if (!events)
        return fail(reading, "finds no memory");
    course->events = events;
    course->events[course->count++] = *event;
    return 0;
}

const char *ms_course_foreign(const struct ms_course *course)
{
    for (size_t i = 0; i < course->device_count; i++)
        if (strcmp(course->devices[i].api, "cuda") != 0)
            return strcmp(course->devices[i].api, "hip") == 0 ? "HIP" : "Ascend";
    return NULL;
}

/* The row of a device, which is made where there is none. */
static int device_row(struct reading *reading, const char *api, int64_t index)
{
    struct ms_course *course = reading->course;
    size_t i;

    for (i = 0; i < course->device_count; i++)
        if (course->devices[i].index == index && !strcmp(course->devices[i].api, api))
            return (int)i;
    if (i == MS_COURSE_DEVICES || index < 0 || index > INT16_MAX)
        return fail(reading, "is of a device that cannot be");
    course->devices[i].index = (int)index;
    snprintf(course->devices[i].api, sizeof(course->devices[i].api), "%.*s",
             (int)sizeof(course->devices[i].api) - 1, api);
    course->device_count++;
    return (int)i;
}

/* Looks a stream up as it is when an event comes: only one with a handle orders memory. */
static int take_stream(struct reading *reading, const struct ms_trace_reader *trace, unsigned number)
{
    const struct ms_trace_stream *stream = ms_trace_stream(trace, number);
    int row;

    if (!stream->is_known)
        return 0;
    row = device_row(reading, stream->api, stream->device);
    if (row < 0)
        return -1;
    reading->course->streams[number] =
        (struct ms_course_stream){.device = (uint8_t)row, .ordered = stream->handle != 0};
    return 0;
}

/* Numbers of the kernel's become small ones, in the order in which they come; beyond the last one all are
 * that. */
static uint16_t thread_row(struct reading *reading, uint32_t thread)
{
    uint16_t i;

    for (i = 0; i < reading->thread_count; i++)
        if (reading->threads[i] == thread)
            return i;
    if (i == THREADS_MAX)
        return THREADS_MAX - 1;
    reading->threads[reading->thread_count++] = thread;
    return i;
}

static int begin_phase(struct reading *reading, const char *name, uint64_t id)
{
    struct ms_course *course = reading->course;

    if (course->phase_count == reading->phase_room) {
        size_t room = reading->phase_room ? 2 * reading->phase_room : 64;
        struct ms_course_phase *phases = realloc(course->phases, room * sizeof(*phases));
        uint64_t *ids;

        if (!phases)
            return fail(reading, "finds no memory");
        course->phases = phases;
        ids = realloc(reading->phase_ids, room * sizeof(*ids));
        if (!ids)
            return fail(reading, "finds no memory");
        reading->phase_ids = ids;
        reading->phase_room = room;
    }
    course->phases[course->phase_count] = (struct ms_course_phase){strdup(name), course->count, SIZE_MAX};
    reading->phase_ids[course->phase_count] = id;
    return course->phases[course->phase_count++].name ? 0 : fail(reading, "finds no memory");
}

/* One that does not end lasts until the end of all: id 0. */
static void end_phases(struct reading *reading, uint64_t id)
{
    struct ms_course *course = reading->course;

    for (size_t i = course->phase_count; i-- > 0;) {
        if (!reading->phase_ids[i] || (id && reading->phase_ids[i] != id))
            continue;
        course->phases[i].end = course->count;
        reading->phase_ids[i] = 0;
        if (id)
            return;
    }
}

static int take_phase(struct reading *reading, const struct ms_trace_reader *trace,
                      const struct ms_trace_event *traced)
{
    if (traced->op == MS_TRACE_BEGIN && traced->id)
        return begin_phase(reading, ms_trace_phase(trace, traced->phase)->name, traced->id);
    if (traced->op == MS_TRACE_END && traced->id)
        end_phases(reading, traced->id);
    return 0;
}

/* Numbers of the two layers are kept apart. False for an event that is left out. */
static bool take_layer(struct reading *reading, const struct ms_trace_event *traced, uint64_t *id_p)
{
    bool inner = traced->layer == MS_LAYER_INNER;

    *id_p = traced->id;
    if (!reading->pieces && inner != reading->course->inner) {
        reading->course->other_count++;
        return false;
    }
    if (!reading->pieces)
        return true;
    *id_p = traced->id * 2 + inner;
    if (inner)
        return true;
    if (traced->op == MS_TRACE_ALLOC)
        return !reading->pieces->holds[reading->outer_count++];
    return reading->place_room && place_find(reading->places, reading->place_room, *id_p)->used;
}

static int take_traced(struct reading *reading, const struct ms_trace_reader *trace,
                       const struct ms_trace_event *traced)
{
    struct ms_course_event event = {.ns = traced->ns, .site = MS_COURSE_NO_SITE, .stream = traced->stream};
    bool inner = traced->layer == MS_LAYER_INNER && !reading->pieces;
    uint64_t id;

    reading->number++;
    if (traced->op > MS_TRACE_FREE)
        return take_phase(reading, trace, traced);
    if (!take_layer(reading, traced, &id))
        return 0;
    if (take_stream(reading, trace, traced->stream) < 0)
        return -1;
    if (traced->op == MS_TRACE_ALLOC) {
        event.bytes = traced->bytes + !traced->bytes;
        event.site = traced->site == MS_TRACE_NO_SITE ? MS_COURSE_NO_SITE : traced->site;
    }
    event.thread = thread_row(reading, traced->thread);
    event.kind = reading->pieces && traced->layer == MS_LAYER_INNER ? MS_KIND_DEVICE
                 : traced->kind < MS_KIND_COUNT                     ? traced->kind
                 : inner                                            ? MS_KIND_INNER
                 : reading->course->streams[traced->stream].ordered ? MS_KIND_ASYNC
                                                                    : MS_KIND_DEVICE;
    return take_event(reading, id, &event);
}

static int read_trace(struct reading *reading, struct ms_trace_reader *trace)
{
    const struct ms_trace_head *head = ms_trace_head(trace);
    struct ms_trace_event event;
    int result;

    if (asprintf(&reading->course->title, "%s, process %" PRId64, head->program, head->pid) < 0) {
        reading->course->title = NULL;
        return fail(reading, "finds no memory");
    }
    while ((result = ms_trace_next(trace, &event)) == 1)
        if (take_traced(reading, trace, &event) < 0)
            return -1;
    end_phases(reading, 0);
    return result;
}

static int read_path(const char *path, const struct ms_pieces *pieces, bool inner, struct ms_course *course,
                     char *error, size_t error_bytes)
{
    static struct reading reading;
    struct ms_trace_reader *trace = ms_trace_open(path, error, error_bytes);
    int result;

    memset(course, 0, sizeof(*course));
    if (!trace)
        return -1;
    reading = (struct reading){
        .path = path, .course = course, .pieces = pieces, .error = error, .error_bytes = error_bytes};
    course->inner = inner;
    device_row(&reading, "cuda", 0); /* of stream 0, which no line is about */
    result = read_trace(&reading, trace);
    ms_trace_close(trace);
    free(reading.places);
    free(reading.bytes);
    free(reading.phase_ids);
    if (result < 0)
        ms_course_close(course);
    return result;
}

int ms_course_read(const char *path, bool inner, struct ms_course *course, char *error, size_t error_bytes)
{
    return read_path(path, NULL, inner, course, error, error_bytes);
}

int ms_course_read_uncached(const char *path, struct ms_course *course, char *error, size_t error_bytes)
{
    struct ms_pieces pieces;
    int result = ms_pieces_find(path, &pieces, error, error_bytes);

    if (result == 0)
        result = read_path(path, &pieces, false, course, error, error_bytes);
    ms_pieces_close(&pieces);
    return result;
}

void ms_course_close(struct ms_course *course)
{
    for (size_t i = 0; i < course->phase_count; i++)
        free(course->phases[i].name);
    free(course->phases);
    free(course->events);
    free(course->title);
    memset(course, 0, sizeof(*course));
}
