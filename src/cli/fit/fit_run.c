/* fit_run.c - a run of a program, by its trace and its report; see fit.h.
 *
 * Floor 5. */
#include "cli/fit/fit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/tune/pieces.h"
#include "report/read/layer.h"

/* --- blocks that hold no tensors --- */

/* No blocks count beside tensors if it cannot be told which hold any. */
static int beside_count(struct ms_fit_run *run)
{
    struct ms_pieces pieces;
    char error[512];
    int result = ms_pieces_find(run->trace, &pieces, error, sizeof(error));

    if (result == 0) {
        run->beside_blocks = ms_pieces_beside(&pieces, &run->blocks);
        result = ms_course_read_uncached(run->trace, &run->whole, error, sizeof(error));
    } else if (result > 0) {
        result = ms_course_read(run->trace, true, &run->whole, error, sizeof(error));
    }
    run->whole.inner = true; /* sizes are tensors' */
    ms_pieces_close(&pieces);
    if (result < 0)
        ms_cli_error("%s", error);
    return result < 0 ? -1 : 0;
}

/* --- the report --- */

static bool is_report(const char *path)
{
    struct stat st;
    int fd = ms_file_open_regular(path, &st);
    char first = '\0';
    bool is = fd >= 0 && read(fd, &first, 1) == 1 && first == '{';

    if (fd >= 0)
        close(fd);
    return is;
}

/* At the moment at which most was in use. */
static uint64_t others_of(const struct ms_report *report)
{
    const json_t *row;
    size_t i;
    json_int_t most = 0, others = 0;

    json_array_foreach (ms_report_array(report->root, "balances"), i, row) {
        if (strcmp(ms_report_text(row, "moment"), "peak") != 0 || ms_report_int(row, "in_use_bytes") < most)
            continue;
        most = ms_report_int(row, "in_use_bytes");
        others = ms_report_int(row, "contexts") + ms_report_int(row, "untracked");
    }
    return others > 0 ? (uint64_t)others : 0;
}

/* The stack of a site, which is the same in all runs: a hash of it, by the site's number in the trace. */
static int names_open(struct ms_fit_run *run)
{
    const json_t *site;
    size_t i;

    json_array_foreach (run->report.sites, i, site) {
        const json_t *row = json_object_get(site, "row");
        json_int_t number = json_is_integer(row) ? json_integer_value(row) : ms_report_int(site, "id");

        if (number >= 0 && (size_t)number < UINT32_MAX && (size_t)number >= run->name_count)
            run->name_count = (size_t)number + 1;
    }
    run->names = calloc(run->name_count + 1, sizeof(*run->names));
    if (!run->names)
        return -1;
    json_array_foreach (run->report.sites, i, site) {
        const json_t *row = json_object_get(site, "row");
        json_int_t number = json_is_integer(row) ? json_integer_value(row) : ms_report_int(site, "id");

        if (number >= 0 && (size_t)number < run->name_count)
            run->names[number] = strtoull(ms_report_text(site, "hash"), NULL, 16);
    }
    return 0;
}

static int report_open(struct ms_fit_run *run, const char *path)
{
    const char *trace;

    if (ms_cli_load(path, &run->report) < 0)
        return -1;
    run->has_report = true;
    run->others = others_of(&run->report);
    trace = ms_report_text(json_object_get(run->report.root, "run"), "trace");
    if (!*trace) {
        ms_cli_error("%s: its run wrote no trace (memshim run --trace FILE)", path);
        return -1;
    }
    run->trace = strdup(trace);
    if (run->trace && names_open(run) == 0)
        return 0;
    ms_cli_error("there is no memory for %s", path);
    return -1;
}

int ms_fit_run_open(struct ms_fit_run *run, const char *path)
{
    char error[512];

    ms_cli_layer = MS_CLI_TENSORS_IF_ANY;
    if (is_report(path) ? report_open(run, path) < 0 : !(run->trace = strdup(path)))
        return -1;
    if (ms_course_read(run->trace, false, &run->blocks, error, sizeof(error)) < 0 ||
        ms_course_read(run->trace, true, &run->tensors, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return -1;
    }
    if (!run->blocks.block_count && !run->tensors.block_count) {
        ms_cli_error("%s: nothing was allocated in it", run->trace);
        return -1;
    }
    run->has_tensors = run->tensors.count > 0;
    return run->has_tensors ? beside_count(run) : 0;
}

void ms_fit_run_close(struct ms_fit_run *run)
{
    ms_course_close(&run->blocks);
    ms_course_close(&run->tensors);
    ms_course_close(&run->whole);
    if (run->has_report)
        ms_report_close(&run->report);
    free(run->names);
    free(run->trace);
}

const struct ms_course *ms_fit_course(const struct ms_fit_run *run, const struct ms_fit_way *way)
{
    if (!way->of_tensors)
        return &run->blocks;
    return way->is_torch ? &run->tensors : &run->whole;
}

uint64_t ms_fit_beside(const struct ms_fit_run *run, const struct ms_fit_way *way)
{
    return run->others + (way->is_torch ? run->beside_blocks : 0);
}
