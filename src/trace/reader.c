/* reader.c - see reader.h.
 *
 * Floor 3.5. */
#include "trace/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/file/trace_file.h"
#include "trace/internal.h"

const char ms_trace_another[] = "another trace begins behind the first: two were put together";

int ms_trace_fail(struct ms_trace_reader *reader, const char *where, const char *what)
{
    snprintf(reader->error, reader->error_bytes, "%s: %s%s%s", reader->path, where, *where ? " " : "", what);
    return -1;
}

static int fail_open(struct ms_trace_reader *reader, int error)
{
    snprintf(reader->error, reader->error_bytes, "cannot read %s: %s", reader->path,
             error == EINVAL    ? "no regular file"
             : error == EBADMSG ? "it is compressed, and damaged"
             : error == ENODATA ? "it is compressed, and cut off"
             : error == EEXIST
                 ? "it is compressed, and has something behind its end: two traces put together?"
             : error == ENOTSUP ? "it is compressed, and this memshim was built without libzstd"
                                : strerror(error));
    return -1;
}

/* "# memshim VERSION[, run RUN]: PROGRAM, process PID": a program's name may hold any of these words, so the
 * last number is the process's. */
static int read_head(struct ms_trace_reader *reader)
{
    struct ms_trace_head *head = &reader->head;
    const char *text, *process = NULL, *program, *next;
    char line[sizeof(head->line)];
    size_t count;

    if (ms_trace_line(reader, &text, &count))
        snprintf(line, sizeof(line), "%.*s", (int)count, text);
    else
        line[0] = '\0';
    for (next = line; (next = strstr(next, ", process ")) != NULL;)
        process = next++;
    program = strstr(line, ": ");
    if (strncmp(line, MS_TRACE_FIRST_WORDS " ", sizeof(MS_TRACE_FIRST_WORDS)) != 0 || !process || !program ||
        program > process)
        return reader->input.error ? fail_open(reader, reader->input.error)
                                   : ms_trace_fail(reader, "line 1", "does not begin a trace of memshim's");
    snprintf(head->line, sizeof(head->line), "%s", line);
    sscanf(line, MS_TRACE_FIRST_WORDS " %63[^,:], run %" SCNx64, head->version, &head->run);
    head->pid = strtoll(process + strlen(", process "), NULL, 10);
    snprintf(head->program, sizeof(head->program), "%.*s", (int)(process - program) - 2, program + 2);
    return 0;
}

void ms_trace_read_summary(struct ms_trace_reader *reader, const char *text, size_t count)
{
    while (count && text[count - 1] == ' ')
        count--;
    if (count > 2)
        snprintf(reader->head.summary, sizeof(reader->head.summary), "%.*s", (int)count - 2, text + 2);
}

/* "# binary 1[, 4 parts of BYTES bytes]" is the second line of records; of lines it is a comment as any. */
static int read_form(struct ms_trace_reader *reader)
{
    static const char words[] = MS_TRACE_BINARY_WORDS;
    size_t count = ms_trace_input_want(&reader->input, MS_TRACE_RECORD_BYTES);
    const char *text = (const char *)ms_trace_input_at(&reader->input), *at;
    unsigned version = 0, parts = 0;
    unsigned long long part_bytes = 0;

    reader->head.is_compressed = reader->input.packed != NULL;
    reader->head.is_text = count < sizeof(words) || memcmp(text, words, sizeof(words) - 1) != 0;
    if (reader->head.is_text)
        return 0;
    if (!ms_trace_line(reader, &text, &count))
        return ms_trace_fail(reader, "line 2", "is not whole");
    char line[128];
    snprintf(line, sizeof(line), "%.*s", (int)count, text);
    at = strchr(line, ',');
    if (sscanf(line, MS_TRACE_BINARY_WORDS "%u", &version) != 1 || version != MS_TRACE_VERSION)
        return ms_trace_fail(reader, "", "another version of memshim wrote it, which this one cannot read");
    if (at && (sscanf(at, ", %u parts of %llu bytes", &parts, &part_bytes) != 2 || parts != MS_TRACE_PARTS ||
               part_bytes < MS_TRACE_RECORD_BYTES || part_bytes > INT64_MAX / 16))
        return ms_trace_fail(reader, "line 2", "says of no parts that there can be");
    if (!ms_trace_line(reader, &text, &count))
        return ms_trace_fail(reader, "line 3", "is not whole");
    ms_trace_read_summary(reader, text, count);
    if (part_bytes)
        ms_trace_input_order(&reader->input, part_bytes);
    return ms_trace_binary_open(reader) ? 0 : ms_trace_fail(reader, "", "no memory for what is in it");
}

struct ms_trace_reader *ms_trace_open(const char *path, char *error, size_t error_bytes)
{
    struct ms_trace_reader *reader = calloc(1, sizeof(*reader));
    int code;

    if (!reader) {
        snprintf(error, error_bytes, "no memory for %s", path);
        return NULL;
    }
    reader->path = path;
    reader->error = error;
    reader->error_bytes = error_bytes;
    reader->streams[0] = (struct ms_trace_stream){.api = "cuda", .is_known = true};
    code = ms_trace_input_open(&reader->input, path);
    if ((code ? fail_open(reader, code) : read_head(reader)) < 0 || read_form(reader) < 0) {
        ms_trace_close(reader);
        return NULL;
    }
    return reader;
}

void ms_trace_close(struct ms_trace_reader *reader)
{
    if (!reader)
        return;
    ms_trace_input_close(&reader->input);
    ms_trace_binary_close(reader->binary);
    ms_trace_phases_close(reader);
    for (unsigned layer = 0; layer < MS_LAYERS; layer++)
        free(reader->live[layer].places);
    free(reader);
}

const struct ms_trace_head *ms_trace_head(const struct ms_trace_reader *reader)
{
    return &reader->head;
}

const struct ms_trace_stream *ms_trace_stream(const struct ms_trace_reader *reader, unsigned number)
{
    return &reader->streams[number];
}

uint64_t ms_trace_fallen(const struct ms_trace_reader *reader)
{
    return reader->fallen;
}

/* A free says no more than its number, and in a line its size and stream. False if no such block is live: of
 * parts that have fallen out there need be none. */
static bool complete_free(struct ms_trace_reader *reader, struct ms_trace_event *event)
{
    const struct ms_trace_event *born = ms_trace_live_find(&reader->live[event->layer], event->id);

    if (!born)
        return false;
    event->bytes = born->bytes;
    event->stream = born->stream;
    event->address = born->address;
    event->site = born->site;
    event->kind = born->kind;
    ms_trace_live_remove(&reader->live[event->layer], event->id);
    return true;
}

/* 1 if it is one to tell of, 0 if not, -1 after an error. */
static int take_in(struct ms_trace_reader *reader, struct ms_trace_event *event)
{
    if (event->op == MS_TRACE_FREE && !complete_free(reader, event) && reader->binary)
        return reader->fallen ? 0 : ms_trace_fail(reader, "", "is damaged: it frees what is not there");
    if (event->op != MS_TRACE_ALLOC || !event->id)
        return 1;
    if (!ms_trace_live_add(&reader->live[event->layer], event))
        return ms_trace_fail(reader, "", "no memory for what is live");
    if (reader->live[event->layer].bytes > INT64_MAX)
        return ms_trace_fail(reader, "", "is damaged: more is live than there can be");
    return 1;
}

int ms_trace_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p)
{
    int result;

    do {
        result = reader->binary ? ms_trace_binary_next(reader, event_p) : ms_trace_text_next(reader, event_p);
        if (result == 0 && reader->input.error)
            return fail_open(reader, reader->input.error);
        if (result <= 0)
            return result;
        reader->last_ns = event_p->ns;
        result = take_in(reader, event_p);
    } while (result == 0);
    return result;
}
