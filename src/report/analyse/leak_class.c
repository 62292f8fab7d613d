/* leak_class.c - in which way memory was not freed; see leak_class.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/leak_class.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/read/layer.h"
#include "report/read/sites.h"

/* So many of the intervals between its allocations have to pass without one before a place has stopped. */
enum { INTERVALS_STOPPED = 4, PHASES_LEAST = 5, WORK_TIMES = 2 };
/* A program that does nothing but compute for longer than this has gone on. */
static const json_int_t idle_ns = 1000000000;

static const struct {
    const char *word, *text;
} classes[MS_LEAK_CLASSES] = {
    [MS_LEAK_GROWING] = {"growing", "growing"},
    [MS_LEAK_LOST] = {"lost", "lost"},
    [MS_LEAK_HELD] = {"held", "held to the end"},
    [MS_LEAK_INTERRUPTED] = {"interrupted", "held when it was ended"},
    [MS_LEAK_CONTEXT] = {"context", "gone with its context"},
    [MS_LEAK_LIVE] = {"live", "not freed so far"},
    [MS_LEAK_CACHE] = {"cache", "cache"},
    [MS_LEAK_SUPPRESSED] = {"suppressed", "suppressed"},
};

const char *ms_leak_class_word(enum ms_leak_class class)
{
    return classes[class].word;
}

const char *ms_leak_class_text(enum ms_leak_class class)
{
    return classes[class].text;
}

enum ms_leak_class ms_leak_class_find(const char *word, size_t length)
{
    unsigned class = 0;

    while (class < MS_LEAK_CLASSES &&
           (strlen(classes[class].word) != length || strncmp(classes[class].word, word, length) != 0))
        class ++;
    return (enum ms_leak_class) class;
}

enum ms_leak_class ms_leak_class_of(const json_t *leak)
{
    const char *class = ms_report_text(leak, "class"), *pattern = ms_report_text(leak, "pattern");
    enum ms_leak_class told = ms_leak_class_find(pattern, strlen(pattern));

    if (!strcmp(class, "suppressed"))
        return MS_LEAK_SUPPRESSED;
    if (!strcmp(class, "cache"))
        return MS_LEAK_CACHE;
    if (told <= MS_LEAK_LIVE)
        return told;
    return strcmp(class, "growing") ? MS_LEAK_LOST : MS_LEAK_GROWING;
}

json_int_t ms_leak_bytes(const json_t *leak)
{
    json_int_t bytes = ms_report_int(leak, "bytes"), died = ms_report_int(leak, "died_with_context_bytes");

    return died > 0 && died < bytes ? bytes - died : bytes;
}

/* --- how it came ---------------------------------------------------------------------------------------- */

/* A place that allocated and freed again and again: the program was at its work from its first allocation to
 * its last one. */
struct work {
    json_int_t first_ns, last_ns; /* last_ns: of this and of all before it */
};

struct pass {
    const struct ms_report *report;
    json_int_t last_ns; /* when the program was last seen to go on */
    bool running, abnormal;
    struct work *works; /* by their first allocation */
    size_t work_count;
};

static int compare_works(const void *a, const void *b)
{
    const struct work *x = a, *y = b;

    return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static void find_works(struct pass *pass)
{
    const struct ms_site_row *sites = ms_report_sites(pass->report);
    size_t count = sites ? json_array_size(pass->report->sites) : 0, i;

    pass->works = calloc(count + 1, sizeof(*pass->works));
    for (i = 0; pass->works && i < count; i++)
        if (sites[i].freed_count >= WORK_TIMES && sites[i].first_ns >= 0 && sites[i].last_ns >= 0)
            pass->works[pass->work_count++] = (struct work){sites[i].first_ns, sites[i].last_ns};
    if (pass->work_count)
        qsort(pass->works, pass->work_count, sizeof(*pass->works), compare_works);
    for (i = 1; i < pass->work_count; i++)
        if (pass->works[i].last_ns < pass->works[i - 1].last_ns)
            pass->works[i].last_ns = pass->works[i - 1].last_ns;
}

/* True if work that had begun by `from` went on after `to` for at least half as long as the program did. */
static bool is_amid_work(const struct pass *pass, json_int_t from, json_int_t to)
{
    size_t low = 0, high = pass->work_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (pass->works[middle].first_ns <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low && pass->works[low - 1].last_ns - to >= (pass->last_ns - to) / 2;
}

/* The latest allocation of all, or the end of a program that computed for a while. */
static json_int_t last_sign(const struct ms_report *report, const json_t *run)
{
    json_int_t start = ms_report_int(run, "start_unix_ns"), end = ms_report_int(run, "end_unix_ns");
    json_int_t last = start > 0 && end > start && end - start > idle_ns ? end - start - idle_ns : 0;
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;

    for (size_t i = 0; i < count; i++)
        last = sites[i].last_ns > last ? sites[i].last_ns : last;
    return last;
}

/* The exit code is known where `memshim run` saw it. */
static bool ended_abnormally(const json_t *run)
{
    const char *reason = ms_report_text(run, "end_reason");

    return !strcmp(reason, "signal") || !strcmp(reason, "killed") || !strcmp(reason, "oom") ||
           ms_report_int(run, "exit_code") != 0;
}

/* A phase that is repeated leaves more each time, and the place that held most in it has left a block each
 * time. */
static bool grows_by_phase(const struct ms_report *report, const json_t *leak)
{
    json_t *phase, *device;
    size_t i, k;

    json_array_foreach (ms_report_array(report->root, "phases"), i, phase) {
        json_array_foreach (ms_report_array(phase, "devices"), k, device) {
            const json_t *held = json_array_get(ms_report_array(device, "sites"), 0);
            json_int_t count = ms_report_int(device, "count");

            if (count >= PHASES_LEAST && ms_report_int(json_object_get(device, "growth_bytes"), "min") > 0 &&
                held && ms_report_int(held, "site") == ms_report_int(leak, "site") &&
                ms_report_int(leak, "count") >= count)
                return true;
        }
    }
    return false;
}

/* True if no block came any more for a while, though the program went on, and those that came were there
 * before its work. */
static bool has_stopped(const struct pass *pass, const json_t *leak)
{
    json_int_t first = ms_report_int(leak, "first_ns"), last = ms_report_int(leak, "last_ns");
    json_int_t count = ms_report_int(leak, "count"), after = pass->last_ns - (last > 0 ? last : 0);

    return first >= 0 && after > 0 && count > 1 && last >= first &&
           after / INTERVALS_STOPPED >= (last - first) / (count - 1) &&
           !is_amid_work(pass, first + (last - first) / 2, last);
}

/* One block of a place that had many: the first one, as what is made once for all, or the one in use. */
static bool is_first_or_latest(const json_t *leak, const json_t *site)
{
    json_int_t born = ms_report_int(leak, "first_ns");

    return ms_report_int(leak, "count") == 1 && json_object_get(site, "first_ns") &&
           (born == ms_report_int(site, "first_ns") || born == ms_report_int(site, "last_ns"));
}

static enum ms_leak_class leak_class_classify(const struct pass *pass, const json_t *leak)
{
    const json_t *site = ms_report_site(pass->report, ms_report_int(leak, "site"));
    json_int_t died = ms_report_int(leak, "died_with_context_bytes");

    if (died > 0 && died >= ms_report_int(leak, "bytes"))
        return MS_LEAK_CONTEXT;
    if (!strcmp(ms_report_text(leak, "class"), "growing") || grows_by_phase(pass->report, leak))
        return MS_LEAK_GROWING;
    if (pass->running)
        return MS_LEAK_LIVE;
    if (pass->abnormal)
        return MS_LEAK_INTERRUPTED;
    if (ms_report_int(site, "total_count") == 1 || is_first_or_latest(leak, site) || has_stopped(pass, leak))
        return MS_LEAK_HELD;
    /* Tensors that a program holds as long as it runs are made one by one, as a model's are. */
    return ms_report_is_inner(pass->report) ? MS_LEAK_HELD : MS_LEAK_LOST;
}

void ms_leak_classes_annotate(struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run");
    struct pass pass = {.report = report,
                        .last_ns = last_sign(report, run),
                        .running = !strcmp(ms_report_text(run, "end_reason"), "running"),
                        .abnormal = ended_abnormally(run)};
    json_t *leak;
    size_t i;

    find_works(&pass);
    json_array_foreach (ms_report_array(report->root, "leaks"), i, leak)
        if (json_is_object(leak))
            json_object_set_new(leak, "pattern", json_string(classes[leak_class_classify(&pass, leak)].word));
    free(pass.works);
}

/* --- sums ----------------------------------------------------------------------------------------------- */

void ms_leak_sums_add(struct ms_leak_sums *sums, const json_t *leak)
{
    enum ms_leak_class class = ms_leak_class_of(leak);
    struct ms_leak_sum *sum = &sums->of[class], *context = &sums->of[MS_LEAK_CONTEXT];

    sum->bytes = ms_report_sum(sum->bytes, ms_leak_bytes(leak));
    sum->blocks = ms_report_sum(sum->blocks, ms_report_int(leak, "count"));
    sum->sites++;
    if (class <= MS_LEAK_HELD)
        context->bytes = ms_report_sum(context->bytes, ms_report_int(leak, "bytes") - ms_leak_bytes(leak));
}

void ms_leak_sums_of(const struct ms_report *report, struct ms_leak_sums *sums_p)
{
    json_t *leak;
    size_t i;

    *sums_p = (struct ms_leak_sums){.of = {{0, 0, 0}}};
    json_array_foreach (ms_report_array(report->root, "leaks"), i, leak)
        ms_leak_sums_add(sums_p, leak);
}

struct ms_leak_sum ms_leak_sums_leaked(const struct ms_leak_sums *sums)
{
    struct ms_leak_sum leaked = {0, 0, 0};

    for (unsigned class = MS_LEAK_GROWING; class <= MS_LEAK_HELD; class ++) {
        leaked.bytes = ms_report_sum(leaked.bytes, sums->of[class].bytes);
        leaked.blocks = ms_report_sum(leaked.blocks, sums->of[class].blocks);
        leaked.sites += sums->of[class].sites;
    }
    return leaked;
}

bool ms_report_is_leak(const json_t *leak)
{
    return ms_leak_class_of(leak) <= MS_LEAK_HELD;
}

json_int_t ms_report_leaked(const struct ms_report *report, json_int_t *by_device)
{
    json_int_t bytes = 0;
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "leaks"), i, leak) {
        size_t device = by_device
                            ? ms_report_device_of(report, ms_report_site(report, ms_report_int(leak, "site")))
                            : SIZE_MAX;

        if (!ms_report_is_leak(leak))
            continue;
        bytes = ms_report_sum(bytes, ms_leak_bytes(leak));
        if (device != SIZE_MAX)
            by_device[device] = ms_report_sum(by_device[device], ms_leak_bytes(leak));
    }
    return bytes;
}

json_int_t ms_report_cached(const struct ms_report *report)
{
    struct ms_leak_sums sums;

    ms_leak_sums_of(report, &sums);
    return sums.of[MS_LEAK_CACHE].bytes;
}
