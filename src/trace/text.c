/* text.c - a trace as lines.
 *
 * Floor 3.5. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/live/ledger.h"
#include "record/phases/phases.h"
#include "trace/internal.h"

enum { LINE_BYTES = 1 << 12 /* more than any line has */, NS_OF_US = 1000, SUMMARY_LINE = 3 };
#define US_MAX (INT64_MAX / NS_OF_US)

const char *const ms_trace_kinds[] = {
    [MS_KIND_DEVICE] = "device", [MS_KIND_ASYNC] = "async",   [MS_KIND_MANAGED] = "managed",
    [MS_KIND_ARRAY] = "array",   [MS_KIND_HANDLE] = "handle", [MS_KIND_GRAPH] = "graph",
    [MS_KIND_INNER] = "inner"};
const char *const ms_trace_sources[] = {[MS_PHASE_MEMSHIM] = "memshim",
                                        [MS_PHASE_NVTX] = "nvtx",
                                        [MS_PHASE_ROCTX] = "roctx",
                                        [MS_PHASE_MSTX] = "mstx"};

bool ms_trace_line(struct ms_trace_reader *reader, const char **text_p, size_t *count_p)
{
    size_t count = ms_trace_input_want(&reader->input, LINE_BYTES);
    const char *text = (const char *)ms_trace_input_at(&reader->input);
    const char *end = count ? memchr(text, '\n', count < LINE_BYTES ? count : LINE_BYTES) : NULL;

    reader->line++;
    if (!end)
        return false;
    *text_p = text;
    *count_p = (size_t)(end - text);
    ms_trace_input_skip(&reader->input, *count_p + 1);
    return true;
}

static int fail_line(struct ms_trace_reader *reader, const char *what)
{
    char where[64];

    snprintf(where, sizeof(where), "line %zu", reader->line);
    return ms_trace_fail(reader, where, what);
}

/* "# stream N: [api ]device D, handle 0xH[, thread T]" */
static void text_introduce(struct ms_trace_reader *reader, const char *text)
{
    struct ms_trace_stream stream = {.api = "cuda", .is_known = true};
    long long device;
    unsigned long long handle = 0;
    unsigned number, thread = 0;
    int end = 0;

    if (sscanf(text, "# stream %u: device %lld%n", &number, &device, &end) != 2 &&
        sscanf(text, "# stream %u: %32s device %lld%n", &number, stream.api, &device, &end) != 3)
        return;
    sscanf(text + end, ", handle 0x%llx, thread %u", &handle, &thread);
    stream.device = device;
    stream.handle = handle;
    stream.thread = thread;
    if (number < MS_TRACE_STREAMS)
        reader->streams[number] = stream;
}

/* A text without blanks and controls: these are "%20" and their like, and "-" is "". */
static size_t unescape(char *text)
{
    char *to = text;

    if (strcmp(text, "-") == 0)
        return 0;
    for (const char *from = text; *from; from++) {
        unsigned byte;

        if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    return (size_t)(to - text);
}

/* "# phase P: SOURCE DOMAIN NAME" */
static bool read_phase(struct ms_trace_reader *reader, const char *text)
{
    char source[16], domain[3 * MS_TRACE_TEXT_BYTES], name[3 * MS_TRACE_TEXT_BYTES];
    unsigned number, i = 0;

    if (sscanf(text, "# phase %u: %15s %767s %767s", &number, source, domain, name) != 4)
        return true;
    while (i < MS_PHASE_SOURCES && strcmp(source, ms_trace_sources[i]) != 0)
        i++;
    size_t domain_bytes = unescape(domain), name_bytes = unescape(name);
    return i == MS_PHASE_SOURCES ||
           ms_trace_name_phase(reader, number, i, domain, domain_bytes, name, name_bytes) ||
           number >= MS_TRACE_PHASES;
}

/* "# begin MICROSECONDS PHASE NUMBER NESTED", "# end MICROSECONDS NUMBER", "# mark MICROSECONDS PHASE". False
 * if it is none of these. */
static bool read_phase_event(struct ms_trace_reader *reader, const char *text, struct ms_trace_event *event)
{
    unsigned long long us, id = 0;
    unsigned phase = 0, nested = 0;
    bool is_new = true;

    *event = (struct ms_trace_event){
        .site = MS_TRACE_NO_SITE, .thread = reader->thread, .kind = MS_KIND_COUNT, .op = MS_TRACE_END};
    if (sscanf(text, "# begin %llu %u %llu %u", &us, &phase, &id, &nested) == 4)
        event->op = MS_TRACE_BEGIN;
    else if (sscanf(text, "# mark %llu %u", &us, &phase) == 2)
        event->op = MS_TRACE_MARK;
    else if (sscanf(text, "# end %llu %llu", &us, &id) != 2)
        return false;
    event->id = id;
    event->phase = (uint16_t)phase;
    event->is_nested = nested == 1;
    if (us > US_MAX || us * NS_OF_US < reader->last_ns || phase >= MS_TRACE_PHASES || nested > 1)
        return false;
    event->ns = us * NS_OF_US;
    if (event->op == MS_TRACE_END)
        return ms_trace_phase_ends(reader, event);
    return event->op == MS_TRACE_MARK || (ms_trace_phase_begins(reader, event, &is_new) && is_new);
}

/* 1 for an event, 0 for none, -1 for want of memory, or where another trace begins. */
static int read_comment(struct ms_trace_reader *reader, const char *text, size_t count,
                        struct ms_trace_event *event)
{
    char copy[LINE_BYTES];
    unsigned thread;

    snprintf(copy, sizeof(copy), "%.*s", (int)count, text);
    if (strncmp(copy, MS_TRACE_FIRST_WORDS " ", sizeof(MS_TRACE_FIRST_WORDS)) == 0)
        return fail_line(reader, ms_trace_another);
    if (reader->line == SUMMARY_LINE)
        ms_trace_read_summary(reader, text, count);
    if (read_phase_event(reader, copy, event))
        return 1;
    text_introduce(reader, copy);
    if (sscanf(copy, "# thread %u", &thread) == 1)
        reader->thread = thread;
    sscanf(copy, "# fallen %" SCNu64, &reader->fallen);
    return read_phase(reader, copy) ? 0 : ms_trace_fail(reader, "", "no memory for what is in it");
}

/* A number behind any blanks, in decimal or, behind "0x", in hexadecimal. */
static bool take_number(const char **at_p, const char *end, uint64_t *number_p)
{
    const char *at = *at_p, *first;
    unsigned base = 10, digit;

    while (at < end && *at == ' ')
        at++;
    if (end - at > 2 && at[0] == '0' && at[1] == 'x')
        base = 16, at += 2;
    for (first = at, *number_p = 0; at < end; at++) {
        digit = *at >= '0' && *at <= '9' ? (unsigned)(*at - '0') : (unsigned)((*at | 32) - 'a') + 10;
        if (digit >= base || __builtin_mul_overflow(*number_p, base, number_p) ||
            __builtin_add_overflow(*number_p, digit, number_p))
            break;
    }
    *at_p = at;
    return at > first && (at == end || *at == ' ');
}

static bool take_op(const char **at_p, const char *end, struct ms_trace_event *event)
{
    const char *at = *at_p;

    if (end - at < 3 || *at != ' ' || at[2] != ' ' || !strchr("afAF", at[1]))
        return false;
    event->op = at[1] == 'f' || at[1] == 'F' ? MS_TRACE_FREE : MS_TRACE_ALLOC;
    event->layer = at[1] == 'A' || at[1] == 'F' ? MS_LAYER_INNER : MS_LAYER_OUTER;
    *at_p = at + 2;
    return true;
}

/* " KIND", or nothing, as earlier versions have it. */
static bool take_kind(const char **at_p, const char *end, struct ms_trace_event *event)
{
    size_t count = (size_t)(end - *at_p);

    if (!count)
        return true;
    for (unsigned kind = 0; kind <= MS_KIND_INNER; kind++) {
        const char *name = ms_trace_kinds[kind];

        if (count == strlen(name) + 1 && strncmp(*at_p + 1, name, count - 1) == 0) {
            event->kind = (uint8_t)kind;
            *at_p = end;
            return true;
        }
    }
    return false;
}

/* " SITE 0xADDRESS", or nothing, as traces of the first versions have it. */
static bool take_place(const char **at_p, const char *end, struct ms_trace_event *event)
{
    uint64_t site = MS_TRACE_NO_SITE;

    event->site = MS_TRACE_NO_SITE;
    if (*at_p == end)
        return true;
    if (end - *at_p > 2 && !strncmp(*at_p, " - ", 3))
        *at_p += 2;
    else if (!take_number(at_p, end, &site) || site >= MS_TRACE_NO_SITE)
        return false;
    event->site = (uint32_t)site;
    return take_number(at_p, end, &event->address) && take_kind(at_p, end, event);
}

static bool take_event(const char *at, const char *end, struct ms_trace_event *event)
{
    uint64_t us, stream;

    if (!take_number(&at, end, &us) || us > US_MAX || !take_op(&at, end, event) ||
        !take_number(&at, end, &event->id) || !take_number(&at, end, &event->bytes) ||
        !take_number(&at, end, &stream) || event->bytes > INT64_MAX || stream >= MS_TRACE_STREAMS ||
        !take_place(&at, end, event) || at != end)
        return false;
    event->ns = us * NS_OF_US;
    event->stream = (uint16_t)stream;
    return true;
}

static int read_event(struct ms_trace_reader *reader, const char *text, size_t count,
                      struct ms_trace_event *event_p)
{
    *event_p = (struct ms_trace_event){.kind = MS_KIND_COUNT, .thread = reader->thread};
    if (!take_event(text, text + count, event_p))
        return fail_line(reader,
                         "is no line of a trace: microseconds a|f|A|F id bytes stream [site address [kind]]");
    if (event_p->ns < reader->last_ns)
        return fail_line(reader, "is earlier than the one before it");
    return 1;
}

int ms_trace_text_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p)
{
    const char *text;
    size_t count;

    while (ms_trace_line(reader, &text, &count)) {
        int result = *text == '#' ? read_comment(reader, text, count, event_p)
                                  : read_event(reader, text, count, event_p);

        if (result)
            return result;
    }
    return 0;
}
