/* what_if.c - see what_if.h.
 *
 * Floor 5. */
#include "cli/torch/what_if.h"

#include <stdlib.h>
#include <string.h>

#include "cli/torch/measured.h"
#include "report/read/layer.h"
#include "report/text/text.h"
#include "trace/reader.h"

/* More tensors than these come and go take longer to try than who reads a report waits: that is memshim
 * tune's. */
enum { EVENTS_MOST = 400000 };

/* The file may be another run's by now. A process that belongs to no run has the moment in its place at which
 * its record began. */
static bool is_of_run(const char *path, const struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run");
    char error[512];
    struct ms_trace_reader *reader = ms_trace_open(path, error, sizeof(error));
    const struct ms_trace_head *head = reader ? ms_trace_head(reader) : NULL;
    const char *id = ms_report_text(run, "id");
    uint64_t number = *id ? strtoull(id, NULL, 16) : (uint64_t)ms_report_int(run, "start_unix_ns");
    bool is = head && head->pid == ms_report_int(run, "pid") && head->run == number;

    if (reader)
        ms_trace_close(reader);
    return is;
}

/* Tensors that were asked for up to `ns`, and one request more. The last stream's pool serves it, as PyTorch
 * would that of the stream that asked. */
static int cut(struct ms_course *course, uint64_t ns, uint64_t requested)
{
    struct ms_course_event last = {.ns = ns, .bytes = requested, .block = course->block_count};
    struct ms_course_event *events;
    size_t count = 0;

    while (count < course->count && course->events[count].ns <= ns)
        count++;
    events = reallocarray(course->events, count + 1, sizeof(*events));
    if (!events)
        return -1;
    last.site = MS_COURSE_NO_SITE;
    if (count) {
        last.device = events[count - 1].device;
        last.stream = events[count - 1].stream;
    }
    events[count] = last;
    course->events = events;
    course->count = count + 1;
    course->block_count++;
    return 0;
}

int ms_torch_what_if(const struct ms_report *report, const json_t *row, struct ms_torch_try *tries)
{
    const char *path = ms_report_text(json_object_get(report->root, "run"), "trace");
    json_int_t capacity = ms_report_int(row, "reserved") + ms_report_int(row, "device_free");
    struct ms_course course;
    char error[512];
    int count = 0;

    if (!ms_report_oom_is_inner(row) || strcmp(ms_report_text(row, "api"), "PyTorch") != 0 ||
        !strcmp(ms_report_text(row, "cause"), "cache_limit") || capacity <= 0 ||
        ms_report_int(row, "requested") <= 0 || !*path || !is_of_run(path, report) ||
        ms_course_read(path, true, &course, error, sizeof(error)) < 0)
        return 0;
    if (course.device_count <= 1 &&
        cut(&course, (uint64_t)ms_report_int(row, "t_ns"), (uint64_t)ms_report_int(row, "requested")) == 0)
        count = ms_torch_try_all(&course, (uint64_t)capacity, tries);
    ms_course_close(&course);
    return count > 0 && !tries[0].result.completed ? count
                                                   : 0; /* else it was another allocator, or setting */
}

/* --- the whole run --- */

/* All that gave tensors of a device's memory is PyTorch's cache: the model has no other. */
static bool is_torch(const struct ms_report *report)
{
    const json_t *heap;
    bool any = false;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "heaps"), i, heap) {
        if (!strcmp(ms_report_text(heap, "name"), "PyTorch"))
            any |= ms_report_int(heap, "device") >= 0;
        else if (ms_report_int(heap, "device") >= 0)
            return false;
    }
    return any;
}

static json_t *measured_json(const char *path, const struct ms_torch_measured *measured)
{
    const struct ms_torch_try *tries = measured->tries;
    json_t *ways = json_array(), *object;

    for (size_t i = 0; i < measured->count; i++)
        json_array_append_new(ways,
                              json_pack("{s:s, s:I}", "settings", tries[i].settings, "reserved_bytes",
                                        (json_int_t)(tries[i].result.peak_reserved + measured->beside)));
    object = json_pack("{s:s, s:I, s:o}", "trace", path, "reserved_bytes", (json_int_t)measured->had, "ways",
                       ways);
    if (measured->best)
        json_object_update_new(
            object, json_pack("{s:s, s:I}", "best", tries[measured->best].settings, "best_bytes",
                              (json_int_t)(tries[measured->best].result.peak_reserved + measured->beside)));
    return object;
}

json_t *ms_torch_what_if_run(const struct ms_report *report)
{
    const char *path = ms_report_text(json_object_get(report->root, "run"), "trace");
    static struct ms_torch_measured measured;
    struct ms_course blocks, tensors = {.count = 0};
    char error[512];
    json_t *object = NULL;

    if (!*path || !is_torch(report) || !is_of_run(path, report) ||
        ms_course_read(path, false, &blocks, error, sizeof(error)) < 0)
        return NULL;
    if (blocks.other_count <= EVENTS_MOST &&
        ms_torch_measure(path, &blocks, 0, &measured, &tensors, error, sizeof(error)) == 0 &&
        measured.count && !measured.is_off)
        object = measured_json(path, &measured);
    ms_course_close(&tensors);
    ms_course_close(&blocks);
    return object;
}

void ms_torch_print_what_if(FILE *out, const json_t *what_if)
{
    const char *best = ms_report_text(what_if, "best");

    if (!what_if)
        return;
    fprintf(out, "\nMeasured  %s reserved, ", ms_text_size(ms_report_int(what_if, "reserved_bytes")).text);
    if (*best)
        fprintf(out, "%s with PYTORCH_ALLOC_CONF=%s", ms_text_size(ms_report_int(what_if, "best_bytes")).text,
                best);
    else
        fputs("and no less with any of PyTorch's settings", out);
    fputs(": memshim tune ", out);
    ms_text_put_path(out, ms_report_text(what_if, "trace"));
    fputs(" tells more\n", out);
}
