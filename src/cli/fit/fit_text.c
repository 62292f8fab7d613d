/* fit_text.c - what memshim fit prints; see fit_text.h.
 *
 * Floor 5. */
#include "cli/fit/fit_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/torch/tries.h"
#include "cli/load.h"
#include "report/text/text.h"

/* Tables have 80 columns: so many devices beside each other. */
enum { NAME_MOST = 41, CELL = 16, BESIDE = 2, INDENT = 2 };

static struct ms_text_number size_text(uint64_t bytes)
{
    return ms_text_size((json_int_t)bytes);
}

static uint64_t needed(const struct ms_fit_table *table, const struct ms_fit_row *row)
{
    return row->least + ms_fit_beside(ms_fit_shown(table), &row->way);
}

static uint64_t needed_most(const struct ms_fit_table *table, const struct ms_fit_row *row)
{
    return row->least_most + ms_fit_beside(ms_fit_shown(table), &row->way);
}

/* With the blocks beside tensors, as the other ways have them. */
static uint64_t reserved(const struct ms_fit_table *table, const struct ms_fit_row *row)
{
    return row->reserved + (row->way.is_torch ? ms_fit_shown(table)->beside_blocks : 0);
}

/* A model that does not have what the run had says so: its streams, private pools or empty_cache() are the
 * reason, or settings of its own. */
static void print_model_off(FILE *out, const struct ms_fit_table *table)
{
    const struct ms_fit_run *run = ms_fit_shown(table);
    uint64_t told = reserved(table, &table->rows[0]), had = run->blocks.live_peak;

    if (run->has_tensors && ms_torch_is_off(told, had))
        fprintf(out,
                "  The run itself had %s of the vendor's, not %s: by several streams, graphs' pools,\n"
                "  empty_cache() or settings of its own. What is told of PyTorch is wrong by as much.\n",
                size_text(had).text, size_text(told).text);
}

static void print_head(FILE *out, const struct ms_fit_table *table)
{
    const struct ms_fit_run *run = ms_fit_shown(table);
    const struct ms_course *course = ms_fit_asked(run);

    ms_text_put(out, course->title ? course->title : run->trace);
    fprintf(out, "\n  %s%zu events of %s, %s live at most\n", table->is_sized ? "the largest run: " : "",
            course->count, run->has_tensors ? "tensors" : "blocks", size_text(course->live_peak).text);
    if (ms_course_foreign(course))
        fprintf(out, "  asked for by %s: replayed by CUDA's calls%s, which may differ\n",
                ms_course_foreign(course), run->has_tensors ? " and PyTorch's allocator for CUDA" : "");
    if (run->beside_blocks)
        fprintf(out, "  beside them %s in blocks that hold no tensors\n", size_text(run->beside_blocks).text);
    if (run->has_report)
        fprintf(out,
                "  %s taken by contexts, modules and others when most was in use, as the report has it\n",
                size_text(run->others).text);
    else
        fputs("  without what contexts, modules and libraries take: a report in the trace's place has that\n",
              out);
}

/* "3.20 GiB left", "1.40 GiB short". */
static void spare_text(const struct ms_fit_table *table, const struct ms_fit_row *row, size_t device,
                       char text[64])
{
    uint64_t has = table->devices[device], least = needed(table, row), most = needed_most(table, row);

    if (most <= has)
        snprintf(text, 64, "%s left", size_text(has - most).text);
    else if (least <= has)
        snprintf(text, 64, "order of threads");
    else
        snprintf(text, 64, "%s short", size_text(least - has).text);
}

typedef void cell_text(const struct ms_fit_table *table, const struct ms_fit_row *row, size_t device,
                       char text[64]);

static void put_way(FILE *out, const struct ms_fit_row *row)
{
    fprintf(out, "%*s", INDENT, "");
    ms_text_row_name(out, row->way.name, INDENT, NAME_MOST);
}

static bool has_laws(const struct ms_fit_table *table, const struct ms_fit_row *row)
{
    return row->way.of_tensors == ms_fit_shown(table)->has_tensors;
}

/* A cell for each way and device; `sized`: of those ways alone that laws are about. */
static void print_by_device(FILE *out, const struct ms_fit_table *table, const char *heading, bool sized,
                            cell_text *cell)
{
    for (size_t first = 0; first < table->device_count; first += BESIDE) {
        size_t end = first + BESIDE < table->device_count ? first + BESIDE : table->device_count;

        fprintf(out, "\n%-*s", NAME_MOST + INDENT, heading);
        for (size_t i = first; i < end; i++)
            fprintf(out, "  %*s", CELL, size_text(table->devices[i]).text);
        fputc('\n', out);
        for (size_t r = 0; r < table->row_count; r++) {
            if (sized && !has_laws(table, &table->rows[r]))
                continue;
            put_way(out, &table->rows[r]);
            for (size_t i = first; i < end; i++) {
                char text[64];

                cell(table, &table->rows[r], i, text);
                fprintf(out, "  %*s", CELL, text);
            }
            fputc('\n', out);
        }
    }
}

static void print_ways(FILE *out, const struct ms_fit_table *table)
{
    fprintf(out, "\n%-*s  %11s  %12s\n", NAME_MOST + INDENT, "", "reserved", "least device");
    for (size_t r = 0; r < table->row_count; r++) {
        const struct ms_fit_row *row = &table->rows[r];

        put_way(out, row);
        fprintf(out, "  %11s  %12s\n", size_text(reserved(table, row)).text,
                size_text(needed(table, row)).text);
    }
    print_model_off(out, table);
    print_by_device(out, table, "On a device of", false, spare_text);
    if (!table->reordered)
        return;
    for (size_t r = 0; r < table->row_count; r++)
        if (table->rows[r].least_most > table->rows[r].least)
            fprintf(out, "  In another order of its threads up to %s: %s\n",
                    size_text(needed_most(table, &table->rows[r])).text, table->rows[r].way.name);
}

static void largest_text(const struct ms_fit_table *table, const struct ms_fit_row *row, size_t device,
                         char text[64])
{
    (void)table;
    if (row->largest[device] >= MS_FIT_ANY_SIZE)
        snprintf(text, 64, "any");
    else if (row->largest[device] > 0)
        snprintf(text, 64, "%.0f", row->largest[device]);
    else
        snprintf(text, 64, "none");
}

static void print_sizes(FILE *out, const struct ms_fit_table *table)
{
    print_by_device(out, table, "The largest size that fits", true, largest_text);
    if (table->held_out > 0)
        fprintf(out, "  Size %.0f told from the other runs is wrong by %+.2f %% of what it reserves.\n",
                table->held_out, table->told_off);
    else
        fputs("  A third run (--sized N=FILE) would say how wrong this is.\n", out);
}

/* The row of the report that counts a site of the trace; NULL where nobody knows. */
static const json_t *site_row(const struct ms_fit_run *run, uint32_t number)
{
    const json_t *site;
    size_t i;

    json_array_foreach (run->report.sites, i, site) {
        const json_t *row = json_object_get(site, "row");
        json_int_t has = json_is_integer(row) ? json_integer_value(row) : ms_report_int(site, "id");

        if (has == (json_int_t)number)
            return site;
    }
    return NULL;
}

static void print_share(FILE *out, const struct ms_fit_table *table, const struct ms_law_share *share)
{
    const struct ms_report *report = &ms_fit_shown(table)->report;
    const json_t *site = site_row(ms_fit_shown(table), share->site);

    fprintf(out, "  %11s  ", size_text(share->bytes).text);
    if (table->is_sized && share->is_followed)
        fprintf(out, "%11s  %11s  %11s  ", size_text(share->constant).text, size_text(share->linear).text,
                size_text(share->quadratic).text);
    else if (table->is_sized)
        fputs("follows no law: not as many in each  ", out);
    if (site) {
        ms_text_put(out, ms_cli_site_api(site));
        ms_text_put_own(out, report, ms_report_int(site, "stack"));
    } else if (share->site == MS_COURSE_NO_SITE) {
        fputs("of no site", out);
    } else {
        fprintf(out, "site %u of the trace", share->site);
    }
    fputc('\n', out);
}

static void print_peak(FILE *out, const struct ms_fit_table *table)
{
    uint64_t rest = 0;
    long i = 0;

    fputs("\nLive at the peak, by line\n", out);
    if (table->is_sized)
        fprintf(out, "  %11s  %11s  %11s  %11s\n", "", "constant", "linear", "quadratic");
    for (; i < table->share_count && i < table->top && table->shares[i].bytes; i++)
        print_share(out, table, &table->shares[i]);
    for (; i < table->share_count; i++)
        rest += table->shares[i].bytes;
    if (rest)
        fprintf(out, "  %11s  at the other lines\n", size_text(rest).text);
}

/* The way that needs least, where that is not the first, which is how the program runs now. */
static void print_next(FILE *out, const struct ms_fit_table *table)
{
    size_t best = 0;

    for (size_t r = 1; r < table->row_count; r++)
        if (needed(table, &table->rows[r]) < needed(table, &table->rows[best]))
            best = r;
    if (best)
        fprintf(out, "\nFirst  %s: %s less than %s\n", table->rows[best].way.name,
                size_text(needed(table, &table->rows[0]) - needed(table, &table->rows[best])).text,
                table->rows[0].way.name);
    else if (table->share_count)
        fputs("\nFirst  nothing that can be set runs on a smaller device: less has to be live at the peak\n",
              out);
}

void ms_fit_print(FILE *out, const struct ms_fit_table *table)
{
    print_head(out, table);
    print_ways(out, table);
    if (table->is_sized)
        print_sizes(out, table);
    print_peak(out, table);
    print_next(out, table);
}

/* --- JSON --- */

static json_t *row_json(const struct ms_fit_table *table, const struct ms_fit_row *row)
{
    json_t *devices = json_array();

    for (size_t i = 0; i < table->device_count; i++) {
        json_t *device = json_pack("{s:I, s:b, s:I}", "device_bytes", (json_int_t)table->devices[i], "fits",
                                   needed_most(table, row) <= table->devices[i], "spare_bytes",
                                   (json_int_t)table->devices[i] - (json_int_t)needed_most(table, row));

        if (table->is_sized && has_laws(table, row))
            json_object_set_new(device, "largest_size", json_real(row->largest[i]));
        json_array_append_new(devices, device);
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "way", row->way.name, "reserved_bytes",
                     (json_int_t)row->reserved, "least_device_bytes", (json_int_t)needed(table, row),
                     "least_device_most_bytes", (json_int_t)needed_most(table, row), "devices", devices);
}

static json_t *share_json(const struct ms_fit_table *table, const struct ms_law_share *share)
{
    const json_t *site = site_row(ms_fit_shown(table), share->site);
    json_t *row = json_pack("{s:I, s:I}", "site", (json_int_t)share->site, "bytes", (json_int_t)share->bytes);

    if (site)
        ms_cli_set_stack(row, &ms_fit_shown(table)->report, ms_report_int(site, "stack"));
    if (table->is_sized)
        json_object_set_new(row, "follows", json_boolean(share->is_followed));
    if (table->is_sized && share->is_followed)
        json_object_update_new(
            row, json_pack("{s:I, s:I, s:I}", "constant_bytes", (json_int_t)share->constant, "linear_bytes",
                           (json_int_t)share->linear, "quadratic_bytes", (json_int_t)share->quadratic));
    return row;
}

json_t *ms_fit_json(const struct ms_fit_table *table)
{
    const struct ms_fit_run *run = ms_fit_shown(table);
    json_t *ways = json_array(), *lines = json_array(), *root;

    for (size_t r = 0; r < table->row_count; r++)
        json_array_append_new(ways, row_json(table, &table->rows[r]));
    for (long i = 0; i < table->share_count && table->shares[i].bytes; i++)
        json_array_append_new(lines, share_json(table, &table->shares[i]));
    root = json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "trace", run->trace, "layer",
                     run->has_tensors ? "tensors" : "blocks", "beside_bytes", (json_int_t)run->beside_blocks,
                     "others_bytes", (json_int_t)run->others, "ways", ways, "peak", lines);
    if (ms_course_foreign(ms_fit_asked(run)))
        json_object_set_new(root, "asked_by", json_string(ms_course_foreign(ms_fit_asked(run))));
    if (table->held_out > 0)
        json_object_update_new(
            root, json_pack("{s:f, s:f}", "held_out_size", table->held_out, "off_percent", table->told_off));
    return root;
}
