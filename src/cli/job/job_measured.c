/* job_measured.c - what memshim check measures of a process, taken into a job; see job.h.
 *
 * Floor 5. So limits can be held against a job report as against the reports that it was made of. Of an owner
 * and of a phase a process counts by the device where that was most. */
#include <stdlib.h>
#include <string.h>

#include "cli/array.h"
#include "cli/job/job.h"

/* The figures that a process had of an owner, or of a phase. */
struct named {
    json_int_t device_bytes; /* of the device where it had most; 0: of none */
    json_int_t now[MS_JOB_WEIGHTS];
    struct ms_job_part blamed[MS_JOB_WEIGHTS];
};

struct gathering {
    struct ms_names names;
    struct named *rows; /* by number of the name */
    size_t count, room;
};

static struct named *job_measured_named(struct gathering *gathering, const char *name)
{
    uint32_t number = ms_names_number(&gathering->names, name);
    struct named *rows;

    if (number < gathering->count)
        return &gathering->rows[number];
    rows = number == UINT32_MAX
               ? NULL
               : ms_array_grow(gathering->rows, sizeof(*rows), gathering->count, &gathering->room, 16);
    if (!rows)
        return NULL;
    gathering->rows = rows;
    rows[gathering->count] = (struct named){.device_bytes = 0};
    for (unsigned weight = 0; weight < MS_JOB_WEIGHTS; weight++)
        rows[gathering->count].blamed[weight].site = UINT32_MAX;
    return &rows[gathering->count++];
}

/* The call site that is blamed for a figure, as a row of the job's. */
static struct ms_job_part blamed(const struct ms_job_footprint_event *taking,
                                 const struct ms_check_measure *row)
{
    bool known = row->site >= 0 && (size_t)row->site < json_array_size(taking->report->sites);

    return (struct ms_job_part){known ? taking->site_rows[row->site] : UINT32_MAX,
                                ms_job_figure_of(row->site_bytes)};
}

/* The figures of what is measured of one kind: `places` says which is which, -1 for none. */
static int job_measured_gather(const struct ms_job_footprint_event *taking, struct gathering *gathering,
                               const struct ms_check_measures *measures, enum ms_check_of of,
                               const int places[MS_CHECK_DEVICE_FIGURES])
{
    for (size_t i = 0; i < measures->count; i++) {
        const struct ms_check_measure *row = &measures->rows[i];
        struct named *one;

        if (row->of != of || places[row->figure] < 0)
            continue;
        one = job_measured_named(gathering, row->name);
        if (!one)
            return -1;
        if (row->figure == MS_CHECK_PEAK && (!one->device_bytes || row->bytes > one->now[0]))
            one->device_bytes = ms_job_figure_of(row->whole);
        if (row->bytes > one->now[places[row->figure]]) {
            one->now[places[row->figure]] = row->bytes;
            one->blamed[places[row->figure]] = blamed(taking, row);
        }
    }
    return 0;
}

static int job_measured_put(struct ms_job_footprint_event *taking, enum ms_job_list_id list,
                            const struct gathering *gathering)
{
    for (size_t i = 0; i < gathering->count; i++) {
        const struct named *one = &gathering->rows[i];
        const struct ms_job_words words = {{gathering->names.texts[i]}, one->device_bytes};
        struct ms_job_row *row = ms_job_touch(taking, list, ms_job_row(taking->job, list, &words));

        if (!row)
            return -1;
        memcpy(row->now, one->now, sizeof(row->now));
        memcpy(row->now_blamed, one->blamed, sizeof(row->now_blamed));
    }
    return 0;
}

static void job_measured_drop(struct gathering *gathering)
{
    ms_names_close(&gathering->names);
    free(gathering->rows);
}

static int take_owners(struct ms_job_footprint_event *taking, const struct ms_check_measures *measures)
{
    static const int places[MS_CHECK_DEVICE_FIGURES] = {[MS_CHECK_PEAK] = MS_JOB_OWNER_PEAK,
                                                        [MS_CHECK_LEAK] = MS_JOB_OWNER_LEAKED,
                                                        [MS_CHECK_GROWTH] = MS_JOB_OWNER_GROWTH,
                                                        [MS_CHECK_FRAG] = -1,
                                                        [MS_CHECK_RESERVED] = -1};
    struct gathering gathering = {.count = 0};
    int status = job_measured_gather(taking, &gathering, measures, MS_CHECK_OWNER, places);
    json_t *json;
    size_t i;

    json_array_foreach (ms_report_array(taking->report->root, "owners"), i, json) {
        struct named *one;

        if (status < 0 || strcmp(ms_report_text(json, "memory"), "device") != 0)
            continue;
        one = job_measured_named(&gathering, ms_report_text(json, "owner"));
        status = one ? 0 : -1;
        if (one)
            one->now[MS_JOB_OWNER_LIVE] =
                ms_report_sum(one->now[MS_JOB_OWNER_LIVE], ms_report_int(json, "live_bytes"));
    }
    if (status == 0)
        status = job_measured_put(taking, MS_JOB_OWNERS, &gathering);
    job_measured_drop(&gathering);
    return status;
}

static int take_phases(struct ms_job_footprint_event *taking, const struct ms_check_measures *measures)
{
    static const int places[MS_CHECK_DEVICE_FIGURES] = {[MS_CHECK_PEAK] = MS_JOB_PHASE_PEAK,
                                                        [MS_CHECK_LEAK] = -1,
                                                        [MS_CHECK_GROWTH] = MS_JOB_PHASE_GROWTH,
                                                        [MS_CHECK_FRAG] = -1,
                                                        [MS_CHECK_RESERVED] = -1};
    struct gathering gathering = {.count = 0};
    int status = job_measured_gather(taking, &gathering, measures, MS_CHECK_PHASE, places);
    json_t *json;
    size_t i;

    json_array_foreach (ms_report_array(taking->report->root, "phases"), i, json) {
        struct named *one = status == 0 ? job_measured_named(&gathering, ms_report_text(json, "name")) : NULL;

        status = one ? 0 : -1;
        if (!one)
            break;
        one->now[MS_JOB_PHASE_COUNT] =
            ms_report_sum(one->now[MS_JOB_PHASE_COUNT], ms_report_int(json, "count"));
        one->now[MS_JOB_PHASE_NS] = ms_report_sum(one->now[MS_JOB_PHASE_NS], ms_report_int(json, "total_ns"));
    }
    if (status == 0)
        status = job_measured_put(taking, MS_JOB_PHASES, &gathering);
    job_measured_drop(&gathering);
    return status;
}

static struct ms_job_device *add_device(struct ms_job_footprint_event *taking,
                                        const struct ms_check_measure *row)
{
    const struct ms_job_words words = {{row->name}, ms_job_figure_of(row->whole)};
    uint32_t number = ms_job_row(taking->job, MS_JOB_DEVICES, &words);
    struct ms_job_rank *rank = &taking->job->ranks[taking->rank];
    struct ms_job_device *devices = realloc(rank->devices, (rank->device_count + 1) * sizeof(*devices));

    if (devices)
        rank->devices = devices;
    if (!devices || !ms_job_touch(taking, MS_JOB_DEVICES, number))
        return NULL;
    devices[rank->device_count] = (struct ms_job_device){.row = number};
    return &devices[rank->device_count++];
}

/* The peak is the first row of each device. */
static int take_devices(struct ms_job_footprint_event *taking, const struct ms_check_measures *measures)
{
    struct ms_job_device *device = NULL;

    for (size_t i = 0; i < measures->count; i++) {
        const struct ms_check_measure *row = &measures->rows[i];

        if (row->of != MS_CHECK_DEVICE)
            continue;
        if (row->figure == MS_CHECK_PEAK && !(device = add_device(taking, row)))
            return -1;
        if (device)
            device->bytes[row->figure] = ms_job_figure_of(row->bytes);
    }
    return 0;
}

int ms_job_take_measured(struct ms_job_footprint_event *taking)
{
    struct ms_check_measures measures;
    int status = ms_check_measure(taking->report, &measures);

    for (size_t i = 0; status == 0 && i < measures.count; i++)
        if (measures.rows[i].of == MS_CHECK_PROCESS && measures.rows[i].figure == MS_CHECK_GROWTH)
            taking->job->ranks[taking->rank].figures[MS_JOB_GROWTH] =
                ms_job_figure_of(measures.rows[i].bytes);
    if (status == 0)
        status = take_devices(taking, &measures);
    if (status == 0)
        status = take_owners(taking, &measures);
    if (status == 0)
        status = take_phases(taking, &measures);
    ms_check_measures_free(&measures);
    return status;
}
