/* binary.c - a trace as records (record/file/trace_format.h).
 *
 * Floor 3.5. Of the first part that there is, if it is not the first that was written, the list of what was
 * live comes among the events. So events wait until all of it has come; their memory is bounded by the
 * part's. In further parts the list says what is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/live/ledger.h"
#include "record/phases/phases.h"
#include "trace/internal.h"

#define TICKS_MAX (INT64_MAX >> MS_TRACE_TICK_BITS)

struct shape {
    uint64_t bytes, address;
    uint32_t site;
    uint16_t stream;
    uint8_t kind;
    bool is_known;
};

struct ms_trace_binary {
    struct shape shapes[MS_TRACE_SHAPES];
    uint64_t ticks, ids[MS_LAYERS], part_ids[MS_LAYERS], part_ticks, part;
    uint32_t thread;
    bool is_begun, is_gathering; /* gathering: events wait for the list of what is live */
    /* The events that say what is live as the part begins, and those that happen meanwhile. */
    struct ms_trace_event *listed, *waiting;
    size_t listed_count, listed_room, waiting_count, waiting_room, listed_next, waiting_next;
};

/* The outcome of a record: an event; none; the trace is over; it is cut, which ends it; another trace begins;
 * it is none. */
enum outcome { EVENT, NOTHING, OVER, CUT, ANOTHER, BAD, NO_MEMORY };

bool ms_trace_take(struct ms_trace_cursor *cursor, uint64_t *number_p)
{
    *number_p = 0;
    for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
        unsigned char byte = *cursor->at++;

        if (shift > 63 || (shift == 63 && byte > 1))
            return false;
        *number_p |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static enum outcome take_shape(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor)
{
    uint64_t number, bytes, stream, site, kind;

    if (!ms_trace_take(cursor, &number) || !ms_trace_take(cursor, &bytes) ||
        !ms_trace_take(cursor, &stream) || !ms_trace_take(cursor, &site) || !ms_trace_take(cursor, &kind) ||
        number >= MS_TRACE_SHAPES || bytes > INT64_MAX || stream >= MS_TRACE_STREAMS ||
        site > MS_TRACE_NO_SITE || kind > MS_KIND_INNER)
        return BAD;
    binary->shapes[number] = (struct shape){.bytes = bytes,
                                            .site = site ? (uint32_t)site - 1 : MS_TRACE_NO_SITE,
                                            .stream = (uint16_t)stream,
                                            .kind = (uint8_t)kind,
                                            .is_known = true};
    return NOTHING;
}

static enum outcome take_stream(struct ms_trace_reader *reader, struct ms_trace_cursor *cursor)
{
    uint64_t number, maker, device, handle, thread;

    if (!ms_trace_take(cursor, &number) || !ms_trace_take(cursor, &maker) ||
        !ms_trace_take(cursor, &device) || !ms_trace_take(cursor, &handle) ||
        !ms_trace_take(cursor, &thread) || number >= MS_TRACE_STREAMS || maker >= MS_MAKER_COUNT ||
        thread > UINT32_MAX)
        return BAD;
    reader->streams[number] = (struct ms_trace_stream){
        .is_known = true, .thread = (uint32_t)thread, .device = ms_trace_unfold(device), .handle = handle};
    strcpy(reader->streams[number].api, ms_device_api(ms_device_first((enum ms_maker)maker)));
    return NOTHING;
}

static bool take_text(struct ms_trace_cursor *cursor, const char **text_p, size_t *count_p)
{
    uint64_t count;

    if (!ms_trace_take(cursor, &count) || count >= MS_TRACE_TEXT_BYTES)
        return false;
    if (count > (uint64_t)(cursor->end - cursor->at)) {
        cursor->at = cursor->end;
        return false;
    }
    *text_p = (const char *)cursor->at;
    *count_p = (size_t)count;
    cursor->at += count;
    return true;
}

static enum outcome take_phase(struct ms_trace_reader *reader, struct ms_trace_cursor *cursor)
{
    uint64_t number, source;
    const char *domain, *name;
    size_t domain_bytes, name_bytes;

    if (!ms_trace_take(cursor, &number) || !ms_trace_take(cursor, &source) ||
        !take_text(cursor, &domain, &domain_bytes) || !take_text(cursor, &name, &name_bytes) ||
        !ms_trace_name_phase(reader, number, source, domain, domain_bytes, name, name_bytes))
        return BAD;
    return NOTHING;
}

/* shape * 4 + how, address */
static bool take_block(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor,
                       struct ms_trace_event *event)
{
    uint64_t word, far = 0;
    struct shape *shape;

    if (!ms_trace_take(cursor, &word) || word >> 2 >= MS_TRACE_SHAPES || (word & 3) > MS_TRACE_BYTES)
        return false;
    shape = &binary->shapes[word >> 2];
    if (!shape->is_known || ((word & 3) != MS_TRACE_SAME && !ms_trace_take(cursor, &far)))
        return false;
    far = (uint64_t)ms_trace_unfold(far);
    shape->address += (word & 3) == MS_TRACE_PAGES ? far << MS_TRACE_PAGE_BITS : far;
    event->bytes = shape->bytes;
    event->address = shape->address;
    event->site = shape->site;
    event->stream = shape->stream;
    event->kind = shape->kind;
    event->layer = shape->kind == MS_KIND_INNER ? MS_LAYER_INNER : MS_LAYER_OUTER;
    event->op = MS_TRACE_ALLOC;
    return true;
}

static enum outcome take_alloc(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor,
                               struct ms_trace_event *event)
{
    if (!take_block(binary, cursor, event))
        return BAD;
    event->id = ++binary->ids[event->layer];
    return EVENT;
}

static enum outcome take_free(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor,
                              enum ms_layer layer, struct ms_trace_event *event)
{
    uint64_t ago;

    if (!ms_trace_take(cursor, &ago) || ago >= binary->ids[layer])
        return BAD;
    event->op = MS_TRACE_FREE;
    event->layer = (uint8_t)layer;
    event->id = binary->ids[layer] - ago;
    return EVENT;
}

static enum outcome take_begin(struct ms_trace_reader *reader, struct ms_trace_cursor *cursor,
                               struct ms_trace_event *event)
{
    uint64_t phase, nested;
    bool is_new;

    if (!ms_trace_take(cursor, &phase) || !ms_trace_take(cursor, &nested) ||
        !ms_trace_take(cursor, &event->id) || phase >= MS_TRACE_PHASES || nested > 1)
        return BAD;
    event->op = MS_TRACE_BEGIN;
    event->phase = (uint16_t)phase;
    event->is_nested = nested;
    if (!ms_trace_phase_begins(reader, event, &is_new))
        return NO_MEMORY;
    return is_new ? EVENT : NOTHING;
}

static enum outcome take_finish(struct ms_trace_reader *reader, struct ms_trace_cursor *cursor,
                                struct ms_trace_event *event)
{
    if (!ms_trace_take(cursor, &event->id))
        return BAD;
    event->op = MS_TRACE_END;
    return ms_trace_phase_ends(reader, event) ? EVENT : NOTHING; /* it began before what there is */
}

static enum outcome take_mark(struct ms_trace_cursor *cursor, struct ms_trace_event *event)
{
    uint64_t phase;

    if (!ms_trace_take(cursor, &phase) || phase >= MS_TRACE_PHASES)
        return BAD;
    event->op = MS_TRACE_MARK;
    event->phase = (uint16_t)phase;
    return EVENT;
}

static enum outcome take_part(struct ms_trace_reader *reader, struct ms_trace_cursor *cursor)
{
    struct ms_trace_binary *binary = reader->binary;
    uint64_t part, ticks, blocks, pieces, before;

    if (!ms_trace_take(cursor, &part) || !ms_trace_take(cursor, &ticks) || !ms_trace_take(cursor, &blocks) ||
        !ms_trace_take(cursor, &pieces) || !ms_trace_take(cursor, &before) || ticks > TICKS_MAX ||
        ticks < binary->ticks || blocks > INT64_MAX || pieces > INT64_MAX)
        return BAD;
    if (binary->is_begun && (binary->is_gathering || part != binary->part + 1 ||
                             blocks != binary->ids[MS_LAYER_OUTER] || pieces != binary->ids[MS_LAYER_INNER]))
        return BAD;
    if (!binary->is_begun)
        reader->fallen = before;
    binary->is_gathering = !binary->is_begun && part;
    binary->is_begun = true;
    binary->part = part;
    binary->ticks = binary->part_ticks = ticks;
    binary->ids[MS_LAYER_OUTER] = binary->part_ids[MS_LAYER_OUTER] = blocks;
    binary->ids[MS_LAYER_INNER] = binary->part_ids[MS_LAYER_INNER] = pieces;
    binary->thread = 0;
    memset(binary->shapes, 0, sizeof(binary->shapes));
    return NOTHING;
}

static bool keep(struct ms_trace_event **list_p, size_t *count_p, size_t *room_p,
                 const struct ms_trace_event *event)
{
    if (*count_p == *room_p) {
        size_t room = *room_p ? *room_p * 2 : 1024;
        struct ms_trace_event *list = realloc(*list_p, room * sizeof(*list));

        if (!list)
            return false;
        *list_p = list;
        *room_p = room;
    }
    (*list_p)[(*count_p)++] = *event;
    return true;
}

/* Of the first part alone; the others say it to whoever begins there. */
static enum outcome take_live(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor,
                              struct ms_trace_event *event)
{
    uint64_t before;

    if (!ms_trace_take(cursor, &before) || !take_block(binary, cursor, event) ||
        before >= binary->part_ids[event->layer])
        return BAD;
    if (!binary->is_gathering)
        return NOTHING;
    event->id = binary->part_ids[event->layer] - before;
    event->ns = binary->part_ticks << MS_TRACE_TICK_BITS;
    event->is_listed = true;
    event->thread = 0;
    return keep(&binary->listed, &binary->listed_count, &binary->listed_room, event) ? NOTHING : NO_MEMORY;
}

static enum outcome take_thread(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor)
{
    uint64_t thread;

    if (!ms_trace_take(cursor, &thread) || thread > UINT32_MAX)
        return BAD;
    binary->thread = (uint32_t)thread;
    return NOTHING;
}

static bool has_time(unsigned record)
{
    return record == MS_TRACE_R_ALLOC || record == MS_TRACE_R_FREE || record == MS_TRACE_R_FREE_INNER ||
           record == MS_TRACE_R_BEGIN || record == MS_TRACE_R_FINISH || record == MS_TRACE_R_MARK;
}

static bool take_time(struct ms_trace_binary *binary, struct ms_trace_cursor *cursor, unsigned code)
{
    uint64_t more = 0;

    if (code == MS_TRACE_TIME_MORE && !ms_trace_take(cursor, &more))
        return false;
    if (more > TICKS_MAX || binary->ticks + code + more > TICKS_MAX)
        return false;
    binary->ticks += code + more;
    return true;
}

static enum outcome take_record(struct ms_trace_reader *reader, struct ms_trace_cursor *cursor,
                                struct ms_trace_event *event)
{
    struct ms_trace_binary *binary = reader->binary;
    unsigned record = *cursor->at & 15, code = *cursor->at >> 4;

    cursor->at++;
    if (has_time(record) ? !take_time(binary, cursor, code) : code != 0)
        return BAD;
    *event = (struct ms_trace_event){.ns = binary->ticks << MS_TRACE_TICK_BITS,
                                     .site = MS_TRACE_NO_SITE,
                                     .thread = binary->thread,
                                     .kind = MS_KIND_COUNT};
    switch (record) {
    case MS_TRACE_R_END:
        return OVER;
    case MS_TRACE_R_ALLOC:
        return take_alloc(binary, cursor, event);
    case MS_TRACE_R_FREE:
        return take_free(binary, cursor, MS_LAYER_OUTER, event);
    case MS_TRACE_R_FREE_INNER:
        return take_free(binary, cursor, MS_LAYER_INNER, event);
    case MS_TRACE_R_SHAPE:
        return take_shape(binary, cursor);
    case MS_TRACE_R_THREAD:
        return take_thread(binary, cursor);
    case MS_TRACE_R_STREAM:
        return take_stream(reader, cursor);
    case MS_TRACE_R_PHASE:
        return take_phase(reader, cursor);
    case MS_TRACE_R_BEGIN:
        return take_begin(reader, cursor, event);
    case MS_TRACE_R_FINISH:
        return take_finish(reader, cursor, event);
    case MS_TRACE_R_MARK:
        return take_mark(cursor, event);
    case MS_TRACE_R_PART:
        return take_part(reader, cursor);
    case MS_TRACE_R_LIVE:
        return take_live(binary, cursor, event);
    case MS_TRACE_R_LISTED:
        binary->is_gathering = false;
        return NOTHING;
    default:
        return BAD;
    }
}

/* No records are the bytes that a trace begins with: a third one of 'm' has a time, and its kind has none. */
static bool begins_another(struct ms_trace_reader *reader)
{
    size_t count = ms_trace_input_want(&reader->input, sizeof(MS_TRACE_FIRST_WORDS) - 1);

    return count >= sizeof(MS_TRACE_FIRST_WORDS) - 1 &&
           memcmp(ms_trace_input_at(&reader->input), MS_TRACE_FIRST_WORDS,
                  sizeof(MS_TRACE_FIRST_WORDS) - 1) == 0;
}

/* The next record of all. One that the file's end cuts is not whole, and ends the trace. */
static enum outcome next_record(struct ms_trace_reader *reader, struct ms_trace_event *event)
{
    size_t count = ms_trace_input_want(&reader->input, MS_TRACE_RECORD_BYTES);
    const unsigned char *first;
    struct ms_trace_cursor cursor;
    enum outcome outcome;

    if (!count)
        return OVER;
    first = ms_trace_input_at(&reader->input);
    if (*first == *MS_TRACE_FIRST_WORDS && begins_another(reader))
        return ANOTHER;
    cursor = (struct ms_trace_cursor){first, first + count};
    outcome = take_record(reader, &cursor, event);
    if (outcome == BAD && cursor.at == cursor.end && count < MS_TRACE_RECORD_BYTES)
        return CUT;
    if (outcome != BAD)
        ms_trace_input_skip(&reader->input, (size_t)(cursor.at - first));
    if (outcome == OVER && begins_another(reader))
        return ANOTHER;
    if (outcome == OVER && reader->input.part_bytes && ms_trace_input_next_part(&reader->input) &&
        *ms_trace_input_at(&reader->input) == MS_TRACE_R_PART)
        return NOTHING;
    return outcome;
}

/* An event that was kept: first what is live, then what happened meanwhile. */
static bool take_kept(struct ms_trace_binary *binary, struct ms_trace_event *event_p)
{
    if (binary->listed_next < binary->listed_count)
        *event_p = binary->listed[binary->listed_next++];
    else if (binary->waiting_next < binary->waiting_count)
        *event_p = binary->waiting[binary->waiting_next++];
    else
        return false;
    return true;
}

static int fail_record(struct ms_trace_reader *reader, enum outcome outcome)
{
    char where[64];

    if (outcome == NO_MEMORY)
        return ms_trace_fail(reader, "", "no memory for what is in it");
    if (outcome == ANOTHER)
        return ms_trace_fail(reader, "", ms_trace_another);
    snprintf(where, sizeof(where), "byte %llu", (unsigned long long)reader->input.offset);
    return ms_trace_fail(reader, where, "is damaged: no record of a trace");
}

int ms_trace_binary_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p)
{
    struct ms_trace_binary *binary = reader->binary;
    enum outcome outcome;

    for (;;) {
        if (!binary->is_gathering && take_kept(binary, event_p))
            return 1;
        outcome = next_record(reader, event_p);
        if (outcome == ANOTHER || outcome == BAD || outcome == NO_MEMORY)
            return fail_record(reader, outcome);
        if ((outcome == OVER || outcome == CUT) && !binary->is_gathering)
            return 0;
        if (outcome == OVER || outcome == CUT)
            binary->is_gathering = false; /* it was killed with the list half done */
        if (outcome == EVENT && !binary->is_gathering)
            return 1;
        if (outcome == EVENT &&
            !keep(&binary->waiting, &binary->waiting_count, &binary->waiting_room, event_p))
            return fail_record(reader, NO_MEMORY);
    }
}

bool ms_trace_binary_open(struct ms_trace_reader *reader)
{
    reader->binary = calloc(1, sizeof(*reader->binary));
    return reader->binary != NULL;
}

void ms_trace_binary_close(struct ms_trace_binary *binary)
{
    if (!binary)
        return;
    free(binary->listed);
    free(binary->waiting);
    free(binary);
}
