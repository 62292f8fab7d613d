/* cmd_trace.c - memshim trace: what a recorded trace has, on one screen, or all of it as lines.
 *
 * Floor 5. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "record/live/ledger.h"
#include "report/text/text.h"
#include "trace/reader.h"

enum { ERROR_BYTES = 4608 };

struct trace_options {
    struct ms_cli_printing printing;
    bool text;
};

/* Different numbers, as many as there are: of sites, sizes, threads. */
struct distinct {
    uint64_t *places; /* + 1; a hash table */
    size_t count, room;
};

/* The allocations and frees of a layer. */
struct layer {
    uint64_t allocs, frees, live, peak, peak_ns, listed;
    struct distinct sizes, sites;
};

struct told {
    struct layer layers[MS_LAYERS];
    struct distinct threads, streams, phases;
    uint64_t events, begins, first_ns, last_ns;
};

static int trace_take(void *arg, int id, const char *value)
{
    struct trace_options *options = arg;

    if (id == 't')
        options->text = true;
    else
        ms_cli_take_printing(&options->printing, id, value);
    return 0;
}

/* --- what is counted --- */

static uint64_t *distinct_place(struct distinct *set, uint64_t number)
{
    size_t place = (number * 0x9e3779b97f4a7c15u >> 20) & (set->room - 1);

    while (set->places[place] && set->places[place] != number + 1)
        place = (place + 1) & (set->room - 1);
    return &set->places[place];
}

static bool distinct_add(struct distinct *set, uint64_t number)
{
    if (set->count >= set->room / 2) {
        struct distinct larger = {.room = set->room ? 2 * set->room : 256, .count = set->count};

        larger.places = calloc(larger.room, sizeof(*larger.places));
        if (!larger.places)
            return false;
        for (size_t i = 0; i < set->room; i++)
            if (set->places[i])
                *distinct_place(&larger, set->places[i] - 1) = set->places[i];
        free(set->places);
        *set = larger;
    }
    uint64_t *place = distinct_place(set, number);

    set->count += !*place;
    *place = number + 1;
    return true;
}

static bool count_block(struct told *told, const struct ms_trace_event *event)
{
    struct layer *layer = &told->layers[event->layer];

    if (event->op == MS_TRACE_FREE) {
        layer->frees++;
        layer->live -= event->bytes < layer->live ? event->bytes : layer->live;
        return true;
    }
    if (event->is_listed)
        layer->listed++;
    else
        layer->allocs++;
    layer->live += event->bytes;
    if (layer->live > layer->peak) {
        layer->peak = layer->live;
        layer->peak_ns = event->ns;
    }
    return distinct_add(&layer->sizes, event->bytes) && distinct_add(&told->streams, event->stream) &&
           (event->site == MS_TRACE_NO_SITE || distinct_add(&layer->sites, event->site));
}

static bool count_event(struct told *told, const struct ms_trace_event *event)
{
    if (!told->events++)
        told->first_ns = event->ns;
    told->events -= event->is_listed;
    told->last_ns = event->ns;
    told->begins += event->op == MS_TRACE_BEGIN || event->op == MS_TRACE_MARK;
    if (event->thread && !distinct_add(&told->threads, event->thread))
        return false;
    return event->op > MS_TRACE_FREE ? event->op == MS_TRACE_END || distinct_add(&told->phases, event->phase)
                                     : count_block(told, event);
}

static void told_close(struct told *told)
{
    for (unsigned i = 0; i < MS_LAYERS; i++) {
        free(told->layers[i].sizes.places);
        free(told->layers[i].sites.places);
    }
    free(told->threads.places);
    free(told->streams.places);
    free(told->phases.places);
}

/* --- the screen --- */

static void print_layer(FILE *out, const char *what, const struct layer *layer)
{
    if (!layer->allocs && !layer->frees && !layer->listed)
        return;
    fprintf(out, "%-13s%" PRIu64 " allocated, %" PRIu64 " freed\n", what, layer->allocs, layer->frees);
    fprintf(out, "%-13s%s at most, after %s; %s at the end\n", "", ms_text_size((json_int_t)layer->peak).text,
            ms_text_duration((json_int_t)layer->peak_ns).text, ms_text_size((json_int_t)layer->live).text);
    fprintf(out, "%-13s%zu sizes, from %zu call sites\n", "", layer->sizes.count, layer->sites.count);
}

static void print_told(FILE *out, const struct ms_trace_reader *trace, const struct told *told)
{
    const struct ms_trace_head *head = ms_trace_head(trace);
    uint64_t fallen = ms_trace_fallen(trace);

    fprintf(out, "%-13s", "trace of");
    ms_text_put(out, head->program);
    fprintf(out, ", process %" PRId64 "\n%-13smemshim ", head->pid, "by");
    ms_text_put(out, head->version);
    fprintf(out, "%s%s\n", head->is_text ? ", as text" : "", head->is_compressed ? ", compressed" : "");
    fprintf(out, "%-13s%" PRIu64 " in %s%s\n", "events", told->events,
            ms_text_duration((json_int_t)(told->last_ns - told->first_ns)).text,
            strstr(head->summary, "cut short")    ? "; it was cut short"
            : strstr(head->summary, "unfinished") ? "; the program did not end by itself"
                                                  : "");
    if (fallen)
        fprintf(out, "%-13s%" PRIu64 " came before and have fallen out (MEMSHIM_TRACE_MAX)\n", "", fallen);
    print_layer(out, "blocks", &told->layers[MS_LAYER_OUTER]);
    print_layer(out, "tensors", &told->layers[MS_LAYER_INNER]);
    fprintf(out, "%-13s%zu; threads %zu\n", "streams", told->streams.count, told->threads.count);
    if (told->phases.count)
        fprintf(out, "%-13s%zu names, %" PRIu64 " times\n", "phases", told->phases.count, told->begins);
}

static int trace_sum_up(struct ms_trace_reader *trace, FILE *out, char *error)
{
    struct told told = {.events = 0};
    struct ms_trace_event event;
    int result;

    while ((result = ms_trace_next(trace, &event)) > 0) {
        if (!count_event(&told, &event)) {
            snprintf(error, ERROR_BYTES, "no memory");
            result = -1;
            break;
        }
    }
    print_told(out, trace, &told); /* also of what is before the damage */
    told_close(&told);
    return result;
}

static int show_trace(const char *path, const struct trace_options *options)
{
    char error[ERROR_BYTES];
    struct ms_trace_reader *trace = ms_trace_open(path, error, sizeof(error));
    FILE *out = trace ? ms_cli_open_output(options->printing.output, options->printing.force) : NULL;
    int result = -1, status = MS_EXIT_USAGE;

    if (!trace)
        ms_cli_error("%s", error);
    if (out) {
        result = options->text ? ms_trace_print(trace, out, ms_text_put) : trace_sum_up(trace, out, error);
        status = ms_cli_close_output(out);
    }
    if (out && result < 0) {
        ms_cli_error("%s", error);
        status = MS_EXIT_USAGE;
    }
    ms_trace_close(trace);
    return status;
}

int ms_cmd_trace(int argc, char **argv)
{
    struct trace_options options = {.text = false};
    int first = ms_cli_parse(argc, argv, false, trace_take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 1) {
        ms_cli_error("%s; usage: memshim trace [OPTION...] TRACE",
                     argc == first ? "no trace given" : "one trace at a time");
        return MS_EXIT_USAGE;
    }
    return show_trace(argv[first], &options);
}
