/* leaks.c - the leaks of a report; see leaks.h.
 *
 * Floor 5. */
#include "cli/screens/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "cli/load.h"
#include "report/text/text.h"

/* The keys by which the rows are sorted, looked up once. */
struct key {
    enum ms_leak_class class;
    json_int_t bytes, site;
    json_t *row;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static int leaks_sort(json_t **rows, size_t count)
{
    struct key *keys = calloc(count + 1, sizeof(*keys));

    if (!keys)
        return -1;
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct key){ms_leak_class_of(rows[i]), ms_report_int(rows[i], "bytes"),
                               ms_report_int(rows[i], "site"), rows[i]};
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (size_t i = 0; i < count; i++)
        rows[i] = keys[i].row;
    free(keys);
    return 0;
}

static void leave_out(struct ms_leak_sum *sum, const json_t *leak)
{
    sum->bytes = ms_report_sum(sum->bytes, ms_leak_bytes(leak));
    sum->blocks = ms_report_sum(sum->blocks, ms_report_int(leak, "count"));
    sum->sites++;
}

int ms_leaks_open(const struct ms_report *report, uint64_t min_bytes, struct ms_leaks *leaks_p)
{
    json_t *all = ms_report_array(report->root, "leaks"), *leak;
    size_t i;

    *leaks_p = (struct ms_leaks){.rows = calloc(json_array_size(all) + 1, sizeof(json_t *))};
    if (!leaks_p->rows)
        return -1;
    json_array_foreach (all, i, leak) {
        json_int_t bytes = ms_report_int(leak, "bytes");
        bool shown = bytes >= 0 && (uint64_t)bytes >= min_bytes;

        if (shown)
            leaks_p->rows[leaks_p->count++] = leak;
        if (shown || ms_leak_class_of(leak) == MS_LEAK_CACHE)
            ms_leak_sums_add(&leaks_p->sums, leak);
        else if (bytes >= 0 && ms_report_is_leak(leak))
            leave_out(&leaks_p->left_out, leak);
    }
    if (leaks_p->count == 0 || leaks_sort(leaks_p->rows, leaks_p->count) == 0)
        return 0;
    ms_leaks_close(leaks_p);
    return -1;
}

void ms_leaks_close(struct ms_leaks *leaks)
{
    free(leaks->rows);
    leaks->rows = NULL;
}

static void print_sum(FILE *out, const struct ms_leak_sum *sum, const char *verb)
{
    fprintf(out, "%s %s in %" JSON_INTEGER_FORMAT " block%s at %zu site%s", ms_text_size(sum->bytes).text,
            verb, sum->blocks, sum->blocks == 1 ? "" : "s", sum->sites, sum->sites == 1 ? "" : "s");
}

void ms_leaks_put_classes(FILE *out, const struct ms_leak_sums *sums)
{
    struct ms_leak_sum all = ms_leak_sums_leaked(sums);
    const char *before = ": ";

    for (unsigned class = MS_LEAK_GROWING; class <= MS_LEAK_HELD; class ++) {
        const struct ms_leak_sum *sum = &sums->of[class];

        if (!sum->sites)
            continue;
        fputs(before, out);
        if (sum->sites < all.sites)
            fprintf(out, "%s ", ms_text_size(sum->bytes).text);
        fputs(ms_leak_class_text(class), out);
        before = ", ";
    }
}

void ms_leaks_put_others(FILE *out, const struct ms_leak_sums *sums)
{
    for (unsigned class = MS_LEAK_INTERRUPTED; class <= MS_LEAK_LIVE; class ++)
        if (sums->of[class].bytes > 0)
            fprintf(out, "; %s %s", ms_text_size(sums->of[class].bytes).text, ms_leak_class_text(class));
}

void ms_leaks_print_sums(FILE *out, const struct ms_report *report, const struct ms_leaks *leaks,
                         uint64_t min_bytes)
{
    json_int_t late = ms_report_int(json_object_get(report->root, "coverage"), "late_frees");
    const struct ms_leak_sum counted = ms_leak_sums_leaked(&leaks->sums);
    const struct ms_leak_sum *of = leaks->sums.of;

    if (counted.sites || of[MS_LEAK_SUPPRESSED].sites) {
        print_sum(out, &counted, "leaked");
        ms_leaks_put_classes(out, &leaks->sums);
    } else if (leaks->left_out.sites) {
        fprintf(out, "no leaks of %s or more", ms_text_size((json_int_t)min_bytes).text);
    } else {
        fputs("no leaks", out);
    }
    if (of[MS_LEAK_SUPPRESSED].bytes)
        fprintf(out, "; %s more suppressed", ms_text_size(of[MS_LEAK_SUPPRESSED].bytes).text);
    ms_leaks_put_others(out, &leaks->sums);
    fputc('\n', out);
    if (of[MS_LEAK_CACHE].sites) {
        print_sum(out, &of[MS_LEAK_CACHE], "kept");
        fputs(" by caches of frameworks, which is no leak\n", out);
    }
    if (leaks->left_out.sites) {
        print_sum(out, &leaks->left_out, "left out");
        fprintf(out, " of less than %s each\n", ms_text_size((json_int_t)min_bytes).text);
    }
    if (late && leaks->count)
        fprintf(out,
                "%" JSON_INTEGER_FORMAT
                " block%s freed after the report was written, and counted here all the same\n",
                late, late == 1 ? " was" : "s were");
}

/* Who made them may have named them. */
static void put_names(FILE *out, const json_t *leak)
{
    const json_t *names = json_object_get(leak, "names"), *name;
    size_t i;

    json_array_foreach (names, i, name) {
        fputs(i ? ", " : ", named ", out);
        ms_text_put(out, json_string_value(name));
    }
    if (json_array_size(names) && (json_int_t)json_array_size(names) < ms_report_int(leak, "count"))
        fputs(" and others", out);
}

static void print_leak(FILE *out, const struct ms_report *report, const json_t *leak, size_t depth)
{
    json_t *site = ms_report_site(report, ms_report_int(leak, "site"));
    json_int_t count = ms_report_int(leak, "count"), device = ms_report_int(site, "device");

    fprintf(out, "\n%s in %" JSON_INTEGER_FORMAT " block%s, ",
            ms_text_size(ms_report_int(leak, "bytes")).text, count, count == 1 ? "" : "s");
    fputs(ms_leak_class_text(ms_leak_class_of(leak)), out);
    if (*ms_report_text(leak, "framework")) {
        fputs(" of ", out);
        ms_text_put(out, ms_report_text(leak, "framework"));
    }
    fputs(", ", out);
    ms_text_put(out, ms_cli_site_api(site));
    if (device >= 0)
        fprintf(out, ", %sdevice %" JSON_INTEGER_FORMAT, ms_report_device_prefix(site), device);
    ms_text_put_library(out, report, ms_report_int(site, "stack"));
    ms_text_put_own(out, report, ms_report_int(site, "stack"));
    put_names(out, leak);
    fputc('\n', out);
    ms_text_callers(out, report, ms_report_int(site, "stack"), "    ", depth);
}

void ms_leaks_print(FILE *out, const struct ms_report *report, const struct ms_leaks *leaks, size_t top,
                    size_t depth)
{
    for (size_t i = 0; i < leaks->count && i < top; i++)
        print_leak(out, report, leaks->rows[i], depth);
    if (leaks->count > top)
        fprintf(out, "\n... and %zu more site%s\n", leaks->count - top, leaks->count - top == 1 ? "" : "s");
}
