/* what_if.c - see what_if.h.
 *
 * Floor 5. */
#include "cli/torch/what_if.h"

#include <stdlib.h>
#include <string.h>

#include "report/read/layer.h"
#include "trace/reader.h"

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
