/* text.c - a trace as lines.
 *
 * Floor 3.5. */
#include <stdio.h>
#include <string.h>

#include "record/live/ledger.h"
#include "trace/internal.h"

enum { LINE_BYTES = 1 << 12 /* more than any line has */, NS_OF_US = 1000 };
#define US_MAX (INT64_MAX / NS_OF_US)

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

static void read_comment(struct ms_trace_reader *reader, const char *text, size_t count)
{
    char copy[LINE_BYTES];

    snprintf(copy, sizeof(copy), "%.*s", (int)count, text);
    text_introduce(reader, copy);
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
    return take_number(at_p, end, &event->address);
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

int ms_trace_text_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p)
{
    const char *text;
    size_t count;

    while (ms_trace_line(reader, &text, &count)) {
        if (*text == '#') {
            read_comment(reader, text, count);
            continue;
        }
        *event_p = (struct ms_trace_event){.kind = MS_KIND_COUNT};
        if (!take_event(text, text + count, event_p))
            return fail_line(reader,
                             "is no line of a trace: microseconds a|f|A|F id bytes stream [site address]");
        if (event_p->ns < reader->last_ns)
            return fail_line(reader, "is earlier than the one before it");
        return 1;
    }
    return 0;
}
