/* chrome.c - trace events as Chrome and Perfetto read them: memory as counters, phases and blocks as
 * asynchronous slices, out of memory as instants.
 *
 * Floor 4. Reference: "Trace Event Format", and Perfetto's "Other formats". Slices of a thread would have to
 * nest, and phases and blocks do not. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/json_text.h"
#include "export/tree.h"
#include "report/text/text.h"

struct chrome {
    FILE *out;
    const struct ms_report *report;
    json_int_t pid, end_ns;
    size_t told;
    struct ms_tree tree; /* of stacks, with events alone */
    uint32_t *leaves;    /* by site */
};

/* The beginning of an event, up to where its arguments go. `id` < 0: none. */
static void chrome_begin(struct chrome *chrome, const char *phase, const char *category, const char *name,
                         json_int_t ns, json_int_t id)
{
    ms_json_put_member(chrome->out, chrome->told++ ? ",\n{" : "\n{", "name", name);
    ms_json_put_member(chrome->out, ",", "cat", category);
    fprintf(chrome->out,
            ",\"ph\":\"%s\",\"pid\":%" JSON_INTEGER_FORMAT ",\"tid\":0,\"ts\":%" JSON_INTEGER_FORMAT
            ".%03" JSON_INTEGER_FORMAT,
            phase, chrome->pid, ns / 1000, ns % 1000);
    if (id >= 0)
        fprintf(chrome->out, ",\"id\":\"%s-%" JSON_INTEGER_FORMAT "\"", category, id);
}

static void number(struct chrome *chrome, const char *before, const char *key, json_int_t value)
{
    fputs(before, chrome->out);
    ms_json_put(chrome->out, key);
    fprintf(chrome->out, ":%" JSON_INTEGER_FORMAT, value);
}

static void chrome_end(struct chrome *chrome)
{
    fputs("}}", chrome->out);
}

static json_int_t after_start(json_int_t ns)
{
    return ns > 0 ? ns : 0;
}

static void put_process(struct chrome *chrome, const json_t *run)
{
    const char *exe = ms_report_text(run, "exe"), *slash = strrchr(exe, '/');
    char name[512];

    if (json_object_get(run, "rank"))
        snprintf(name, sizeof(name), "%.400s, rank %" JSON_INTEGER_FORMAT, slash ? slash + 1 : exe,
                 ms_report_int(run, "rank"));
    else
        snprintf(name, sizeof(name), "%.400s", slash ? slash + 1 : exe);
    chrome_begin(chrome, "M", "__metadata", "process_name", 0, -1);
    ms_json_put_member(chrome->out, ",\"args\":{", "name", name);
    chrome_end(chrome);
}

static void device_name(char *text, size_t bytes, const char *api, json_int_t index)
{
    snprintf(text, bytes, "%.32s %" JSON_INTEGER_FORMAT " memory", api, index);
}

static void put_counter(struct chrome *chrome, const char *name, json_int_t ns, json_int_t live,
                        json_int_t reserved, json_int_t pending)
{
    chrome_begin(chrome, "C", "memory", name, ns, -1);
    number(chrome, ",\"args\":{", "live", live);
    number(chrome, ",", "reserved", reserved);
    number(chrome, ",", "limbo", pending);
    chrome_end(chrome);
}

/* One device of the timeline; a stretch's most stands at its beginning. */
static void put_series(struct chrome *chrome, const json_t *times, const json_t *series)
{
    json_t *live = ms_report_array(series, "live"), *reserved = ms_report_array(series, "reserved"),
           *pending = ms_report_array(series, "limbo"), *time;
    char name[96];
    size_t i;

    device_name(name, sizeof(name), ms_report_device_api(series), ms_report_int(series, "device"));
    json_array_foreach (times, i, time)
        put_counter(
            chrome, name, after_start(json_integer_value(time)), json_integer_value(json_array_get(live, i)),
            json_integer_value(json_array_get(reserved, i)), json_integer_value(json_array_get(pending, i)));
}

static void put_timeline(struct chrome *chrome)
{
    const json_t *timeline = json_object_get(chrome->report->root, "timeline"), *series;
    const json_t *device;
    char name[96];
    size_t i;

    json_array_foreach (ms_report_array(timeline, "devices"), i, series)
        put_series(chrome, ms_report_array(timeline, "t"), series);
    json_array_foreach (ms_report_array(chrome->report->root, "devices"), i, device) {
        device_name(name, sizeof(name), ms_report_text(device, "api"), ms_report_int(device, "index"));
        put_counter(chrome, name, chrome->end_ns, ms_report_int(device, "live_bytes"), ms_report_held(device),
                    ms_report_int(json_object_get(device, "reserved_parts"), "limbo"));
    }
}

/* The slice of a name reaches from its first beginning to its latest event; single ranges are not
 * recorded. */
static void put_phase(struct chrome *chrome, const json_t *phase, json_int_t id)
{
    const char *name = ms_report_text(phase, "name");
    json_int_t first = after_start(ms_report_int(phase, "first_ns")), last = ms_report_int(phase, "last_ns");
    const json_t *device;
    size_t i;

    chrome_begin(chrome, ms_report_int(phase, "count") ? "b" : "n", "phase", *name ? name : "?", first, id);
    number(chrome, ",\"args\":{", "count", ms_report_int(phase, "count"));
    number(chrome, ",", "marks", ms_report_int(phase, "marks"));
    number(chrome, ",", "open_ns", ms_report_int(phase, "total_ns"));
    ms_json_put_member(chrome->out, ",", "source", ms_report_text(phase, "source"));
    ms_json_put_member(chrome->out, ",", "domain", ms_report_text(phase, "domain"));
    json_array_foreach (ms_report_array(phase, "devices"), i, device) {
        char key[96];

        snprintf(key, sizeof(key), "%.32s %" JSON_INTEGER_FORMAT " peak_bytes", ms_report_device_api(device),
                 ms_report_int(device, "device"));
        number(chrome, ",", key, ms_report_int(json_object_get(device, "peak_bytes"), "max"));
    }
    chrome_end(chrome);
    if (!ms_report_int(phase, "count"))
        return;
    chrome_begin(chrome, "e", "phase", *name ? name : "?", last > first ? last : first, id);
    fputs(",\"args\":{", chrome->out);
    chrome_end(chrome);
}

static void put_oom(struct chrome *chrome, const json_t *oom)
{
    chrome_begin(chrome, "i", "oom", "out of memory", after_start(ms_report_int(oom, "t_ns")), -1);
    fputs(",\"s\":\"p\"", chrome->out);
    ms_json_put_member(chrome->out, ",\"args\":{", "api", ms_report_text(oom, "api"));
    ms_json_put_member(chrome->out, ",", "kind", ms_report_text(oom, "kind"));
    ms_json_put_member(chrome->out, ",", "cause", ms_report_text(oom, "cause"));
    number(chrome, ",", "requested", ms_report_int(oom, "requested"));
    number(chrome, ",", "live", ms_report_int(oom, "live"));
    number(chrome, ",", "reserved", ms_report_int(oom, "reserved"));
    number(chrome, ",", "largest_free", ms_report_int(oom, "largest_free"));
    chrome_end(chrome);
}

/* The stacks of events: a node of the tree is a frame, called from its parent. Node 0 is none. */
static void chrome_put_frames(struct chrome *chrome)
{
    char number[24];

    fputs(",\"stackFrames\":{", chrome->out);
    for (size_t i = 1; i < chrome->tree.node_count; i++) {
        const struct ms_tree_node *node = &chrome->tree.nodes[i];

        fprintf(chrome->out, "%s\"%zu\":", i > 1 ? ",\n" : "\n", i);
        ms_json_put_member(chrome->out, "{", "name", node->name);
        snprintf(number, sizeof(number), "%" PRIu32, node->parent);
        if (node->parent)
            ms_json_put_member(chrome->out, ",", "parent", number);
        fputc('}', chrome->out);
    }
    fputs("\n}", chrome->out);
}

/* The names of a stack's frames from the innermost on, for viewers that do not know stackFrames. */
static void chrome_put_stack(struct chrome *chrome, uint32_t leaf)
{
    char *text = NULL;
    size_t bytes;
    FILE *stack = open_memstream(&text, &bytes);

    if (!stack)
        return;
    for (uint32_t node = leaf; node; node = chrome->tree.nodes[node].parent)
        fprintf(stack, "%s%s", node == leaf ? "" : " < ", chrome->tree.nodes[node].name);
    if (fclose(stack) == 0)
        ms_json_put_member(chrome->out, ",", "stack", text);
    free(text);
}

/* A block of a trace; one that does not go is live to the end. */
static void put_event(struct chrome *chrome, const struct ms_event *event)
{
    uint32_t leaf = event->free || event->site == SIZE_MAX ? 0 : chrome->leaves[event->site];
    char address[24];

    chrome_begin(chrome, event->free ? "e" : "b", "block", ms_text_size((json_int_t)event->bytes).text,
                 event->ns, (json_int_t)(event->id & INT64_MAX));
    if (leaf)
        fprintf(chrome->out, ",\"sf\":\"%" PRIu32 "\"", leaf);
    fputs(",\"args\":{", chrome->out);
    if (!event->free) {
        number(chrome, "", "bytes", (json_int_t)event->bytes);
        number(chrome, ",", "stream", event->stream);
        if (event->address) {
            snprintf(address, sizeof(address), "0x%" PRIx64, event->address);
            ms_json_put_member(chrome->out, ",", "address", address);
        }
        if (leaf)
            chrome_put_stack(chrome, leaf);
    }
    chrome_end(chrome);
}

/* The bytes that the program had asked for and had live, after each event. */
static void put_requested(struct chrome *chrome, const struct ms_events *events, size_t device,
                          json_int_t *live)
{
    const json_t *row = json_array_get(ms_report_array(chrome->report->root, "devices"), device);
    char name[96];

    snprintf(name, sizeof(name), "%.32s %" JSON_INTEGER_FORMAT " trace", ms_report_text(row, "api"),
             ms_report_int(row, "index"));
    for (size_t i = 0; i < events->count; i++) {
        const struct ms_event *event = &events->rows[i];

        if (events->device[event->stream] != device)
            continue;
        *live = ms_report_sum(*live, event->free ? -(json_int_t)event->bytes : (json_int_t)event->bytes);
        chrome_begin(chrome, "C", "memory", name, event->ns, -1);
        number(chrome, ",\"args\":{", "requested", *live);
        chrome_end(chrome);
    }
}

static void put_events(struct chrome *chrome, const struct ms_events *events)
{
    bool *told = calloc(json_array_size(ms_report_array(chrome->report->root, "devices")) + 1, sizeof(*told));

    for (size_t i = 0; i < events->count; i++)
        put_event(chrome, &events->rows[i]);
    for (size_t i = 0; told && i < MS_EVENT_STREAMS; i++) {
        json_int_t live = 0;

        if (events->device[i] == SIZE_MAX || told[events->device[i]])
            continue;
        told[events->device[i]] = true;
        put_requested(chrome, events, events->device[i], &live);
    }
    free(told);
}

int ms_export_chrome(FILE *out, const struct ms_export *job)
{
    const json_t *root = job->model->report->root, *run = json_object_get(root, "run"), *row;
    json_int_t begin_ns = ms_report_int(run, "start_unix_ns"), end_ns = ms_report_int(run, "end_unix_ns");
    struct chrome chrome = {.out = out,
                            .report = job->model->report,
                            .pid = ms_report_int(run, "pid"),
                            .end_ns = begin_ns > 0 && end_ns > begin_ns ? end_ns - begin_ns : 0};
    size_t i;

    if (job->events) {
        chrome.leaves = calloc(job->model->site_count + 1, sizeof(*chrome.leaves));
        if (!chrome.leaves || ms_tree_open_all(&chrome.tree, job->model, MS_VALUE_TOTAL, chrome.leaves) < 0) {
            free(chrome.leaves);
            return -1;
        }
    }
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"tool\":\"memshim " PACKAGE_VERSION "\"}", out);
    if (job->events)
        chrome_put_frames(&chrome);
    fputs(",\"traceEvents\":[", out);
    put_process(&chrome, run);
    put_timeline(&chrome);
    json_array_foreach (ms_report_array(root, "phases"), i, row)
        put_phase(&chrome, row, (json_int_t)i);
    json_array_foreach (ms_report_array(root, "oom"), i, row)
        put_oom(&chrome, row);
    if (job->events)
        put_events(&chrome, job->events);
    fputs("\n]}\n", out);
    ms_tree_close(&chrome.tree);
    free(chrome.leaves);
    return 0;
}
