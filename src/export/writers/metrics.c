/* metrics.c - figures as Prometheus scrapes them: the text format 0.0.4, and OpenMetrics 1.0.
 *
 * Floor 4. Reference: "Exposition formats" of Prometheus, the OpenMetrics specification 1.0. They differ in
 * the name of a counter's family, in units, and in the last line. A label for each call site would be a time
 * series for each, in every run: only the SITES_MAX largest have one, the others are one more; likewise
 * owners. A family stands once, with the samples of all processes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "export/export.h"
#include "export/writers/metrics.h"
#include "export/names.h"
#include "report/analyse/leak_class.h"
#include "report/analyse/owners.h"
#include "report/read/layer.h"
#include "report/text/utf8.h"

/* Series of one family that Prometheus' own advice still calls harmless: "keep the cardinality below 10", and
 * a few metrics may have more. */
enum { SITES_MAX = 20, OWNERS_MAX = 20 };
enum { FAMILIES_MAX = 48, LABEL_BYTES_MAX = 256 };

/* Its samples come process by process; all of a family stand together. */
struct family {
    char name[96], help[96];
    const char *type, *unit;
    FILE *out;
    char *samples;
    size_t bytes;
};

struct ms_metrics {
    struct family families[FAMILIES_MAX];
    size_t count;
    FILE *out;                      /* the family in hand; NULL: there is no memory for it */
    bool failed, tensors;           /* tensors: the report in hand shows them, so that names say so */
    const struct ms_report *report; /* in hand, and the labels of its process, escaped */
    char *process;
    struct ms_names processes; /* the labels of all */
};

#define OWNER_PEAK_HELP "What an owner held when most of the device was allocated."

/* A backslash, a quote and the end of a line are escaped; what is no UTF-8 becomes U+FFFD. No value is long.
 */
static void put_value(FILE *out, const char *text)
{
    const char *end = text + strnlen(text, LABEL_BYTES_MAX);

    while (text < end) {
        size_t length = ms_utf8_bytes(text);

        if (*text == '\\' || *text == '"')
            fprintf(out, "\\%c", *text);
        else if (*text == '\n')
            fputs("\\n", out);
        else if (length && ms_utf8_is_control(ms_utf8_character(text, length)))
            fputc('?', out);
        else if (length)
            fwrite(text, 1, length, out);
        else
            fputs("\xef\xbf\xbd", out);
        text += length ? length : 1;
    }
}

static void metrics_put_label(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",%s=\"", name);
    put_value(out, text);
    fputc('"', out);
}

/* "memshim_device_live_bytes", or "memshim_tensors_device_live_bytes". */
static void metrics_full_name(const struct ms_metrics *metrics, char full[static 96], const char *name)
{
    static const char first[] = "memshim_";

    if (metrics->tensors)
        snprintf(full, 96, "%stensors_%s", first, name + sizeof(first) - 1);
    else
        snprintf(full, 96, "%s", name);
}

/* The family into which the samples that follow go; `unit` is the end of a gauge's name, or of a counter's
 * before "_total". */
static void family(struct ms_metrics *metrics, const char *of, const char *type, const char *unit,
                   const char *help)
{
    struct family *family = metrics->families;
    char name[96];

    metrics_full_name(metrics, name, of);
    while (family < metrics->families + metrics->count && strcmp(family->name, name) != 0)
        family++;
    if (family == metrics->families + metrics->count) {
        family->out = metrics->count < FAMILIES_MAX ? open_memstream(&family->samples, &family->bytes) : NULL;
        metrics->out = family->out;
        metrics->failed = metrics->failed || !family->out;
        if (!family->out)
            return;
        snprintf(family->name, sizeof(family->name), "%s", name);
        snprintf(family->help, sizeof(family->help), "%s", help);
        family->type = type;
        family->unit = unit;
        metrics->count++;
    }
    metrics->out = family->out;
}

static void sample(const struct ms_metrics *metrics, const char *name, const char *labels, json_int_t value)
{
    char full[96];

    metrics_full_name(metrics, full, name);
    if (metrics->out)
        fprintf(metrics->out, "%s{%s%s} %" JSON_INTEGER_FORMAT "\n", full, metrics->process, labels, value);
}

/* Labels that begin with a comma, for the caller to free(); NULL without memory. */
static char *labels_of(const char *const names[], const char *const texts[], size_t count)
{
    char *labels = NULL;
    size_t bytes;
    FILE *out = open_memstream(&labels, &bytes);

    if (!out)
        return NULL;
    for (size_t i = 0; i < count; i++)
        metrics_put_label(out, names[i], texts[i]);
    if (fclose(out) == 0)
        return labels;
    free(labels);
    return NULL;
}

static void labelled(struct ms_metrics *metrics, const char *name, const char *const names[],
                     const char *const texts[], size_t count, json_int_t value)
{
    char *labels = labels_of(names, texts, count);

    if (labels)
        sample(metrics, name, labels, value);
    free(labels);
}

/* Of equal rows of devices[] the first stands for all: a series is there once. */
static void put_device(struct ms_metrics *metrics, const char *name, const json_t *device, json_int_t value)
{
    static const char *const names[] = {"api", "device"};
    char index[32];
    const char *texts[] = {ms_report_text(device, "api"), index};

    snprintf(index, sizeof(index), "%" JSON_INTEGER_FORMAT, ms_report_int(device, "index"));
    labelled(metrics, name, names, texts, MS_ARRAY_LEN(names), value);
}

/* Reports of before have no figure for all that a program holds. */
static json_int_t figure_of(const json_t *device, const char *key)
{
    return !strcmp(key, "held_bytes")        ? ms_report_held(device)
           : !strcmp(key, "peak_held_bytes") ? ms_report_reserved(device)
                                             : ms_report_int(device, key);
}

static void put_devices(struct ms_metrics *metrics)
{
    static const struct {
        const char *key, *name, *type, *help, *tensors; /* help of tensors; NULL: of blocks alone */
    } rows[] = {
        {"total_bytes", "memshim_device_memory_bytes", "gauge", "Memory of the device.", NULL},
        {"live_bytes", "memshim_device_live_bytes", "gauge", "Bytes allocated and not freed.",
         "Bytes of tensors: pieces that a framework gave on, and that live."},
        {"peak_live_bytes", "memshim_device_peak_live_bytes", "gauge",
         "The most that was allocated at one time.", "The most bytes of tensors at one time."},
        {"held_bytes", "memshim_device_reserved_bytes", "gauge",
         "What the program has of the device: the pool's memory, and what the vendor made.",
         "What the frameworks have of the device, for tensors."},
        {"peak_held_bytes", "memshim_device_peak_reserved_bytes", "gauge",
         "The most that it had of the device at one time.", "The most that they had of it."},
        {"reserved_bytes", "memshim_device_pool_bytes", "gauge", "Memory that the vendor gave for the pool.",
         NULL},
        {"peak_reserved_bytes", "memshim_device_peak_pool_bytes", "gauge",
         "The most that the pool had at one time.", NULL},
        {"live_count", "memshim_device_live_blocks", "gauge", "Blocks allocated and not freed.",
         "Tensors that live."},
        {"allocated_bytes", "memshim_device_allocated_bytes", "counter", "Bytes that were ever allocated.",
         "Bytes of all tensors that ever lived."},
        {"allocated_count", "memshim_device_allocations", "counter", "Allocations that were ever made.",
         "Tensors that ever lived."},
        {"vendor_calls", "memshim_device_vendor_calls", "counter",
         "Allocations and frees that the vendor saw.", NULL},
    };
    const json_t *device;
    size_t k;

    for (size_t i = 0; i < MS_ARRAY_LEN(rows); i++) {
        bool counter = !strcmp(rows[i].type, "counter"), bytes = strstr(rows[i].name, "_bytes") != NULL;
        char name[96];

        if (metrics->tensors && !rows[i].tensors)
            continue;
        family(metrics, rows[i].name, rows[i].type, bytes ? "bytes" : "",
               metrics->tensors ? rows[i].tensors : rows[i].help);
        snprintf(name, sizeof(name), "%s%s", rows[i].name, counter ? "_total" : "");
        json_array_foreach (ms_report_array(metrics->report->root, "devices"), k, device)
            if (ms_report_device_first(metrics->report, device) == k)
                put_device(metrics, name, device, figure_of(device, rows[i].key));
    }
}

/* Added up over the causes, so that a series is there once. */
static void put_oom(struct ms_metrics *metrics)
{
    static const char *const causes[] = {
#define MS_OOM_CAUSE_ROW(cause, word) word,
#include "record/live/oom.def"
        ""};
    static const char *const names[] = {"cause"};
    json_int_t counts[MS_ARRAY_LEN(causes)] = {0};
    const json_t *oom;
    size_t i, k;

    json_array_foreach (ms_report_array(metrics->report->root, "oom"), i, oom) {
        for (k = 0; k + 1 < MS_ARRAY_LEN(causes) && strcmp(causes[k], ms_report_text(oom, "cause")) != 0;)
            k++;
        counts[k]++;
    }
    family(metrics, "memshim_oom_events", "counter", "", "Times that there was no memory.");
    sample(metrics, "memshim_oom_events_total", "",
           ms_report_sum((json_int_t)json_array_size(ms_report_array(metrics->report->root, "oom")),
                         ms_report_int(json_object_get(metrics->report->root, "overhead"), "ooms_left_out")));
    family(metrics, "memshim_oom_latest", "gauge", "", "Of the latest 64 of them, those with this cause.");
    for (k = 0; k < MS_ARRAY_LEN(causes); k++) {
        const char *cause = *causes[k] ? causes[k] : "unknown";

        labelled(metrics, "memshim_oom_latest", names, &cause, 1, counts[k]);
    }
}

/* owners[] has a row for each owner, kind of memory and device, most bytes first; analyse.c puts it together,
 * each once. Rows beyond the first are one. */
static void put_owners(struct ms_metrics *metrics, const char *name, const char *key, const char *help)
{
    static const char *const names[] = {"owner", "memory", "api", "device"};
    const json_t *rows = ms_report_array(metrics->report->root, "owners"), *owner;
    json_int_t rest = 0;
    size_t i;

    family(metrics, name, "gauge", "bytes", help);
    json_array_foreach (rows, i, owner) {
        bool device = json_object_get(owner, "device") != NULL;
        char index[32] = "";
        const char *texts[] = {ms_report_text(owner, "owner"), ms_report_text(owner, "memory"),
                               device ? ms_report_device_api(owner) : "", index};

        if (i >= OWNERS_MAX) {
            rest = ms_report_sum(rest, ms_report_int(owner, key));
            continue;
        }
        if (device)
            snprintf(index, sizeof(index), "%" JSON_INTEGER_FORMAT, ms_report_int(owner, "device"));
        labelled(metrics, name, names, texts, MS_ARRAY_LEN(names), ms_report_int(owner, key));
    }
    if (i > OWNERS_MAX)
        labelled(metrics, name, names, (const char *const[]){"others", "", "", ""}, MS_ARRAY_LEN(names),
                 rest);
}

static enum ms_value sorted_by;

static int largest_first(const void *a, const void *b)
{
    const struct ms_model_site *const *x = a, *const *y = b;
    json_int_t left = (*x)->values[sorted_by], right = (*y)->values[sorted_by];

    if (left != right)
        return left > right ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* The largest sites by name, and all others as one, so that the series add up. */
static int put_sites(struct ms_metrics *metrics, const struct ms_export *job)
{
    static const char *const names[] = {"site", "place", "call", "function"};
    const struct ms_model *model = job->model;
    const struct ms_model_site **sites = calloc(model->site_count + 1, sizeof(const struct ms_model_site *));
    json_int_t rest = 0;
    char name[64], help[96];

    if (!sites)
        return -1;
    for (size_t i = 0; i < model->site_count; i++)
        sites[i] = &model->sites[i];
    sorted_by = job->value;
    qsort(sites, model->site_count, sizeof(*sites), largest_first);
    snprintf(name, sizeof(name), "memshim_site_%s_%s", ms_value_names[job->value].name,
             job->value == MS_VALUE_COUNT ? "allocations" : "bytes");
    snprintf(help, sizeof(help), "By call site: %s.", ms_value_names[job->value].title);
    family(metrics, name, "gauge", job->value == MS_VALUE_COUNT ? "" : "bytes", help);
    for (size_t i = 0; i < model->site_count; i++) {
        const struct ms_model_site *site = sites[i];
        char id[32];
        const char *texts[] = {id, site->place, site->api, ""};

        if (i >= SITES_MAX) {
            rest = ms_report_sum(rest, site->values[job->value]);
            continue;
        }
        snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT, ms_report_int(site->json, "id"));
        if (site->depth > 2)
            texts[3] = model->frames[model->path[site->first + site->depth - 2]].name;
        labelled(metrics, name, names, texts, MS_ARRAY_LEN(names), site->values[job->value]);
    }
    if (model->site_count > SITES_MAX)
        labelled(metrics, name, names, (const char *const[]){"others", "", "", ""}, MS_ARRAY_LEN(names),
                 rest);
    free(sites);
    return 0;
}

/* rank and job_id of who has them; the process always. No comma in front. */
static char *process_labels(const struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run");
    char *labels = NULL;
    size_t bytes;
    FILE *out = open_memstream(&labels, &bytes);

    if (!out)
        return NULL;
    fprintf(out, "pid=\"%" JSON_INTEGER_FORMAT "\"", ms_report_int(run, "pid"));
    metrics_put_label(out, "host", ms_report_text(run, "host"));
    if (json_object_get(run, "rank"))
        fprintf(out, ",rank=\"%" JSON_INTEGER_FORMAT "\"", ms_report_int(run, "rank"));
    if (*ms_report_text(run, "job_id"))
        metrics_put_label(out, "job", ms_report_text(run, "job_id"));
    if (fclose(out) == 0)
        return labels;
    free(labels);
    return NULL;
}

struct ms_metrics *ms_metrics_open(void)
{
    return calloc(1, sizeof(struct ms_metrics));
}

static int begin_process(struct ms_metrics *metrics, const struct ms_report *report)
{
    free(metrics->process);
    metrics->report = report;
    metrics->tensors = ms_report_is_inner(report);
    metrics->process = process_labels(report);
    return metrics->process ? 0 : -1;
}

/* Beside the blocks, where there are any. */
static int add_tensors(struct ms_metrics *metrics, const struct ms_report *report)
{
    struct ms_report inner;

    if (!ms_report_has_inner(report))
        return 0;
    if (!ms_report_open_inner(report, &inner))
        return -1;
    ms_owners_annotate(&inner);
    metrics->report = &inner;
    metrics->tensors = true;
    put_devices(metrics);
    put_owners(metrics, "memshim_owner_live_bytes", "live_bytes", "What tensors of a category hold.");
    put_owners(metrics, "memshim_owner_peak_bytes", "at_peak_bytes",
               "What they held when tensors had most of the device.");
    metrics->report = report;
    metrics->tensors = false;
    ms_report_close(&inner);
    return 0;
}

int ms_metrics_add(struct ms_metrics *metrics, const struct ms_report *report)
{
    uint32_t before = metrics->processes.count;

    if (begin_process(metrics, report) < 0 ||
        ms_names_number(&metrics->processes, metrics->process) != before)
        return -1;
    put_devices(metrics);
    put_oom(metrics);
    put_owners(metrics, "memshim_owner_live_bytes", "live_bytes", "What an owner holds.");
    put_owners(metrics, "memshim_owner_peak_bytes", "at_peak_bytes", OWNER_PEAK_HELP);
    return add_tensors(metrics, report) < 0 || metrics->failed ? -1 : 0;
}

static int add_gauge(struct ms_metrics *metrics, const char *name, const char *unit, const char *help,
                     char *labels, json_int_t value)
{
    family(metrics, name, "gauge", unit, help);
    if (labels && metrics->out)
        fprintf(metrics->out, "%s{%s} %" JSON_INTEGER_FORMAT "\n", name, labels + 1, value);
    free(labels);
    return labels && !metrics->failed ? 0 : -1;
}

int ms_metrics_add_host(struct ms_metrics *metrics, const char *host, const char *name, const char *help,
                        json_int_t value)
{
    return add_gauge(metrics, name, "", help, labels_of((const char *const[]){"host"}, &host, 1), value);
}

int ms_metrics_add_gauge(struct ms_metrics *metrics, const char *name, const char *help,
                         const char *const names[], const char *const texts[], size_t count, json_int_t value)
{
    return add_gauge(metrics, name, "bytes", help, labels_of(names, texts, count), value);
}

int ms_metrics_write(struct ms_metrics *metrics, FILE *out, bool open)
{
    for (size_t i = 0; i < metrics->count; i++) {
        struct family *family = &metrics->families[i];
        const char *suffix = !open && !strcmp(family->type, "counter") ? "_total" : "";

        if (fflush(family->out) != 0)
            return -1;
        fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, suffix, family->help, family->name,
                suffix, family->type);
        if (open && *family->unit)
            fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
        fwrite(family->samples, 1, family->bytes, out);
    }
    if (open)
        fputs("# EOF\n", out);
    return 0;
}

void ms_metrics_close(struct ms_metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < metrics->count; i++) {
        fclose(metrics->families[i].out);
        free(metrics->families[i].samples);
    }
    free(metrics->process);
    ms_names_close(&metrics->processes);
    free(metrics);
}

static int write_metrics(FILE *out, const struct ms_export *job, bool open)
{
    const struct ms_report *report = job->model->report;
    struct ms_metrics *metrics = ms_metrics_open();
    int result = metrics ? begin_process(metrics, report) : -1;

    if (result == 0) {
        put_devices(metrics);
        family(metrics, "memshim_leaked_bytes", "gauge", "bytes",
               "Allocated and not freed when the process ended.");
        sample(metrics, "memshim_leaked_bytes", "", ms_report_leaked(report, NULL));
        if (!metrics->tensors)
            put_oom(metrics);
        put_owners(metrics, "memshim_owner_peak_bytes", "at_peak_bytes", OWNER_PEAK_HELP);
        result = put_sites(metrics, job);
        if (result == 0 && !metrics->tensors)
            result = add_tensors(metrics, report);
    }
    if (result == 0)
        result = metrics->failed ? -1 : ms_metrics_write(metrics, out, open);
    ms_metrics_close(metrics);
    return result;
}

int ms_export_prometheus(FILE *out, const struct ms_export *job)
{
    return write_metrics(out, job, false);
}

int ms_export_openmetrics(FILE *out, const struct ms_export *job)
{
    return write_metrics(out, job, true);
}
