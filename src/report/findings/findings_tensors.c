/* findings_tensors.c - the rules of the inner layer: a graph that no backward pass takes down, an optimizer's
 * state, a segment that a few tensors pin; see findings.h.
 *
 * Floor 4, command line only. The report is a view of the inner layer (report/read/layer.h). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings.h"
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

/* --- graph_without_backward ----------------------------------------------------------------------------- */

/* Of the activations that are there at the peak, those of one function that calls a model. */
struct call {
    const json_t *caller;
    const struct ms_site_row *most;
    json_int_t bytes, tensors;
    size_t lines;
    bool may_go_backward;
};

struct calls {
    struct call *list;
    size_t count;
};

static struct call *call_of(const struct calls *calls, const json_t *caller)
{
    struct call *call = calls->list;

    while (call < calls->list + calls->count && !ms_tensor_is_same_function(call->caller, caller))
        call++;
    return call;
}

/* A call may go backward if one of its tensors may. */
static void add_call(const struct ms_report *report, struct calls *calls, const struct ms_site_row *site,
                     const json_t *starters)
{
    const json_t *caller = ms_tensor_caller(report, site->stack);
    struct call *call = caller ? call_of(calls, caller) : NULL;

    if (!call)
        return;
    if (call == calls->list + calls->count) {
        *call = (struct call){.caller = caller};
        calls->count++;
    }
    call->may_go_backward = call->may_go_backward || ms_tensor_functions_have(report, starters, site->stack);
    call->bytes = ms_report_sum(call->bytes, site->at_peak_bytes);
    call->tensors += site->total_bytes > 0
                         ? (json_int_t)((double)site->at_peak_bytes * (double)site->total_count /
                                            (double)site->total_bytes +
                                        0.5)
                         : 0;
    call->lines += site->at_peak_bytes > 0;
    if (!call->most || site->at_peak_bytes > call->most->at_peak_bytes)
        call->most = site;
}

static void tell_call(struct ms_finder *finder, const struct call *call)
{
    char *line = ms_tensor_frame(finder->report, call->caller);

    if (line)
        ms_finding_add(
            finder, "graph_without_backward", call->bytes, call->most->json,
            ms_finding_text("%s in %" JSON_INTEGER_FORMAT
                            " tensors of a model's layers were held at once, as for a backward "
                            "pass, which never came: %s called it",
                            ms_text_size(call->bytes).text, call->tensors, line),
            ms_finding_text("call it under torch.no_grad() or torch.inference_mode() in %s", line));
    free(line);
}

static void look_at_calls(struct ms_finder *finder, const json_t *device, size_t row)
{
    const struct ms_report *report = finder->report;
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;
    struct calls calls = {.list = calloc(count + 1, sizeof(struct call))};
    json_t *starters = ms_tensor_starters(report);

    for (size_t i = 0; starters && calls.list && i < count; i++)
        if (sites[i].device_row == row && !strcmp(sites[i].owner, "activations"))
            add_call(report, &calls, &sites[i], starters);
    for (size_t i = 0; i < calls.count; i++) {
        const struct call *call = &calls.list[i];

        if (call->bytes >= GRAPH_LEAST && call->tensors >= GRAPH_TENSORS && call->lines >= PILE_LINES &&
            call->bytes >= ms_report_int(device, "peak_live_bytes") / GRAPH_SHARE && !call->may_go_backward)
            tell_call(finder, call);
    }
    json_decref(starters);
    free(calls.list);
}

/* --- optimizer_state ------------------------------------------------------------------------------------ */

static void look_at_optimizer(struct ms_finder *finder, const json_t *device, size_t row)
{
    const struct ms_site_row *sites = ms_report_sites(finder->report), *most = NULL;
    size_t count = sites ? json_array_size(finder->report->sites) : 0;
    json_int_t bytes = 0, peak = ms_report_int(device, "peak_live_bytes");
    char *line;

    for (size_t i = 0; i < count; i++) {
        if (sites[i].device_row != row || strcmp(sites[i].owner, "optimizer state") != 0)
            continue;
        bytes = ms_report_sum(bytes, sites[i].at_peak_bytes);
        if (!most || sites[i].at_peak_bytes > most->at_peak_bytes)
            most = &sites[i];
    }
    if (bytes < OPTIMIZER_LEAST || bytes <= peak / OPTIMIZER_SHARE)
        return;
    line = ms_finding_line(finder->report, most->json, "the optimizer");
    if (line)
        ms_finding_add(finder, "optimizer_state", bytes, most->json,
                       ms_finding_text("the optimizer holds %s of the %s that tensors had at most; it took "
                                       "them when it first stepped, in %s",
                                       ms_text_size(bytes).text, ms_text_size(peak).text, line),
                       ms_finding_text("foreach=False or fused=True spares the copies of a step, and an "
                                       "optimizer with less state the rest; leave room for it, or step once "
                                       "before the batch size is chosen by what is free"));
    free(line);
}

/* --- pinned_segment ------------------------------------------------------------------------------------- */

/* A segment of a framework's that is free but for a few tensors. */
struct pinned {
    const json_t *segment, *piece; /* of the largest, and the largest tensor in it */
    json_int_t bytes, live;        /* free bytes, and those of tensors */
    size_t count;
};

static void add_pinned(struct pinned *pinned, const json_t *segment)
{
    const json_t *most = NULL;
    json_int_t live = 0, whole = ms_report_int(segment, "bytes");
    json_t *piece;
    size_t i;

    json_array_foreach (ms_report_array(segment, "blocks"), i, piece) {
        if (strcmp(ms_report_text(piece, "state"), "live") != 0)
            continue;
        live = ms_report_sum(live, ms_report_int(piece, "bytes"));
        if (!most || ms_report_int(piece, "bytes") > ms_report_int(most, "bytes"))
            most = piece;
    }
    if (!most || ms_report_int(segment, "blocks_left_out") || live > whole / PINNED_SEGMENT_SHARE ||
        whole - live < PINNED_SEGMENT_LEAST || strcmp(ms_report_text(segment, "tier"), "framework") != 0)
        return;
    if (!pinned->segment || whole > ms_report_int(pinned->segment, "bytes")) {
        pinned->segment = segment;
        pinned->piece = most;
    }
    pinned->bytes = ms_report_sum(pinned->bytes, whole - live);
    pinned->live = ms_report_sum(pinned->live, live);
    pinned->count++;
}

static void tell_pinned(struct ms_finder *finder, const struct pinned *pinned)
{
    const json_t *site = ms_report_site(finder->report, ms_report_int(pinned->piece, "site"));
    char *line = site ? ms_finding_line(finder->report, site, "this call") : NULL;

    if (line)
        ms_finding_add(
            finder, "pinned_segment", pinned->bytes, site,
            ms_finding_text("%s are free in %zu segment%s that cannot go back, since %s of tensors lie "
                            "there: in %s of them a tensor of %s, made by %s",
                            ms_text_size(pinned->bytes).text, pinned->count, pinned->count == 1 ? "" : "s",
                            ms_text_size(pinned->live).text,
                            ms_text_size(ms_report_int(pinned->segment, "bytes")).text,
                            ms_text_size(ms_report_int(pinned->piece, "bytes")).text, line),
            ms_finding_text("make what stays before what is large and goes, or clone() it "
                            "afterwards; or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
                            "memshim frag shows what lies where"));
    free(line);
}

/* Segments that are not together do no harm where tensors needed all of them at some time. */
static void look_at_segments(struct ms_finder *finder, const json_t *device, size_t row)
{
    const struct ms_report *report = finder->report;
    json_int_t idle = ms_report_int(device, "peak_held_bytes") - ms_report_int(device, "peak_live_bytes");
    struct pinned pinned = {.bytes = 0};
    json_t *segment;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "segments"), i, segment)
        if (ms_report_device_of(report, segment) == row)
            add_pinned(&pinned, segment);
    if (pinned.segment && idle >= pinned.bytes)
        tell_pinned(finder, &pinned);
}

/* True if it can be known of a forward pass that no backward pass was to come: it is known who began those
 * that came, and none was kept from coming since memory ran out before. */
static bool are_passes_known(const struct ms_report *report)
{
    struct ms_tensor_passes passes = ms_tensor_passes(report);
    bool known = passes.lines && !passes.unknown && !ms_report_oom_count(report);

    free(passes.lines);
    return known;
}

bool *ms_findings_look_at_tensors(struct ms_finder *finder)
{
    const struct ms_report *report = finder->report;
    bool *piling = ms_findings_look_at_piles(finder);
    bool known = are_passes_known(report);
    json_t *device;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        if (ms_report_device_first(report, device) != i)
            continue;
        if (known && piling && !piling[i])
            look_at_calls(finder, device, i);
        look_at_optimizer(finder, device, i);
        look_at_segments(finder, device, i);
    }
    return piling;
}
