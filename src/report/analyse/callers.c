/* callers.c - who called a helper that allocates for several; see callers.h.
 *
 * Floor 4, command line only. Sites are sorted by their chains of calls, outward from the own line, as texts
 * are: those with one line then lie together, and so do those of one caller. */
#include "report/analyse/callers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/analyse/fold.h"
#include "report/read/sites.h"

/* A chain is cut here: nobody has helpers that deep. */
enum { DEPTH_MAX = 64 };

/* One site: its frames from the own line outward, without what is folded away. */
struct chain {
    json_t *site;
    uint32_t *frames; /* rows of frames[], each the first of those that read alike */
    size_t count, told_count;
    uint32_t told[MS_CALLERS_MAX];
};

/* Frames that read alike have one number. */
struct alike {
    const struct ms_report *report;
    uint32_t *first, *slots; /* by row of frames[], the first such row plus 1; open addressing, likewise */
    size_t mask;
};

static const char *text_at(const struct alike *alike, uint32_t row, const char *key)
{
    return ms_report_text(json_array_get(alike->report->frames, row), key);
}

static bool read_alike(const struct alike *alike, uint32_t a, uint32_t b)
{
    static const char *const keys[] = {"kind", "function", "file"};
    const json_t *x = json_array_get(alike->report->frames, a), *y = json_array_get(alike->report->frames, b);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(ms_report_text(x, keys[i]), ms_report_text(y, keys[i])) != 0)
            return false;
    if (*ms_report_text(x, "file"))
        return ms_report_int(x, "line") == ms_report_int(y, "line");
    return ms_report_int(x, "module") == ms_report_int(y, "module") &&
           (*ms_report_text(x, "function") ||
            !strcmp(ms_report_text(x, "rel_pc"), ms_report_text(y, "rel_pc")));
}

static size_t callers_hash_of(const struct alike *alike, uint32_t row)
{
    size_t hash = (size_t)ms_report_int(json_array_get(alike->report->frames, row), "line") * 31;

    for (const char *c = text_at(alike, row, "function"); *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (const char *c = text_at(alike, row, "file"); *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}

static uint32_t callers_number_of(struct alike *alike, uint32_t row)
{
    size_t at;

    if (alike->first[row])
        return alike->first[row] - 1;
    at = callers_hash_of(alike, row) & alike->mask;
    while (alike->slots[at] && !read_alike(alike, alike->slots[at] - 1, row))
        at = (at + 1) & alike->mask;
    if (!alike->slots[at])
        alike->slots[at] = row + 1;
    alike->first[row] = alike->slots[at];
    return alike->first[row] - 1;
}

static bool open_alike(struct alike *alike, const struct ms_report *report)
{
    size_t count = json_array_size(report->frames);

    *alike = (struct alike){.report = report, .mask = 63};
    while (alike->mask < 2 * count)
        alike->mask = alike->mask * 2 + 1;
    alike->first = calloc(count + 1, sizeof(*alike->first));
    alike->slots = calloc(alike->mask + 1, sizeof(*alike->slots));
    return alike->first && alike->slots;
}

/* The chain of a site; none where its own line is another thread's. */
static bool read_chain(struct alike *alike, const struct ms_site_row *site, struct chain *chain)
{
    static size_t rows[MS_REPORT_DEPTH_MAX]; /* one caller at a time */
    uint32_t frames[DEPTH_MAX];
    unsigned any;
    bool inferred;
    size_t count = ms_fold_stack(alike->report, site->stack, rows, &any);
    size_t i = ms_fold_own_of(alike->report, rows, count, &inferred);
    unsigned hidden = MS_FOLD_MARK | MS_FOLD_STARTUP | MS_FOLD_FOLDED;

    *chain = (struct chain){.site = site->json};
    if (i == SIZE_MAX || inferred)
        return true;
    for (; i < count && chain->count < DEPTH_MAX; i++)
        if (!(ms_fold_of(alike->report, rows[i]) & hidden) &&
            (!chain->count || *text_at(alike, (uint32_t)rows[i], "function"))) /* an address tells nobody */
            frames[chain->count++] = callers_number_of(alike, (uint32_t)rows[i]);
    chain->frames = malloc((chain->count + 1) * sizeof(*frames));
    if (chain->frames)
        memcpy(chain->frames, frames, chain->count * sizeof(*frames));
    return chain->frames != NULL;
}

static int callers_compare(const void *a, const void *b)
{
    const struct chain *x = a, *y = b;

    for (size_t i = 0; i < x->count && i < y->count; i++)
        if (x->frames[i] != y->frames[i])
            return x->frames[i] < y->frames[i] ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

/* All of `chains` are alike before `depth`: each is told with the frame in which they part, and those that
 * have it in common likewise from there on. */
static void part(struct chain *chains, size_t count, size_t depth)
{
    size_t from, to;

    while (count > 1 && depth < chains[0].count && depth < chains[count - 1].count &&
           chains[0].frames[depth] == chains[count - 1].frames[depth])
        depth++;
    for (from = 0; count > 1 && from < count; from = to) {
        if (depth >= chains[from].count) { /* it ends here, where others go on */
            to = from + 1;
            continue;
        }
        for (to = from;
             to < count && depth < chains[to].count && chains[to].frames[depth] == chains[from].frames[depth];
             to++)
            chains[to].told[chains[to].told_count++] = chains[to].frames[depth];
        if (chains[from].told_count < MS_CALLERS_MAX)
            part(chains + from, to - from, depth + 1);
    }
}

static bool has_same(const struct chain *a, const struct chain *b)
{
    return a->told_count == b->told_count && !memcmp(a->told, b->told, a->told_count * sizeof(a->told[0]));
}

static json_t *callers_json(const struct chain *chain)
{
    json_t *callers = chain->told_count ? json_array() : NULL;

    for (size_t k = 0; k < chain->told_count; k++)
        json_array_append_new(callers, json_integer(chain->told[k]));
    return callers;
}

/* Sites that are told alike, as those of one caller on several devices, have one array. */
static void callers_tell(struct chain *chains, size_t count)
{
    json_t *before = NULL;
    size_t from, to;

    for (from = 0; from < count; from = to) {
        for (to = from + 1; to < count && chains[from].count && chains[to].count &&
                            chains[to].frames[0] == chains[from].frames[0];)
            to++;
        if (chains[from].count)
            part(chains + from, to - from, 1);
    }
    for (size_t i = 0; i < count; i++) {
        json_t *callers =
            i && has_same(&chains[i - 1], &chains[i]) ? json_incref(before) : callers_json(&chains[i]);

        if (callers)
            json_object_set_new(chains[i].site, "callers", callers);
        else
            json_object_del(chains[i].site, "callers");
        before = callers;
    }
}

void ms_callers_annotate(struct ms_report *report)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0, chains_count = 0, i;
    struct chain *chains = calloc(count + 1, sizeof(*chains));
    struct alike alike;
    bool good = open_alike(&alike, report) && chains;

    for (i = 0; i < count && good; i++)
        if (json_is_object(sites[i].json))
            good = read_chain(&alike, &sites[i], &chains[chains_count++]);
    if (good && chains_count)
        qsort(chains, chains_count, sizeof(*chains), callers_compare);
    if (good)
        callers_tell(chains, chains_count);
    for (i = 0; i < chains_count; i++)
        free(chains[i].frames);
    free(chains);
    free(alike.first);
    free(alike.slots);
    free(report->callers);
    report->callers = NULL;
}

/* Which site has a stack: by stack, the row of sites[] plus 1. */
static bool make_index(struct ms_report *report)
{
    size_t stacks = json_array_size(report->stacks), i;
    json_t *site;

    report->callers = calloc(stacks + 1, sizeof(*report->callers));
    json_array_foreach (report->sites, i, site) {
        json_int_t stack = ms_report_int(site, "stack");

        if (report->callers && stack > 0 && (size_t)stack < stacks && json_object_get(site, "callers"))
            report->callers[stack] = (unsigned)i + 1;
    }
    return report->callers != NULL;
}

size_t ms_callers_of(const struct ms_report *report, json_int_t stack, const json_t **frames)
{
    struct ms_report *changing = (struct ms_report *)report;
    const json_t *callers;
    size_t count = 0, i;
    json_t *row;

    if (stack <= 0 || (size_t)stack >= json_array_size(report->stacks) ||
        (!report->callers && !make_index(changing)) || !report->callers[stack])
        return 0;
    callers = json_object_get(json_array_get(report->sites, report->callers[stack] - 1), "callers");
    json_array_foreach (callers, i, row) {
        const json_t *frame = json_is_integer(row) && json_integer_value(row) >= 0
                                  ? json_array_get(report->frames, (size_t)json_integer_value(row))
                                  : NULL;

        if (frame && count < MS_CALLERS_MAX)
            frames[count++] = frame;
    }
    return count;
}
