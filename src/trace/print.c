/* print.c - a trace as lines, whichever form it has.
 *
 * Floor 3.5. Streams and phases are introduced by comments before they are used; so are threads, each time
 * that another goes on. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "record/live/ledger.h"
#include "trace/internal.h"

struct printing {
    struct ms_trace_reader *reader;
    FILE *out;
    ms_trace_put *put;
    uint32_t thread;
    bool is_told;
    bool streams[MS_TRACE_STREAMS], phases[MS_TRACE_PHASES];
};

/* Blanks and what is no letter are "%20" and their like; "" is "-". */
static void print_escaped(FILE *out, const char *text)
{
    if (!*text || strcmp(text, "-") == 0)
        fputs(*text ? "%2d" : "-", out);
    else
        for (; *text; text++)
            fprintf(out, isgraph((unsigned char)*text) && *text != '%' ? "%c" : "%%%02x",
                    (unsigned char)*text);
}

static void print_head(const struct printing *p)
{
    p->put(p->out, p->reader->head.line);
    fputs("\n# columns: microseconds op(a|f|A|F) id bytes stream, and of a|A: site address kind\n# ", p->out);
    p->put(p->out, p->reader->head.summary);
    fputc('\n', p->out);
}

static void print_stream(struct printing *p, unsigned number)
{
    const struct ms_trace_stream *stream = &p->reader->streams[number];
    bool other = strcmp(stream->api, "cuda") != 0;

    if (!number || p->streams[number] || !stream->is_known)
        return;
    p->streams[number] = true;
    fprintf(p->out, "# stream %u: ", number);
    p->put(p->out, other ? stream->api : "");
    fprintf(p->out, "%sdevice %" PRId64 ", handle 0x%" PRIx64, other ? " " : "", stream->device,
            stream->handle);
    if (stream->thread)
        fprintf(p->out, ", thread %" PRIu32, stream->thread);
    fputc('\n', p->out);
}

static void print_phase(struct printing *p, unsigned number)
{
    const struct ms_trace_phase_name *phase = ms_trace_phase(p->reader, number);

    if (p->phases[number] || !p->reader->phases[number].name)
        return;
    p->phases[number] = true;
    fprintf(p->out, "# phase %u: %s ", number, ms_trace_sources[phase->source]);
    print_escaped(p->out, phase->domain);
    fputc(' ', p->out);
    print_escaped(p->out, phase->name);
    fputc('\n', p->out);
}

static void print_phase_event(struct printing *p, const struct ms_trace_event *event, uint64_t us)
{
    print_phase(p, event->phase);
    if (event->op == MS_TRACE_BEGIN)
        fprintf(p->out, "# begin %" PRIu64 " %u %" PRIu64 " %d\n", us, event->phase, event->id,
                event->is_nested);
    else if (event->op == MS_TRACE_END)
        fprintf(p->out, "# end %" PRIu64 " %" PRIu64 "\n", us, event->id);
    else
        fprintf(p->out, "# mark %" PRIu64 " %u\n", us, event->phase);
}

static void print_block(struct printing *p, const struct ms_trace_event *event, uint64_t us)
{
    const char *letters = event->layer == MS_LAYER_INNER ? "AF" : "af";

    print_stream(p, event->stream);
    fprintf(p->out, "%" PRIu64 " %c %" PRIu64 " %" PRIu64 " %u", us, letters[event->op == MS_TRACE_FREE],
            event->id, event->bytes, event->stream);
    if (event->op == MS_TRACE_ALLOC && event->site == MS_TRACE_NO_SITE)
        fprintf(p->out, " - 0x%" PRIx64, event->address);
    else if (event->op == MS_TRACE_ALLOC)
        fprintf(p->out, " %" PRIu32 " 0x%" PRIx64, event->site, event->address);
    if (event->op == MS_TRACE_ALLOC && event->kind <= MS_KIND_INNER)
        fprintf(p->out, " %s", ms_trace_kinds[event->kind]);
    fputc('\n', p->out);
}

static void print_event(struct printing *p, const struct ms_trace_event *event)
{
    uint64_t us = event->ns / 1000;

    if (!p->is_told && p->reader->fallen)
        fprintf(p->out, "# fallen %" PRIu64 "\n", p->reader->fallen);
    p->is_told = true;
    if (event->thread != p->thread)
        fprintf(p->out, "# thread %" PRIu32 "\n", event->thread);
    p->thread = event->thread;
    if (event->op > MS_TRACE_FREE)
        print_phase_event(p, event, us);
    else
        print_block(p, event, us);
}

int ms_trace_print(struct ms_trace_reader *reader, FILE *out, ms_trace_put *put)
{
    struct printing p = {.reader = reader, .out = out, .put = put};
    struct ms_trace_event event;
    int result = ms_trace_next(reader, &event);

    print_head(&p); /* of lines, the third is read with the first event */
    for (; result > 0; result = ms_trace_next(reader, &event))
        print_event(&p, &event);
    return result;
}
