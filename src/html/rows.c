/* rows.c - see rows.h.
 *
 * Floor 4. */
#include "html/rows.h"

#include <stdlib.h>

static int64_t rows_number_of(const json_t *value)
{
    if (json_is_string(value))
        return (int64_t)strtoull(json_string_value(value), NULL, 16);
    return value ? json_integer_value(value) : -1;
}

int ms_html_keys(struct ms_columns *columns, struct ms_strings *strings, json_t *const *rows, size_t count,
                 const struct ms_html_key *keys, size_t key_count)
{
    int64_t *numbers = calloc(count * key_count + 1, sizeof(*numbers));
    uint32_t *texts = (uint32_t *)numbers;

    if (!numbers)
        return -1;
    /* A column of texts has room for numbers, and takes the first half of it. */
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < key_count; k++) {
            if (keys[k].is_text)
                texts[2 * k * count + i] = ms_strings_number(strings, ms_report_text(rows[i], keys[k].key));
            else
                numbers[k * count + i] = rows_number_of(json_object_get(rows[i], keys[k].key));
        }
    }
    for (size_t k = 0; k < key_count; k++)
        ms_columns_put(columns, keys[k].name, numbers + k * count, keys[k].is_text ? 4 : 8, count);
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
