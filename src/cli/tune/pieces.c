/* pieces.c - see pieces.h.
 *
 * Floor 5. Blocks that live are kept by address; segments are few, and a piece is looked up by halves. Memory
 * by handle has no address of its own in a trace: it is an allocator's that maps it, as PyTorch's expandable
 * segments, and counts as having pieces. */
#include "cli/tune/pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/array.h"
#include "record/live/ledger.h"
#include "trace/reader.h"

struct range {
    uint64_t address, bytes;
    size_t block;
};

struct finding {
    struct ms_pieces *pieces;
    struct range *live; /* by address */
    size_t live_count, live_room, holds_room, piece_count, astray, mapped;
};

/* The first that begins behind the address. */
static size_t range_after(const struct finding *finding, uint64_t address)
{
    size_t low = 0, high = finding->live_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (finding->live[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False without memory. */
static bool add_block(struct finding *finding, const struct ms_trace_event *event)
{
    struct ms_pieces *pieces = finding->pieces;
    bool *holds = ms_array_grow(pieces->holds, sizeof(*holds), pieces->count, &finding->holds_room, 1024);
    struct range *live;
    size_t at;

    if (!holds)
        return false;
    pieces->holds = holds;
    holds[pieces->count++] = !event->address;
    if (!event->address) {
        finding->mapped++;
        return true;
    }
    live = ms_array_grow(finding->live, sizeof(*live), finding->live_count, &finding->live_room, 1024);
    if (!live)
        return false;
    finding->live = live;
    at = range_after(finding, event->address);
    memmove(live + at + 1, live + at, (finding->live_count++ - at) * sizeof(*live));
    live[at] = (struct range){event->address, event->bytes, pieces->count - 1};
    return true;
}

static void remove_block(struct finding *finding, const struct ms_trace_event *event)
{
    size_t after = range_after(finding, event->address);

    if (!event->address || !after || finding->live[after - 1].address != event->address)
        return;
    memmove(finding->live + after - 1, finding->live + after,
            (finding->live_count-- - after) * sizeof(*finding->live));
}

static void add_piece(struct finding *finding, const struct ms_trace_event *event)
{
    size_t after = range_after(finding, event->address);
    const struct range *range = after ? &finding->live[after - 1] : NULL;

    finding->piece_count++;
    if (range && event->address - range->address < range->bytes)
        finding->pieces->holds[range->block] = true;
    else
        finding->astray++;
}

static bool take_event(struct finding *finding, const struct ms_trace_event *event)
{
    if (event->op == MS_TRACE_ALLOC && event->layer == MS_LAYER_INNER)
        add_piece(finding, event);
    else if (event->op == MS_TRACE_ALLOC)
        return add_block(finding, event);
    else if (event->op == MS_TRACE_FREE && event->layer != MS_LAYER_INNER)
        remove_block(finding, event);
    return true;
}

int ms_pieces_find(const char *path, struct ms_pieces *pieces, char *error, size_t error_bytes)
{
    struct ms_trace_reader *trace;
    struct finding finding = {.pieces = pieces};
    struct ms_trace_event event;
    int result;

    memset(pieces, 0, sizeof(*pieces));
    trace = ms_trace_open(path, error, error_bytes);
    if (!trace)
        return -1;
    while ((result = ms_trace_next(trace, &event)) == 1)
        if (!take_event(&finding, &event)) {
            snprintf(error, error_bytes, "%s: no memory for its blocks", path);
            result = -1;
            break;
        }
    ms_trace_close(trace);
    free(finding.live);
    return result < 0 ? -1 : !finding.piece_count || (finding.astray && !finding.mapped);
}

uint64_t ms_pieces_beside(const struct ms_pieces *pieces, const struct ms_course *blocks)
{
    uint64_t *bytes = calloc((size_t)blocks->block_count + 1, sizeof(*bytes)), live = 0, most = 0;

    for (size_t i = 0; bytes && i < blocks->count; i++) {
        const struct ms_course_event *event = &blocks->events[i];

        if (event->block >= pieces->count || pieces->holds[event->block])
            continue;
        live = event->bytes ? live + event->bytes : live - bytes[event->block];
        if (event->bytes)
            bytes[event->block] = event->bytes;
        most = live > most ? live : most;
    }
    free(bytes);
    return most;
}

void ms_pieces_close(struct ms_pieces *pieces)
{
    free(pieces->holds);
    pieces->holds = NULL;
}
