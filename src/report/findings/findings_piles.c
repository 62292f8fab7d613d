/* findings_piles.c - tensors, and pinned host memory, that pile up step by step; see findings.h.
 *
 * Floor 4, command line only. The report is a view of the inner layer (report/read/layer.h). Tensors come and
 * go with each step of a program. Of a graph that is kept all lines pile up alike, and they are one
 * finding. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/findings/findings.h"
#include "report/analyse/fold.h"
#include "report/analyse/tensor_lines.h"
#include "report/read/layer.h"
#include "report/read/sites.h"
#include "report/text/text.h"

enum {
#define MS_FINDING(rule, by, severity, confidence)
#define MS_FINDING_NUMBER(name, value, text, rule) name = (value),
#include "report/findings/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

/* --- what piles up -------------------------------------------------------------------------------------- */

/* When tensors that come and go, as a program's steps have them, came last. */
static json_int_t work_end(const struct ms_site_row *sites, size_t count)
{
    json_int_t last = -1;

    for (size_t i = 0; i < count; i++)
        if (sites[i].freed_count && sites[i].max_bytes <= sites[i].total_bytes / 2 && sites[i].last_ns > last)
            last = sites[i].last_ns;
    return last;
}

static bool is_all_there(const struct ms_site_row *site)
{
    return site->max_bytes / 7 * 8 >= site->total_bytes;
}

/* True if tensors of a place come more often than a model is called: for each layer, or each parameter. */
static bool is_of_layers(const struct ms_site_row *site)
{
    static const char *const owners[] = {"activations", "gradients", "workspace", "optimizer state"};

    for (size_t i = 0; i < MS_ARRAY_LEN(owners); i++)
        if (!strcmp(site->owner, owners[i]))
            return true;
    return false;
}

/* How often the function that calls the model of a place made tensors of its own, on the line that did most.
 */
static json_int_t calls_of(const struct ms_report *report, const struct ms_site_row *site)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    const json_t *caller = ms_tensor_caller(report, site->stack), *own;
    size_t count = caller ? json_array_size(report->sites) : 0;
    json_int_t calls = 0;
    bool inferred;

    for (size_t i = 0; i < count; i++) {
        own = is_of_layers(&sites[i]) ? NULL : ms_fold_own(report, sites[i].stack, &inferred);
        if (own && sites[i].total_count > calls && ms_tensor_is_same_function(own, caller))
            calls = sites[i].total_count;
    }
    return calls;
}

/* True if a line of a model's made more than one tensor in each call of the model, and all of them are there;
 * of many calls two thirds are enough, since a graph does without what its last layers made. A cache keeps
 * the last layer's alone. */
static bool is_of_all_layers(const struct ms_report *report, const struct ms_site_row *site)
{
    json_int_t calls;

    if (strcmp(site->owner, "activations") != 0 || site->max_bytes / 2 < site->total_bytes / 3)
        return false;
    calls = calls_of(report, site);
    return calls > 1 && site->total_count >= 2 * calls && (is_all_there(site) || calls >= PILE_TIMES);
}

/* True if the tensors of a place were all there at once, or rose from moment to moment, as long as the
 * program was at work. A model that is loaded, and a cache that is full, stop before. */
static bool piles_up(const struct ms_report *report, const struct ms_site_row *site, json_int_t work_end_ns)
{
    json_int_t span = site->last_ns - site->first_ns, before = 0, bytes;
    size_t steps = 0, rises = 0, i;
    json_t *held;

    if (site->total_count < PILE_TIMES || work_end_ns < 0 || span <= 0 ||
        work_end_ns - site->last_ns > span / 4)
        return false;
    if (is_all_there(site) || is_of_all_layers(report, site))
        return true;
    json_array_foreach (ms_report_array(site->json, "held"), i, held) {
        bytes = json_integer_value(json_array_get(held, 1));
        if (!bytes) /* given back in the end */
            break;
        steps++;
        rises += bytes > before;
        before = bytes;
    }
    return steps >= PILE_MOMENTS && 4 * rises >= 3 * steps && before > site->max_bytes / 2;
}

/* Of one device, all places where tensors pile up. */
struct pile {
    json_int_t bytes;
    size_t lines, kept; /* kept: lines of a graph, that modules made */
    const struct ms_site_row *most, *most_kept;
};

static void tell_graph(struct ms_finder *finder, const struct pile *pile)
{
    const struct ms_report *report = finder->report;
    const json_t *caller = ms_tensor_caller(report, pile->most_kept->stack);
    struct ms_tensor_passes passes = ms_tensor_passes(report);
    char *line = ms_tensor_frame(report, caller);
    bool backward = passes.lines && ms_tensor_passes_has(&passes, caller);

    if (line)
        ms_finding_add(
            finder, "growth", pile->bytes, pile->most_kept->json,
            ms_finding_text("%s of tensors pile up on %zu line%s, step by step: the graph of each step that "
                            "%s computes is kept",
                            ms_text_size(pile->bytes).text, pile->lines, pile->lines == 1 ? "" : "s", line),
            backward
                ? ms_finding_text("backward() runs in %s: drop retain_graph=True, detach() what one step "
                                  "hands to the next, and keep loss.item() of what no backward pass is for",
                                  line)
                : ms_finding_text("keep loss.item() or loss.detach() in place of what %s computes, or "
                                  "compute it under torch.no_grad()",
                                  line));
    free(passes.lines);
    free(line);
}

static void tell_pile(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *site = found->row;
    char *line = ms_finding_line(finder->report, site, "this call"),
         *caller =
             ms_tensor_frame(finder->report, ms_tensor_caller(finder->report, ms_report_int(site, "stack")));
    bool same = line && caller && !strcmp(line, caller);

    if (line && caller)
        ms_finding_add(
            finder, "growth", found->bytes, site,
            ms_finding_text("%s of tensors pile up, more with each step, made by %s%s%s",
                            ms_text_size(found->bytes).text, line, same ? "" : " for ", same ? "" : caller),
            ms_finding_text("give what keeps them a bound, or free what %s gets once it was used", caller));
    free(line);
    free(caller);
}

/* Notes each place, or of a graph all of them as one. */
static void tell_piles(struct ms_finder *finder, const struct ms_site_row *sites, size_t count,
                       const bool *piling, size_t device)
{
    struct pile pile = {.bytes = 0};

    for (size_t i = 0; i < count; i++) {
        const struct ms_site_row *site = &sites[i];

        if (!piling[i] || site->device_row != device)
            continue;
        pile.bytes = ms_report_sum(pile.bytes, site->max_bytes);
        pile.lines++;
        pile.kept += !strcmp(site->owner, "activations");
        if (!pile.most || site->max_bytes > pile.most->max_bytes)
            pile.most = site;
        if (!strcmp(site->owner, "activations") &&
            (!pile.most_kept || site->max_bytes > pile.most_kept->max_bytes))
            pile.most_kept = site;
    }
    if (pile.bytes < PILE_LEAST)
        return;
    if (pile.kept >= PILE_LINES || (pile.most_kept && is_of_all_layers(finder->report, pile.most_kept))) {
        tell_graph(finder, &pile);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (piling[i] && sites[i].device_row == device && sites[i].max_bytes >= PILE_LEAST)
            ms_finding_note(finder, (struct ms_finding_rows){.rule = MS_MANY_GROWTH,
                                                             .bytes = sites[i].max_bytes,
                                                             .tell = tell_pile,
                                                             .row = sites[i].json});
}

bool *ms_findings_look_at_piles(struct ms_finder *finder)
{
    const struct ms_report *report = finder->report;
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0,
           devices = json_array_size(ms_report_array(report->root, "devices"));
    json_int_t end = work_end(sites, count);
    bool *piling = calloc(count + 1, sizeof(*piling)), *found = calloc(devices + 1, sizeof(*found));

    for (size_t i = 0; piling && found && i < count; i++) {
        piling[i] = sites[i].device_row < devices && piles_up(report, &sites[i], end);
        if (piling[i])
            found[sites[i].device_row] = true;
    }
    for (size_t device = 0; piling && found && device < devices; device++)
        if (found[device])
            tell_piles(finder, sites, count, piling, device);
    free(piling);
    return found;
}

/* --- pinned host memory --------------------------------------------------------------------------------- */

/* When the latest tensor came, or the latest block. */
static json_int_t latest_ns(const struct ms_report *report)
{
    json_int_t latest = 0;
    json_t *rows[] = {report->sites, ms_report_array(report->root, "inner_sites")}, *site;
    size_t i;

    for (size_t list = 0; list < 2; list++)
        json_array_foreach (rows[list], i, site)
            if (ms_report_int(site, "last_ns") > latest)
                latest = ms_report_int(site, "last_ns");
    return latest;
}

/* A framework keeps pinned blocks for the next batch, so that there are few of them unless batches are kept.
 */
static void tell_host(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *site = found->row;
    char *line = ms_finding_line(finder->report, site, "a thread of the program");

    if (line)
        ms_finding_add(finder, "growth", found->bytes, site,
                       ms_finding_text("%s of pinned host memory in %" JSON_INTEGER_FORMAT
                                       " blocks pile up, more with each batch, and no block is used again; "
                                       "made by %s",
                                       ms_text_size(found->bytes).text, ms_report_int(site, "total_count"),
                                       line),
                       ms_finding_text("batches in pinned memory are kept (pin_memory=True of a DataLoader): "
                                       "keep copies of what is needed (clone()), or let them go"));
    free(line);
}

void ms_findings_look_at_host(struct ms_finder *finder)
{
    const struct ms_site_row *sites = ms_report_sites(finder->report);
    size_t count = sites ? json_array_size(finder->report->sites) : 0;
    json_int_t latest = -1;

    for (size_t i = 0; i < count; i++) {
        const struct ms_site_row *site = &sites[i];

        if (strcmp(site->kind, "pinned") != 0 || site->max_bytes < HOST_LEAST ||
            !ms_report_has_inner(finder->report))
            continue;
        latest = latest < 0 ? latest_ns(finder->report) : latest;
        if (piles_up(finder->report, site, latest))
            ms_finding_note(finder, (struct ms_finding_rows){.rule = MS_MANY_GROWTH,
                                                             .bytes = site->max_bytes,
                                                             .tell = tell_host,
                                                             .row = site->json});
    }
}
