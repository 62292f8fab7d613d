/* rows_time.c - the timeline as columns: "time.t", and for each of its rows "time.N.live" and so on.
 *
 * Floor 4. */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "html/rows.h"

static int put_series(struct ms_columns *columns, const char *name, const json_t *values)
{
    size_t count = json_array_size(values), i;
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    json_t *value;

    if (!numbers)
        return -1;
    json_array_foreach (values, i, value)
        numbers[i] = json_integer_value(value);
    ms_columns_put(columns, name, numbers, sizeof(*numbers), count);
    free(numbers);
    return 0;
}

/* Which row of devices[] each of the timeline's is, and how long a bucket is. */
static void put_meaning(json_t *head, const json_t *timeline, const struct ms_report *report)
{
    json_t *devices = ms_report_array(timeline, "devices"), *device, *rows = json_array();
    size_t i;

    json_array_foreach (devices, i, device) {
        size_t row = ms_report_device_of(report, device);

        json_array_append_new(rows, json_integer(row == SIZE_MAX ? -1 : (json_int_t)row));
    }
    json_object_set_new(
        head, "timeline",
        json_pack("{s:I, s:o}", "bucket_ns", ms_report_int(timeline, "bucket_ns"), "devices", rows));
}

/* Tensors lie in blocks, which are what is reserved for them. */
static const json_t *series_of(const struct ms_report *report, const json_t *device, const char *key)
{
    const json_t *outer = json_object_get(report->root, "outer_timeline"), *row;
    const json_t *timeline = json_object_get(report->root, "timeline");
    size_t i;

    if (json_object_get(device, key) || !outer || strcmp(key, "reserved") != 0 ||
        json_array_size(ms_report_array(outer, "t")) != json_array_size(ms_report_array(timeline, "t")))
        return ms_report_array(device, key);
    json_array_foreach (ms_report_array(outer, "devices"), i, row)
        if (ms_report_device_of(report, row) == ms_report_device_of(report, device))
            return ms_report_array(row, "live");
    return NULL;
}

int ms_html_time(struct ms_columns *columns, json_t *head, const struct ms_report *report)
{
    static const char *const keys[] = {"live", "reserved", "limbo"};
    const json_t *timeline = json_object_get(report->root, "timeline");
    json_t *devices = ms_report_array(timeline, "devices"), *device;
    char name[64];
    size_t i;

    put_meaning(head, timeline, report);
    if (put_series(columns, "time.t", ms_report_array(timeline, "t")) < 0 ||
        put_series(columns, "time.moment", ms_report_array(timeline, "moments")) < 0)
        return -1;
    json_array_foreach (devices, i, device) {
        for (size_t k = 0; k < MS_ARRAY_LEN(keys); k++) {
            snprintf(name, sizeof(name), "time.%zu.%s", i, keys[k]);
            if (put_series(columns, name, series_of(report, device, keys[k])) < 0)
                return -1;
        }
    }
    return 0;
}
