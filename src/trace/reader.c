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

int ms_trace_fail(struct ms_trace_reader *reader, const char *where, const char *what)
{
    snprintf(reader->error, reader->error_bytes, "%s: %s%s%s", reader->path, where, *where ? " " : "", what);
    return -1;
}

static int fail_open(struct ms_trace_reader *reader, int error)
{
    snprintf(reader->error, reader->error_bytes, "cannot read %s: %s", reader->path,
             error == EINVAL ? "no regular file" : strerror(error));
    return -1;
}

/* "# memshim VERSION[, run RUN]: PROGRAM, process PID": a program's name may hold any of these words, so the
 * last number is the process's. */
static int read_head(struct ms_trace_reader *reader)
{
    struct ms_trace_head *head = &reader->head;
    const char *text, *process = NULL, *program, *next;
    char line[1024];
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
    sscanf(line, MS_TRACE_FIRST_WORDS " %63[^,:], run %" SCNx64, head->version, &head->run);
    head->pid = strtoll(process + strlen(", process "), NULL, 10);
    snprintf(head->program, sizeof(head->program), "%.*s", (int)(process - program) - 2, program + 2);
    return 0;
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
    if ((code ? fail_open(reader, code) : read_head(reader)) < 0) {
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

/* A line with a free has no more than its time, number, size and stream. */
static void complete_free(struct ms_trace_reader *reader, struct ms_trace_event *event)
{
    const struct ms_trace_event *born = ms_trace_live_find(&reader->live[event->layer], event->id);

    if (!born)
        return;
    event->address = born->address;
    event->site = born->site;
    event->kind = born->kind;
    ms_trace_live_remove(&reader->live[event->layer], event->id);
}

int ms_trace_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p)
{
    int result = ms_trace_text_next(reader, event_p);

    if (result == 0 && reader->input.error)
        return fail_open(reader, reader->input.error);
    if (result <= 0)
        return result;
    reader->last_ns = event_p->ns;
    if (event_p->op == MS_TRACE_FREE)
        complete_free(reader, event_p);
    else if (event_p->id && !ms_trace_live_add(&reader->live[event_p->layer], event_p))
        return ms_trace_fail(reader, "", "no memory for what is live");
    return 1;
}
