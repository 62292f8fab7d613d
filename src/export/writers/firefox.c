/* firefox.c - the processed profile format of the Firefox profiler: one table of stacks, a thread for each
 * value.
 *
 * Floor 4. Reference: docs-developer and src/types/profile.ts of firefox-devtools/profiler, version 62 of the
 * processed format. A sample is a call site, at the time at which it first allocated. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/json_text.h"
#include "export/names.h"
#include "export/tree.h"

enum { PROCESSED_VERSION = 62, GECKO_VERSION = 24 };

struct firefox {
    FILE *out;
    const struct ms_model *model;
    struct ms_tree tree;
    struct ms_names strings;
    uint32_t *leaves; /* by site */
    size_t *order;    /* of sites, by time */
    bool failed;
};

static const struct ms_model *sorted;

static json_int_t first_ns(const struct ms_model_site *site)
{
    json_int_t ns = ms_report_int(site->json, "first_ns");

    return ns > 0 ? ns : 0;
}

static int by_time(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    json_int_t left = first_ns(&sorted->sites[x]), right = first_ns(&sorted->sites[y]);

    if (left != right)
        return left < right ? -1 : 1;
    return x < y ? -1 : x > y;
}

static uint32_t string(struct firefox *firefox, const char *text)
{
    uint32_t number = ms_names_number(&firefox->strings, text);

    firefox->failed = firefox->failed || number == UINT32_MAX;
    return number;
}

/* Milliseconds, as all times here are. */
static void put_ms(FILE *out, json_int_t ns)
{
    fprintf(out, "%" JSON_INTEGER_FORMAT ".%06" JSON_INTEGER_FORMAT, ns / 1000000, ns % 1000000);
}

/* A column of a table in which all rows are alike. */
static void put_same(FILE *out, const char *name, const char *value, size_t count)
{
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? "," : "", value);
    fputc(']', out);
}

static const struct ms_model_frame *frame_of(const struct firefox *firefox, size_t node)
{
    return &firefox->model->frames[firefox->tree.nodes[node].frame];
}

/* The nodes of the tree but the root: node n is stack, frame and function n - 1. */
static void put_stacks(struct firefox *firefox)
{
    size_t count = firefox->tree.node_count - 1;
    FILE *out = firefox->out;

    fprintf(out, "\"stackTable\":{\"length\":%zu,\"prefix\":[", count);
    for (size_t i = 1; i <= count; i++) {
        uint32_t parent = firefox->tree.nodes[i].parent;

        fputs(i > 1 ? "," : "", out);
        if (parent)
            fprintf(out, "%" PRIu32, parent - 1);
        else
            fputs("null", out);
    }
    fputs("],\"frame\":[", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%zu", i ? "," : "", i);
    fputs("]},\n", out);
}

static void firefox_put_frames(struct firefox *firefox)
{
    size_t count = firefox->tree.node_count - 1;
    FILE *out = firefox->out;

    fprintf(out, "\"frameTable\":{\"length\":%zu,\"func\":[", count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%zu", i ? "," : "", i);
    fputs("],\"line\":[", out);
    for (size_t i = 1; i <= count; i++) {
        fputs(i > 1 ? "," : "", out);
        if (frame_of(firefox, i)->line)
            fprintf(out, "%" JSON_INTEGER_FORMAT, frame_of(firefox, i)->line);
        else
            fputs("null", out);
    }
    fputc(']', out);
    put_same(out, "address", "-1", count);
    put_same(out, "inlineDepth", "0", count);
    put_same(out, "category", "0", count);
    put_same(out, "subcategory", "0", count);
    put_same(out, "nativeSymbol", "null", count);
    put_same(out, "innerWindowID", "null", count);
    put_same(out, "column", "null", count);
    fputs("},\n", out);
}

/* A function's source is its file, which is a row of sources[]; those without one have none. */
static void put_functions(struct firefox *firefox, struct ms_names *files)
{
    size_t count = firefox->tree.node_count - 1;
    FILE *out = firefox->out;

    fprintf(out, "\"funcTable\":{\"length\":%zu,\"name\":[", count);
    for (size_t i = 1; i <= count; i++)
        fprintf(out, "%s%" PRIu32, i > 1 ? "," : "", string(firefox, firefox->tree.nodes[i].name));
    fputs("],\"source\":[", out);
    for (size_t i = 1; i <= count; i++) {
        const char *file = frame_of(firefox, i)->file;

        fputs(i > 1 ? "," : "", out);
        if (*file)
            fprintf(out, "%" PRIu32, ms_names_number(files, file));
        else
            fputs("null", out);
    }
    fputc(']', out);
    put_same(out, "isJS", "false", count);
    put_same(out, "relevantForJS", "false", count);
    put_same(out, "resource", "-1", count);
    put_same(out, "lineNumber", "null", count);
    put_same(out, "columnNumber", "null", count);
    fputs("},\n", out);
}

static void put_sources(struct firefox *firefox, const struct ms_names *files)
{
    FILE *out = firefox->out;

    fprintf(out, "\"sources\":{\"length\":%zu,\"filename\":[", files->count);
    for (size_t i = 0; i < files->count; i++)
        fprintf(out, "%s%" PRIu32, i ? "," : "", string(firefox, files->texts[i]));
    fputc(']', out);
    put_same(out, "id", "null", files->count);
    put_same(out, "startLine", "1", files->count);
    put_same(out, "startColumn", "1", files->count);
    put_same(out, "sourceMapURL", "null", files->count);
    fputs(
        "},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
        "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]},\n",
        out);
}

static void put_shared(struct firefox *firefox)
{
    struct ms_names files = {.count = 0};

    fputs("\"shared\":{", firefox->out);
    put_stacks(firefox);
    firefox_put_frames(firefox);
    put_functions(firefox, &files);
    put_sources(firefox, &files);
    fputs("\"stringArray\":[", firefox->out);
    for (size_t i = 0; i < firefox->strings.count; i++) {
        fputs(i ? "," : "", firefox->out);
        ms_json_put(firefox->out, firefox->strings.texts[i]);
    }
    fputs("]}", firefox->out);
    ms_names_close(&files);
}

/* One column of the samples of a value; `what`: its stack, its weight, or the time since the one before. */
static void put_samples(struct firefox *firefox, enum ms_value value, char what)
{
    json_int_t last = 0;
    size_t told = 0;

    for (size_t i = 0; i < firefox->model->site_count; i++) {
        const struct ms_model_site *site = &firefox->model->sites[firefox->order[i]];

        if (!site->values[value])
            continue;
        fputs(told++ ? "," : "", firefox->out);
        if (what == 's')
            fprintf(firefox->out, "%" PRIu32, firefox->leaves[firefox->order[i]] - 1);
        else if (what == 'w')
            fprintf(firefox->out, "%" JSON_INTEGER_FORMAT, site->values[value]);
        else
            put_ms(firefox->out, first_ns(site) - last);
        last = first_ns(site);
    }
}

static size_t count_samples(const struct firefox *firefox, enum ms_value value)
{
    size_t count = 0;

    for (size_t i = 0; i < firefox->model->site_count; i++)
        count += firefox->model->sites[i].values[value] != 0;
    return count;
}

struct marker {
    uint32_t name;
    const char *text;
    json_int_t from, to; /* to < from: a moment */
};

static size_t list_markers(struct firefox *firefox, struct marker *markers)
{
    const json_t *root = firefox->model->report->root, *row;
    size_t count = 0, i;

    json_array_foreach (ms_report_array(root, "phases"), i, row) {
        json_int_t from = ms_report_int(row, "first_ns"), to = ms_report_int(row, "last_ns");

        from = from > 0 ? from : 0;
        markers[count++] = (struct marker){string(firefox, "phase"), ms_report_text(row, "name"), from,
                                           !ms_report_int(row, "count") ? -1
                                           : to > from                  ? to
                                                                        : from};
    }
    json_array_foreach (ms_report_array(root, "oom"), i, row) {
        json_int_t at = ms_report_int(row, "t_ns");

        markers[count++] = (struct marker){string(firefox, "out of memory"), ms_report_text(row, "api"),
                                           at > 0 ? at : 0, -1};
    }
    return count;
}

static void put_markers(struct firefox *firefox, const struct marker *markers, size_t count)
{
    FILE *out = firefox->out;

    fprintf(out, "\"markers\":{\"length\":%zu,\"name\":[", count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%" PRIu32, i ? "," : "", markers[i].name);
    fputs("],\"startTime\":[", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "," : "", out);
        put_ms(out, markers[i].from);
    }
    fputs("],\"endTime\":[", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "," : "", out);
        if (markers[i].to < markers[i].from)
            fputs("null", out);
        else
            put_ms(out, markers[i].to);
    }
    fputs("],\"phase\":[", out); /* 0 a moment, 1 a stretch */
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%d", i ? "," : "", markers[i].to >= markers[i].from);
    fputs("],\"data\":[", out);
    for (size_t i = 0; i < count; i++) {
        ms_json_put_member(out, i ? ",{\"type\":\"Text\"," : "{\"type\":\"Text\",", "name", markers[i].text);
        fputc('}', out);
    }
    fputc(']', out);
    put_same(out, "category", "0", count);
    fputs("}", out);
}

static void put_thread(struct firefox *firefox, enum ms_value value, bool first, const struct marker *markers,
                       size_t count)
{
    const json_t *run = json_object_get(firefox->model->report->root, "run");
    FILE *out = firefox->out;

    ms_json_put_member(out, "{", "name", ms_value_names[value].title);
    ms_json_put_member(out, ",", "processName", ms_report_text(run, "exe"));
    fprintf(out,
            ",\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
            "\"registerTime\":0,"
            "\"unregisterTime\":null,\"pausedRanges\":[],\"isMainThread\":%s,\"pid\":\"%" JSON_INTEGER_FORMAT
            "\",\"tid\":\"%" JSON_INTEGER_FORMAT
            ".%d\",\"samples\":{\"length\":%zu,\"weightType\":\"%s\",\"stack\":[",
            first ? "true" : "false", ms_report_int(run, "pid"), ms_report_int(run, "pid"), (int)value,
            count_samples(firefox, value), value == MS_VALUE_COUNT ? "samples" : "bytes");
    put_samples(firefox, value, 's');
    fputs("],\"weight\":[", out);
    put_samples(firefox, value, 'w');
    fputs("],\"timeDeltas\":[", out);
    put_samples(firefox, value, 't');
    fputs("]},\n", out);
    put_markers(firefox, markers, first ? count : 0);
    fputc('}', out);
}

static void put_threads(struct firefox *firefox, enum ms_value shown)
{
    const json_t *root = firefox->model->report->root;
    size_t room =
        json_array_size(ms_report_array(root, "phases")) + json_array_size(ms_report_array(root, "oom"));
    struct marker *markers = calloc(room + 1, sizeof(*markers));
    size_t count = markers ? list_markers(firefox, markers) : 0;

    firefox->failed = firefox->failed || !markers;
    fputs("\"threads\":[\n", firefox->out);
    put_thread(firefox, shown, true, markers, count);
    for (unsigned value = 0; value < MS_VALUES; value++) {
        if (value == shown)
            continue;
        fputs(",\n", firefox->out);
        put_thread(firefox, (enum ms_value)value, false, markers, count);
    }
    fputs("],\n", firefox->out);
    free(markers);
}

/* A counter says by how much it rose since the sample before. */
static void put_counter(struct firefox *firefox, const json_t *times, const json_t *series, const char *key)
{
    const json_t *run = json_object_get(firefox->model->report->root, "run"),
                 *values = ms_report_array(series, key);
    json_int_t last = 0;
    const json_t *time;
    char name[96];
    size_t i;

    snprintf(name, sizeof(name), "%.32s %" JSON_INTEGER_FORMAT " %s", ms_report_device_api(series),
             ms_report_int(series, "device"), key);
    ms_json_put_member(firefox->out, "{", "name", name);
    fprintf(firefox->out,
            ",\"category\":\"Memory\",\"description\":\"Memory of the "
            "device\",\"mainThreadIndex\":0,\"pid\":\"%" JSON_INTEGER_FORMAT
            "\",\"samples\":{\"length\":%zu,\"timeDeltas\":[",
            ms_report_int(run, "pid"), json_array_size(times));
    json_array_foreach (times, i, time) {
        json_int_t at = json_integer_value(time);

        fputs(i ? "," : "", firefox->out);
        put_ms(firefox->out, at > last ? at - last : 0);
        last = at > last ? at : last;
    }
    fputs("],\"count\":[", firefox->out);
    last = 0;
    json_array_foreach (times, i, time) {
        json_int_t value = json_integer_value(json_array_get(values, i));

        value = value > 0 ? value : 0;
        fprintf(firefox->out, "%s%" JSON_INTEGER_FORMAT, i ? "," : "", value - last);
        last = value;
    }
    fputs("]}}", firefox->out);
}

static void put_counters(struct firefox *firefox)
{
    const json_t *timeline = json_object_get(firefox->model->report->root, "timeline"), *series;
    size_t i;

    fputs("\"counters\":[", firefox->out);
    json_array_foreach (ms_report_array(timeline, "devices"), i, series) {
        fputs(i ? ",\n" : "\n", firefox->out);
        put_counter(firefox, ms_report_array(timeline, "t"), series, "live");
        fputs(",\n", firefox->out);
        put_counter(firefox, ms_report_array(timeline, "t"), series, "reserved");
    }
    fputs("],\n", firefox->out);
}

static void put_meta(struct firefox *firefox)
{
    const json_t *run = json_object_get(firefox->model->report->root, "run");
    json_int_t start = ms_report_int(run, "start_unix_ns");

    fputs("{\"meta\":{\"interval\":1.0,\"startTime\":", firefox->out);
    put_ms(firefox->out, start > 0 ? start : 0);
    ms_json_put_member(firefox->out, ",", "product", ms_report_text(run, "exe"));
    fprintf(firefox->out,
            ",\"version\":%d,\"preprocessedProfileVersion\":%d,\"processType\":0,\"symbolicated\":true,"
            "\"debug\":false,\"sourceCodeIsNotOnSearchfox\":true,\"usesOnlyOneStackType\":true,"
            "\"pausedRanges\":[],"
            "\"markerSchema\":[],\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},"
            "\"importedFrom\":\"memshim " PACKAGE_VERSION "\","
            "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"\u00b5s\"},"
            "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}]},\n",
            GECKO_VERSION, PROCESSED_VERSION);
    fputs("\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\n", firefox->out);
}

int ms_export_firefox(FILE *out, const struct ms_export *job)
{
    size_t sites = job->model->site_count;
    struct firefox firefox = {.out = out,
                              .model = job->model,
                              .leaves = calloc(sites + 1, sizeof(*firefox.leaves)),
                              .order = calloc(sites + 1, sizeof(*firefox.order))};

    firefox.failed = !firefox.leaves || !firefox.order ||
                     ms_tree_open_all(&firefox.tree, job->model, job->value, firefox.leaves) < 0;
    if (!firefox.failed) {
        for (size_t i = 0; i < sites; i++)
            firefox.order[i] = i;
        sorted = job->model;
        if (sites)
            qsort(firefox.order, sites, sizeof(*firefox.order), by_time);
        put_meta(&firefox);
        put_counters(&firefox);
        put_threads(&firefox, job->value);
        put_shared(&firefox);
        fputs("}\n", out);
        ms_tree_close(&firefox.tree);
    }
    ms_names_close(&firefox.strings);
    free(firefox.leaves);
    free(firefox.order);
    return firefox.failed ? -1 : 0;
}
