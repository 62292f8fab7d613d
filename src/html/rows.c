/* rows.c - see rows.h.
 *
 * Floor 4. */
#include "html/rows.h"

#include <stdlib.h>

int ms_html_key(struct ms_columns *columns, const char *name, const json_t *rows, const char *key)
{
    size_t count = json_array_size(rows), i;
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    json_t *row;

    if (!numbers)
        return -1;
    json_array_foreach (rows, i, row)
        numbers[i] = ms_report_int(row, key);
    ms_columns_put(columns, name, numbers, sizeof(*numbers), count);
    free(numbers);
    return 0;
}

int ms_html_rows(struct ms_columns *columns, json_t *head, const struct ms_model *model)
{
    struct ms_strings strings;
    int status = -1;

    if (ms_strings_open(&strings, model->report) < 0)
        return -1;
    if (ms_html_sites(columns, &strings, model) == 0 && ms_html_time(columns, head, model->report) == 0 &&
        ms_html_segments(columns, &strings, model->report) == 0 && !strings.failed)
        status = json_object_set_new(head, "strings", ms_strings_json(&strings));
    ms_strings_close(&strings);
    return status;
}
