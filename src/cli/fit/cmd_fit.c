/* cmd_fit.c - memshim fit: the least device for a program, and the largest size for a device.
 *
 * Floor 5. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "cli/fit/fit_text.h"

enum {
    ORDERS = 4,
    ORDERS_EVENTS = 100000
}; /* of threads that are tried beside the one that was seen, up to so long */

struct fit_options {
    struct ms_cli_printing printing;
    struct ms_fit_table table;
    const char *policy;
    const char *sized[MS_FIT_RUNS_MOST];
    size_t sized_count;
};

static int take_devices(struct ms_fit_table *table, const char *value)
{
    char text[512], *rest = text, *word;

    if (snprintf(text, sizeof(text), "%s", value) >= (int)sizeof(text)) {
        ms_cli_error("--device '%.40s...' is too long", value);
        return -1;
    }
    while ((word = strsep(&rest, ","))) {
        uint64_t bytes;

        if (ms_cli_size("--device", word, &bytes) < 0)
            return -1;
        if (!bytes || bytes > UINT64_C(1) << 50 || table->device_count == MS_FIT_DEVICES_MOST) {
            ms_cli_error("--device '%s' is not allowed: up to %d devices, of 1 byte to 1024T", value,
                         MS_FIT_DEVICES_MOST);
            return -1;
        }
        table->devices[table->device_count++] = bytes;
    }
    return 0;
}

static int fit_take(void *arg, int id, const char *value)
{
    struct fit_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    switch (id) {
    case 'd':
        return take_devices(&options->table, value);
    case 'P':
        options->policy = value;
        return 0;
    case 'z':
        if (options->sized_count == MS_FIT_RUNS_MOST) {
            ms_cli_error("--sized is given more than %d times", MS_FIT_RUNS_MOST);
            return -1;
        }
        options->sized[options->sized_count++] = value;
        return 0;
    default:
        return ms_cli_number("--top", value, 0, 1000000, &options->table.top);
    }
}

static int fit_refuse(const struct fit_options *options, int operands)
{
    if (options->sized_count ? operands != 0 : operands != 1)
        ms_cli_error(options->sized_count
                         ? "--sized N=FILE has the traces: give no other"
                         : "give one trace (memshim run --trace FILE) or the report beside it");
    else if (options->sized_count == 1)
        ms_cli_error("--sized is needed for two sizes at least");
    else if (options->sized_count && !options->table.device_count)
        ms_cli_error("--sized asks what fits: give --device SIZE");
    else
        return 0;
    return -1;
}

/* --- runs --- */

static int compare_sizes(const void *a, const void *b)
{
    double x = ((const struct ms_fit_run *)a)->size, y = ((const struct ms_fit_run *)b)->size;

    return (x > y) - (x < y);
}

static int open_sized(struct ms_fit_table *table, const char *text)
{
    struct ms_fit_run *run = &table->runs[table->run_count];
    char *end;
    double size = strtod(text, &end);

    if (end == text || *end != '=' || !end[1] || !(size > 0) || !(size < 1e15)) {
        ms_cli_error("--sized '%s' is not allowed: N=FILE, of a number above 0 and a trace or its report",
                     text);
        return -1;
    }
    table->run_count++;
    if (ms_fit_run_open(run, end + 1) < 0)
        return -1;
    run->size = size;
    return 0;
}

static int open_runs(struct fit_options *options, char **paths)
{
    struct ms_fit_table *table = &options->table;

    for (size_t i = 0; i < options->sized_count; i++)
        if (open_sized(table, options->sized[i]) < 0)
            return -1;
    if (!options->sized_count) {
        table->run_count = 1;
        return ms_fit_run_open(&table->runs[0], paths[0]);
    }
    qsort(table->runs, table->run_count, sizeof(table->runs[0]), compare_sizes);
    for (size_t i = 1; i < table->run_count; i++) {
        if (table->runs[i].size == table->runs[i - 1].size) {
            ms_cli_error("--sized %g is given twice", table->runs[i].size);
            return -1;
        }
        if (table->runs[i].has_tensors != table->runs[0].has_tensors) {
            ms_cli_error("only one of the runs has tensors: %s, %s", table->runs[i - 1].trace,
                         table->runs[i].trace);
            return -1;
        }
    }
    return 0;
}

/* --- what is found --- */

/* Another order of threads may need more. */
static int try_orders(struct ms_fit_table *table, struct ms_fit_row *row)
{
    const struct ms_course *course = ms_fit_course(ms_fit_shown(table), &row->way);
    struct ms_course other = *course;
    int status = 0;

    if (course->count > ORDERS_EVENTS)
        return 0;
    other.events = malloc((course->count + 1) * sizeof(*other.events));
    if (!other.events)
        return 0;
    for (uint64_t seed = 1; status == 0 && seed <= ORDERS; seed++) {
        uint64_t least, reserved;

        memcpy(other.events, course->events, course->count * sizeof(*other.events));
        if (!ms_fit_reorder(&other, seed))
            break;
        table->reordered = true;
        status = ms_fit_least(&row->way, &other, &least, &reserved);
        if (status == 0 && least > row->least_most)
            row->least_most = least;
    }
    free(other.events);
    return status;
}

static int find_least(struct ms_fit_table *table, struct ms_progress *progress)
{
    for (size_t i = 0; i < table->row_count; i++) {
        struct ms_fit_row *row = &table->rows[i];

        if (ms_fit_least(&row->way, ms_fit_course(ms_fit_shown(table), &row->way), &row->least,
                         &row->reserved) < 0)
            return -1;
        row->least_most = row->least;
        if (try_orders(table, row) < 0)
            return -1;
        ms_progress_step(progress);
    }
    return 0;
}

static int fits_at(const struct ms_fit_table *table, const struct ms_fit_row *row, double size,
                   uint64_t capacity, bool *fits_p)
{
    struct ms_course course;
    struct ms_fit_answer answer;
    int status;

    if (ms_laws_course(&table->laws, size, &course) < 0) {
        ms_cli_error("there is no memory for the trace at another size");
        return -1;
    }
    status = ms_fit_try(&row->way, &course, &capacity, 1, &answer);
    ms_laws_course_close(&course);
    *fits_p = status == 0 && answer.fits;
    return status;
}

/* Sizes are whole numbers: a batch, a length. */
static int find_largest(const struct ms_fit_table *table, struct ms_fit_row *row, size_t device)
{
    const struct ms_fit_run *run = ms_fit_shown(table);
    uint64_t beside = run->others + run->beside_blocks; /* which no law is about */
    uint64_t capacity = table->devices[device] > beside ? table->devices[device] - beside : 0;
    double low = 0, high = 1;
    bool fits = capacity > 0;

    while (fits && low < MS_FIT_ANY_SIZE) {
        if (fits_at(table, row, high, capacity, &fits) < 0)
            return -1;
        if (fits) {
            low = high;
            high *= 2;
        }
    }
    while (low < MS_FIT_ANY_SIZE && high - low > 1) {
        double middle = floor((low + high) / 2);

        if (fits_at(table, row, middle, capacity, &fits) < 0)
            return -1;
        *(fits ? &low : &high) = middle;
    }
    row->largest[device] = low;
    return 0;
}

static int find_laws(struct ms_fit_table *table, size_t count, struct ms_laws *laws)
{
    struct ms_sized_run runs[MS_FIT_RUNS_MOST];
    char error[256];

    for (size_t i = 0; i < count; i++)
        runs[i] = (struct ms_sized_run){.size = table->runs[i].size,
                                        .course = ms_fit_asked(&table->runs[i]),
                                        .site_names = table->runs[i].names,
                                        .site_count = table->runs[i].name_count};
    if (ms_laws_find(runs, count, laws, error, sizeof(error)) == 0)
        return 0;
    ms_cli_error("%s", error);
    return -1;
}

/* With a third run: what the smaller ones say of the largest, beside what that one reserves. */
static int hold_out(struct ms_fit_table *table)
{
    const struct ms_fit_row *row = &table->rows[0];
    struct ms_course course;
    struct ms_laws laws;
    uint64_t told = 0;
    int status;

    if (table->run_count < 3)
        return 0;
    if (find_laws(table, table->run_count - 1, &laws) < 0)
        return -1;
    status = ms_laws_course(&laws, ms_fit_shown(table)->size, &course);
    if (status == 0) {
        status = ms_fit_reserved(&row->way, &course, &told);
        ms_laws_course_close(&course);
    }
    ms_laws_close(&laws);
    if (status == 0 && row->reserved) {
        table->held_out = ms_fit_shown(table)->size;
        table->told_off = 100 * ((double)told / (double)row->reserved - 1);
    }
    return status;
}

static int find_sizes(struct ms_fit_table *table, struct ms_progress *progress)
{
    if (find_laws(table, table->run_count, &table->laws) < 0 || hold_out(table) < 0)
        return -1;
    table->is_sized = true;
    for (size_t i = 0; i < table->row_count; i++) {
        for (size_t d = 0; d < table->device_count; d++) {
            if (table->rows[i].way.of_tensors == ms_fit_shown(table)->has_tensors &&
                find_largest(table, &table->rows[i], d) < 0)
                return -1;
            ms_progress_step(progress);
        }
    }
    return 0;
}

/* By the laws, or of one run as if each allocation were constant. */
static int find_shares(struct ms_fit_table *table)
{
    const struct ms_course *course = ms_fit_asked(ms_fit_shown(table));
    struct ms_laws none = {.base = course};
    int status = -1;

    if (!table->is_sized)
        none.laws = calloc((size_t)course->block_count + 1, sizeof(*none.laws));
    if (table->is_sized || none.laws)
        table->share_count = ms_laws_shares(table->is_sized ? &table->laws : &none, course,
                                            ms_fit_shown(table)->size, &table->shares);
    if ((table->is_sized || none.laws) && table->share_count >= 0)
        status = 0;
    else
        ms_cli_error("there is no memory for the lines of the trace");
    free(none.laws);
    return status;
}

static int find(struct fit_options *options)
{
    struct ms_fit_table *table = &options->table;
    struct ms_fit_way ways[MS_FIT_WAYS_MOST];
    struct ms_progress progress = {.what = "answers"};
    int count = ms_fit_ways(ms_fit_shown(table), options->policy, ways);

    if (count < 0)
        return MS_EXIT_USAGE;
    table->row_count = (size_t)count;
    for (int i = 0; i < count; i++)
        table->rows[i].way = ways[i];
    progress.count = table->row_count * (1 + (options->sized_count ? table->device_count : 0));
    ms_progress_show(&progress);
    if (find_least(table, &progress) < 0 || (options->sized_count && find_sizes(table, &progress) < 0) ||
        find_shares(table) < 0)
        return MS_EXIT_FAILED;
    return MS_EXIT_OK;
}

static int print(struct fit_options *options)
{
    FILE *out = ms_cli_open_output(options->printing.output, options->printing.force);

    if (!out)
        return MS_EXIT_USAGE;
    if (options->printing.json)
        ms_cli_print_json(out, ms_fit_json(&options->table));
    else
        ms_fit_print(out, &options->table);
    return ms_cli_close_output(out);
}

int ms_cmd_fit(int argc, char **argv)
{
    static struct fit_options options = {.table.top = 8};
    int first = ms_cli_parse(argc, argv, false, fit_take, &options), status;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (fit_refuse(&options, argc - first) < 0)
        return MS_EXIT_USAGE;
    status = open_runs(&options, argv + first) < 0 ? MS_EXIT_USAGE : find(&options);
    if (!status)
        status = print(&options);
    for (size_t i = 0; i < options.table.run_count; i++)
        ms_fit_run_close(&options.table.runs[i]);
    free(options.table.shares);
    ms_laws_close(&options.table.laws);
    return status;
}
