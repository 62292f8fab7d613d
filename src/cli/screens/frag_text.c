/* frag_text.c - the page that `memshim frag` prints; see frag.h.
 *
 * Floor 5. Letters say all; colours, on a terminal that wants them, say it faster. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/screens/frag.h"
#include "cli/load.h"
#include "report/read/layer.h"
#include "report/text/text.h"

/* A map has what is left of the line beside its figures, within bounds. */
enum {
    BAR = 12,
    CELLS = 48,
    CELLS_LEAST = 20,
    FIGURES = 60,
    STACK_SHOWN = 4,
    OOM_KEPT = 64 /* by the record */
};

struct look {
    const char *key, *colour, *name;
};

/* The parts of the pool's memory, in the order in which they are shown. */
static const struct look parts[] = {
    {"requested", "\033[32m", "allocated"},
    {"rounding", "\033[36m", "rounding"},
    {"limbo", "\033[33m", "pending (free under way)"},
    {"cached", "\033[34m", "inactive, whole segments"},
    {"stranded", "\033[31m", "inactive, between blocks"},
    {"pinned", "\033[35m", "shared with others"},
};

static const struct {
    char letter;
    const char *colour;
} uses[MS_FRAG_USES] = {
    [MS_FRAG_LIVE] = {'#', "\033[32m"},    [MS_FRAG_ROUNDING] = {'#', "\033[32m"},
    [MS_FRAG_PENDING] = {'~', "\033[33m"}, [MS_FRAG_PINNED] = {'!', "\033[35m"},
    [MS_FRAG_FREE] = {'.', "\033[31m"},    [MS_FRAG_UNKNOWN] = {'?', "\033[33m"},
};

static const char *paint(FILE *out, const char *colour)
{
    return ms_text_bold(out) ? colour : "";
}

static double share(json_int_t part, json_int_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void print_bar(FILE *out, json_int_t part, json_int_t whole, const char *colour)
{
    int filled = whole > 0 ? (int)((double)BAR * (double)part / (double)whole + 0.5) : 0;

    filled = filled > BAR ? BAR : filled < 0 ? 0 : filled == 0 && part > 0 ? 1 : filled;
    fputs(paint(out, colour), out);
    for (int i = 0; i < BAR; i++)
        fputc(i < filled ? '#' : ' ', out);
    fputs(paint(out, "\033[0m"), out);
}

static void frag_text_print_parts(FILE *out, const json_t *device)
{
    json_int_t reserved = ms_report_int(device, "reserved_bytes"),
               peak = ms_report_int(device, "peak_reserved_bytes");
    json_t *now = json_object_get(device, "reserved_parts"), *then = json_object_get(device, "peak_parts");

    fprintf(out, "\n  %-24s %10s %6s  %-*s %10s\n", "", "now", "", BAR, "", "as it grew");
    for (size_t i = 0; i < MS_ARRAY_LEN(parts); i++) {
        json_int_t bytes = ms_report_int(now, parts[i].key), most = ms_report_int(then, parts[i].key);

        fprintf(out, "  %-24s %10s %5.1f%%  ", parts[i].name, ms_text_size(bytes).text,
                share(bytes, reserved));
        print_bar(out, bytes, reserved, parts[i].colour);
        fprintf(out, " %10s %5.1f%%\n", ms_text_size(most).text, share(most, peak));
    }
    fprintf(out, "  %-24s %10s %6s  %*s %10s\n", "the pool", ms_text_size(reserved).text, "", BAR, "",
            ms_text_size(peak).text);
}

/* The cell in which a piece begins; a report may say anything. */
static int first_cell(double begin, double cell_bytes, int count)
{
    double cell = begin > 0 ? begin / cell_bytes : 0;

    return cell < count ? (int)cell : count;
}

/* The use that fills most of a cell decides its letter; live bytes beat free ones only if there are more of
 * them. */
static void print_map(FILE *out, const struct ms_frag_segment *segment, int count)
{
    double cells[CELLS][MS_FRAG_USES];
    double cell_bytes = (double)segment->bytes / count;
    json_t *piece;
    size_t i;
    int last = -1;

    memset(cells, 0, sizeof(cells));
    json_array_foreach (ms_report_array(segment->json, "blocks"), i, piece) {
        const char *state = ms_report_text(piece, "state");
        double begin = (double)ms_report_int(piece, "offset"),
               end = begin + (double)ms_report_int(piece, "bytes");
        int use = *state == 'p'            ? MS_FRAG_PINNED
                  : *state == 'u'          ? MS_FRAG_UNKNOWN
                  : *state == 'f'          ? MS_FRAG_FREE
                  : !strcmp(state, "live") ? MS_FRAG_LIVE
                                           : MS_FRAG_PENDING;

        for (int c = first_cell(begin, cell_bytes, count); c < count && c * cell_bytes < end; c++) {
            double from = c * cell_bytes > begin ? c * cell_bytes : begin;
            double to = (c + 1) * cell_bytes < end ? (c + 1) * cell_bytes : end;

            if (to > from)
                cells[c][use] += to - from;
        }
    }
    for (int c = 0; c < count; c++) {
        int most = MS_FRAG_FREE;

        for (int use = 0; use < MS_FRAG_USES; use++)
            most = cells[c][use] > cells[c][most] ? use : most;
        if (most != last)
            fputs(paint(out, uses[most].colour), out);
        fputc(most == MS_FRAG_FREE && cells[c][MS_FRAG_LIVE] > 0 ? '-' : uses[most].letter, out);
        last = most;
    }
    fputs(paint(out, "\033[0m"), out);
}

static void print_segments(FILE *out, const struct ms_frag_device *device, size_t top)
{
    char heading[128];
    int cells = (int)ms_text_width(out) - FIGURES;

    cells = cells > CELLS ? CELLS : cells < CELLS_LEAST ? CELLS_LEAST : cells;
    if (!device->segment_count || !top)
        return;
    snprintf(heading, sizeof(heading), "  Segments, most fragmented first, %zu of %zu",
             device->segment_count < top ? device->segment_count : top, device->segment_count);
    ms_text_heading(out, heading);
    fputs("  # allocated  - partly  . inactive  ~ pending  ! shared\n", out);
    fprintf(out, "  %-14s %-6s %9s %9s %5s %9s\n", "address", "tier", "bytes", "allocated", "count", "gap");
    for (size_t i = 0; i < device->segment_count && i < top; i++) {
        const struct ms_frag_segment *segment = &device->segments[i];

        fputs("  ", out);
        ms_text_column(out, ms_report_text(segment->json, "address"), 14);
        fputc(' ', out);
        ms_text_column(out, ms_report_text(segment->json, "tier"), 6);
        fprintf(out, " %9s %9s %5" JSON_INTEGER_FORMAT " %9s ", ms_text_size(segment->bytes).text,
                ms_text_size(segment->uses[MS_FRAG_LIVE]).text, segment->blocks,
                ms_text_size(segment->largest_gap).text);
        print_map(out, segment, cells);
        fputc('\n', out);
    }
    if (device->left_out)
        fprintf(out,
                "  ? may be any of %" JSON_INTEGER_FORMAT
                " pieces that the report leaves out: it counts as neither allocated nor free\n",
                device->left_out);
    if (device->unknown)
        fputs("  ? lies between blocks of a recovered record, or of a trace: inactive, pending or rounding\n",
              out);
}

static void frag_text_print_holders(FILE *out, const struct ms_report *report,
                                    const struct ms_frag_device *device, size_t top)
{
    if (!device->holder_count || !top || device->holders[0].stranded <= 0)
        return;
    ms_text_heading(out, "  Who holds the fragmented segments");
    for (size_t i = 0; i < device->holder_count && i < top && device->holders[i].stranded > 0; i++) {
        const struct ms_frag_holder *holder = &device->holders[i];
        json_t *site = ms_report_site(report, holder->site);

        fprintf(out, "  %s held back by %s of ", ms_text_size(holder->stranded).text,
                ms_text_size(holder->live).text);
        ms_text_put(out, ms_cli_site_api(site));
        fprintf(out, " in %zu segment%s", holder->segments, holder->segments == 1 ? "" : "s");
        ms_text_put_own(out, report, ms_report_int(site, "stack"));
        fputc('\n', out);
        ms_text_callers(out, report, ms_report_int(site, "stack"), "      ", STACK_SHOWN);
    }
}

static void print_amount(FILE *out, const char *what, json_int_t bytes, json_int_t whole, const char *colour,
                         const char *meaning)
{
    fprintf(out, "  %-10s %10s %5.1f%%  ", what, ms_text_size(bytes).text, share(bytes, whole));
    print_bar(out, bytes, whole, colour);
    fprintf(out, "  %s\n", meaning);
}

/* The use of the device at a time when there was no memory; shares are those of the device. */
static void print_oom(FILE *out, const json_t *oom, json_int_t total)
{
    const char *cause = ms_report_text(oom, "cause");
    char heading[128];

    snprintf(heading, sizeof(heading), "  Out of memory after %s",
             ms_text_duration(ms_report_int(oom, "t_ns")).text);
    ms_text_heading(out, heading);
    fputs("  ", out);
    ms_text_put(out, ms_report_text(oom, "api"));
    fputs(*cause ? ", cause: " : "", out);
    ms_text_put(out, cause);
    fputc('\n', out);
    print_amount(out, "asked for", ms_report_int(oom, "requested"), total, "\033[35m",
                 "by the call that failed");
    print_amount(out, "allocated", ms_report_int(oom, "live"), total, "\033[32m", "the program's blocks");
    print_amount(out, "the pool", ms_report_int(oom, "reserved"), total, "\033[34m",
                 "reserved for it in all");
    print_amount(out, "in a piece", ms_report_int(oom, "largest_free"), total, "\033[31m",
                 "the largest that was free");
}

/* The last of those of this device: the program went on after the others. */
static void print_last_oom(FILE *out, const struct ms_report *report, const struct ms_frag_device *device)
{
    const json_t *ooms = ms_report_array(report->root, "oom"), *last = NULL;
    size_t count = 0, size = json_array_size(ooms);

    for (size_t i = size > OOM_KEPT ? size - OOM_KEPT : 0; i < size; i++) {
        const json_t *oom = json_array_get(ooms, i);
        size_t row = ms_report_device_of(report, oom);

        if (row == SIZE_MAX || json_array_get(ms_report_array(report->root, "devices"), row) != device->json)
            continue;
        last = oom;
        count++;
    }
    if (!last)
        return;
    print_oom(out, last, ms_report_int(device->json, "total_bytes"));
    if (count > 1)
        fprintf(out, "  the last of %zu times; memshim summary has the others\n", count);
}

static void print_name(FILE *out, const struct ms_frag_device *device)
{
    fputs(paint(out, "\033[1m"), out);
    ms_text_put(out, ms_report_text(device->json, "api"));
    fprintf(out, " %" JSON_INTEGER_FORMAT "  ", device->index);
    ms_text_put(out, ms_report_text(device->json, "name"));
    fprintf(out, "%s, %s\n", paint(out, "\033[0m"),
            ms_text_size(ms_report_int(device->json, "total_bytes")).text);
}

static void print_free(FILE *out, const struct ms_frag_device *device, const char *what)
{
    fprintf(out, "  %s %s in segments, %s of it in one piece: fragmentation %.1f%%\n",
            ms_text_size(device->free_bytes).text, what, ms_text_size(device->largest_free).text,
            (double)ms_frag_index(device) / 10);
}

/* A device at an earlier moment. */
static void print_then(FILE *out, const struct ms_report *report, const struct ms_frag *frag, size_t i,
                       size_t top)
{
    static const char *const names[] = {
        [MS_FRAG_AT_PEAK] = "at the peak", [MS_FRAG_AT_OOM] = "out of memory", [MS_FRAG_AT_TIME] = "then"};
    const struct ms_frag_device *device = &frag->devices[i];
    const struct ms_frag_then *then = &frag->then[i];
    bool is_inner = ms_report_is_inner(report);

    print_name(out, device);
    if (!then->known) {
        fputs(frag->moment.kind == MS_FRAG_AT_OOM ? "  there always was memory\n"
                                                  : "  nothing of it is in the trace\n",
              out);
        return;
    }
    fprintf(out, "  %s, after %s: %s allocated in %zu %s, %s of it in %zu segment%s%s\n",
            names[frag->moment.kind], ms_text_duration(then->ns).text, ms_text_size(then->live).text,
            then->count, is_inner ? "tensors" : "blocks", ms_text_size(then->placed).text,
            device->segment_count, device->segment_count == 1 ? "" : "s",
            is_inner ? "" : " that are there to the end");
    if (then->count > then->placed_count)
        fprintf(out, "  the other %zu lay in what was given back since, or beside the pool\n",
                then->count - then->placed_count);
    print_free(out, device, "not allocated");
    print_segments(out, device, top);
    frag_text_print_holders(out, report, device, top);
}

static void frag_text_print_device(FILE *out, const struct ms_report *report,
                                   const struct ms_frag_device *device, size_t top)
{
    json_int_t saved = ms_report_int(device->json, "vendor_calls_saved"),
               made = ms_report_int(device->json, "vendor_calls");

    print_name(out, device);
    if (ms_report_is_inner(report)) {
        fprintf(out, "  %s allocated in tensors of %s that their allocators have\n",
                ms_text_size(ms_report_int(device->json, "live_bytes")).text,
                ms_text_size(ms_report_int(device->json, "held_bytes")).text);
        print_free(out, device, "free");
        print_segments(out, device, top);
        frag_text_print_holders(out, report, device, top);
        return;
    }
    if (!device->segment_count && !ms_report_int(device->json, "peak_reserved_bytes")) {
        fprintf(out, "  nothing was served from the pool; %s of followed memory are allocated\n",
                ms_text_size(ms_report_int(device->json, "followed_bytes")).text);
        print_last_oom(out, report, device);
        return;
    }
    fprintf(out,
            "  %s reserved for the pool in %zu segment%s; %s followed beside it; %" JSON_INTEGER_FORMAT
            " vendor calls, %" JSON_INTEGER_FORMAT " saved\n",
            ms_text_size(ms_report_int(device->json, "reserved_bytes")).text, device->segment_count,
            device->segment_count == 1 ? "" : "s",
            ms_text_size(ms_report_int(device->json, "followed_bytes")).text, made, saved);
    print_free(out, device, "inactive");
    frag_text_print_parts(out, device->json);
    print_last_oom(out, report, device);
    print_segments(out, device, top);
    frag_text_print_holders(out, report, device, top);
}

void ms_frag_print(FILE *out, const struct ms_report *report, const struct ms_frag *frag, size_t top)
{
    if (!frag->device_count)
        fputs("no device memory was used\n", out);
    for (size_t i = 0; i < frag->device_count; i++) {
        if (i)
            fputc('\n', out);
        if (frag->then)
            print_then(out, report, frag, i, top);
        else
            frag_text_print_device(out, report, &frag->devices[i], top);
    }
}
