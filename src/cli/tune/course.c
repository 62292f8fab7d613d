/* course.c - see course.h.
 *
 * Floor 5. read_lines() is the one place that knows the trace's form. */
#include "cli/tune/course.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/array.h"
#include "record/live/ledger.h"

#define NS_OF_US 1000

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
    uint64_t *bytes; /* by block */
    size_t place_room, place_count, event_room, block_room, line;
    uint64_t live;
    char *error;
    size_t error_bytes;
};

static int fail(const struct reading *reading, const char *what)
{
    snprintf(reading->error, reading->error_bytes, "%s: line %zu %s", reading->path, reading->line, what);
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

    if (course->count && course->events[course->count - 1].ns > event->ns)
        return fail(reading, "is earlier than the one before it");
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

/* The row of a device, which is made where there is none. */
static int device_row(struct reading *reading, const char *api, int index)
{
    struct ms_course *course = reading->course;
    size_t i;

    for (i = 0; i < course->device_count; i++)
        if (course->devices[i].index == index && !strcmp(course->devices[i].api, api))
            return (int)i;
    if (i == MS_COURSE_DEVICES)
        return fail(reading, "names more devices than there can be");
    course->devices[i].index = index;
    snprintf(course->devices[i].api, sizeof(course->devices[i].api), "%s", api);
    course->device_count++;
    return (int)i;
}

/* "# stream N: [api ]device D, handle 0xH[, thread T]": only a stream with a handle orders memory. */
static int introduce(struct reading *reading, const char *text)
{
    char api[16] = "cuda";
    unsigned number, device;
    uint64_t handle;
    int row;

    if (sscanf(text, "# stream %u: device %u, handle 0x%" SCNx64, &number, &device, &handle) != 3 &&
        sscanf(text, "# stream %u: %15s device %u, handle 0x%" SCNx64, &number, api, &device, &handle) != 4)
        return 0;
    if (number >= MS_COURSE_STREAMS || device > INT16_MAX)
        return fail(reading, "names a stream or a device that cannot be");
    row = device_row(reading, api, (int)device);
    if (row < 0)
        return -1;
    reading->course->streams[number] =
        (struct ms_course_stream){.device = (uint8_t)row, .ordered = handle != 0};
    return 0;
}

static int read_event(struct reading *reading, const char *text)
{
    struct ms_course_event event = {.site = MS_COURSE_NO_SITE};
    uint64_t us, id, bytes;
    unsigned stream, site;
    char op;
    int end = 0;
    bool frees;

    if (sscanf(text, "%" SCNu64 " %c %" SCNu64 " %" SCNu64 " %u%n", &us, &op, &id, &bytes, &stream, &end) !=
            5 ||
        !strchr("afAF", op) || us > INT64_MAX / NS_OF_US || stream >= MS_COURSE_STREAMS || bytes > INT64_MAX)
        return fail(reading, "is no line of a trace: microseconds a|f|A|F id bytes stream [site address]");
    if ((op == 'A' || op == 'F') != reading->course->inner) {
        reading->course->other_count++;
        return 0;
    }
    frees = op == 'f' || op == 'F';
    if (sscanf(text + end, " %u 0x", &site) == 1)
        event.site = site;
    event.ns = us * NS_OF_US;
    event.bytes = frees ? 0 : bytes + !bytes;
    event.stream = (uint16_t)stream;
    event.kind = reading->course->inner                     ? MS_KIND_INNER
                 : reading->course->streams[stream].ordered ? MS_KIND_ASYNC
                                                            : MS_KIND_DEVICE;
    return take_event(reading, id, &event);
}

static int read_lines(struct reading *reading, FILE *file)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    int result = 0;

    while (result == 0 && (length = getline(&text, &room, file)) > 0 && text[length - 1] == '\n') {
        text[length - 1] = '\0';
        if (++reading->line == 1 && !strncmp(text, "# memshim ", 10))
            result = (reading->course->title = strdup(text + 2)) ? 0 : fail(reading, "finds no memory");
        else if (*text == '#')
            result = introduce(reading, text);
        else if (*text)
            result = read_event(reading, text);
    }
    if (result == 0 && !reading->line)
        result = fail(reading, "does not begin a trace");
    free(text);
    return result;
}

int ms_course_read(const char *path, bool inner, struct ms_course *course, char *error, size_t error_bytes)
{
    struct reading reading = {.path = path, .course = course, .error = error, .error_bytes = error_bytes};
    struct stat st;
    int fd = ms_file_open_regular(path, &st), result;
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    memset(course, 0, sizeof(*course));
    course->inner = inner;
    device_row(&reading, "cuda", 0); /* of stream 0, which no line is about */
    if (!file) {
        snprintf(error, error_bytes, "cannot read %s: %s", path,
                 errno == EINVAL ? "no regular file" : strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    result = read_lines(&reading, file);
    fclose(file);
    free(reading.places);
    free(reading.bytes);
    if (result < 0)
        ms_course_close(course);
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
