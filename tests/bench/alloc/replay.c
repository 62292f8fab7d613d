/*
 * Replays a trace (docs/user/trace.md) as fast as it goes.
 *
 * Usage: replay TRACE. Prints completed (0 if an allocation failed: nothing was replayed beyond it), events,
 * live_peak_bytes, reserved_peak_bytes, vendor_calls and syncs (0 unless calls are counted), and
 * ns_per_event and cpu_ns_per_event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

struct event {
    uint32_t block;
    uint32_t stream;
    size_t bytes; /* 0: a free */
};

struct block {
    void *address;
    size_t bytes;
};

struct trace {
    struct event *events;
    struct block *blocks;
    size_t count, block_count, live_peak;
};

/* Ids are any numbers; while a block lives its place is found through a table, of which ids that are counted
 * up need one entry each. */
static uint32_t *places;
static size_t place_count;

static void note_place(unsigned long long id, uint32_t block)
{
    if (id > 1ull << 28)
        bench_die("an id in the trace is too large");
    if (id >= place_count) {
        size_t grown = 2 * (size_t)id + 1024;
        places = realloc(places, grown * sizeof *places);
        if (!places)
            bench_die("out of memory");
        memset(places + place_count, 0xff, (grown - place_count) * sizeof *places);
        place_count = grown;
    }
    places[id] = block;
}

static void add_event(struct trace *trace, struct event event)
{
    if (trace->count % 4096 == 0)
        trace->events = realloc(trace->events, (trace->count + 4096) * sizeof *trace->events);
    if (!trace->events)
        bench_die("out of memory");
    trace->events[trace->count++] = event;
}

static void read_line(struct trace *trace, const char *line)
{
    unsigned long long id, bytes;
    unsigned stream;
    char op;

    if (sscanf(line, "%*u %c %llu %llu %u", &op, &id, &bytes, &stream) != 4 || !strchr("afAF", op))
        bench_die("a line of the trace has another form");
    if (op == 'A' || op == 'F') /* a piece of a block */
        return;
    if (op == 'a') {
        note_place(id, (uint32_t)trace->block_count);
        add_event(trace, (struct event){(uint32_t)trace->block_count++, stream, bytes ? bytes : 1});
    } else {
        if (id >= place_count || places[id] == UINT32_MAX)
            bench_die("the trace frees what is not there");
        add_event(trace, (struct event){places[id], stream, 0});
        places[id] = UINT32_MAX;
    }
}

static void read_trace(struct trace *trace, const char *path)
{
    FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
    char *line = NULL;
    size_t room = 0, live = 0;

    if (!file)
        bench_die("the trace cannot be read");
    while (getline(&line, &room, file) > 0)
        if (*line != '#' && *line != '\n')
            read_line(trace, line);
    free(line);
    fclose(file);
    trace->blocks = calloc(trace->block_count + 1, sizeof *trace->blocks);
    if (!trace->blocks)
        bench_die("out of memory");
    for (size_t i = 0; i < trace->count; i++) {
        struct event *event = &trace->events[i];
        if (event->bytes)
            trace->blocks[event->block].bytes = event->bytes;
        live += event->bytes ? event->bytes : -trace->blocks[event->block].bytes;
        trace->live_peak = live > trace->live_peak ? live : trace->live_peak;
    }
}

/* How many events succeeded. */
static size_t replay(const struct bench_allocator *allocator, struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct event *event = &trace->events[i];
        struct block *block = &trace->blocks[event->block];
        unsigned stream = event->stream % BENCH_STREAMS_MAX;

        if (event->bytes && !(block->address = allocator->alloc(event->bytes, stream)))
            return i;
        if (!event->bytes)
            allocator->free(block->address, block->bytes, stream);
    }
    return trace->count;
}

int bench_replay(const struct bench_allocator *allocator, int argc, char **argv)
{
    struct trace trace = {0};

    if (argc != 1) {
        fprintf(stderr, "usage: replay TRACE\n");
        return 2;
    }
    read_trace(&trace, argv[0]);
    struct bench_counts before = bench_count();
    double begun = bench_now(), cpu_begun = bench_cpu();
    size_t done = replay(allocator, &trace);
    double ns = bench_now() - begun, cpu_ns = bench_cpu() - cpu_begun;
    struct bench_counts after = bench_count();
    printf("completed %d\nevents %zu\nlive_peak_bytes %zu\nreserved_peak_bytes %lld\nvendor_calls "
           "%lld\nsyncs %lld\n"
           "ns_per_event %.1f\ncpu_ns_per_event %.1f\n",
           done == trace.count, trace.count, trace.live_peak, after.peak_bytes,
           after.vendor_calls - before.vendor_calls, after.syncs - before.syncs,
           ns / (double)(trace.count + !trace.count), cpu_ns / (double)(trace.count + !trace.count));
    return 0;
}
