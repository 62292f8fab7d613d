/* rows_segments.c - segments and their blocks as columns.
 *
 * Floor 4. */
#include <stdlib.h>

#include "base/compiler.h"
#include "html/rows.h"

/* A text of each row, by number. */
static int put_text(struct ms_columns *columns, struct ms_strings *strings, const char *name,
                    json_t *const *rows, size_t count, const char *key)
{
    uint32_t *numbers = calloc(count + 1, sizeof(*numbers));

    if (!numbers)
        return -1;
    for (size_t i = 0; i < count; i++)
        numbers[i] = ms_strings_number(strings, ms_report_text(rows[i], key));
    ms_columns_put(columns, name, numbers, sizeof(*numbers), count);
    free(numbers);
    return 0;
}

static int put_number(struct ms_columns *columns, const char *name, json_t *const *rows, size_t count,
                      const char *key)
{
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));

    if (!numbers)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(rows[i], key);

        numbers[i] = json_is_string(value) ? (int64_t)strtoull(json_string_value(value), NULL, 16)
                     : value               ? json_integer_value(value)
                                           : -1;
    }
    ms_columns_put(columns, name, numbers, sizeof(*numbers), count);
    free(numbers);
    return 0;
}

struct all {
    json_t **segments, **blocks;
    uint32_t *device, *first; /* by segment; first[count] is the number of blocks */
    size_t count, block_count;
};

static void close_all(struct all *all)
{
    free(all->segments);
    free(all->blocks);
    free(all->device);
    free(all->first);
}

static int open_all(struct all *all, const struct ms_report *report)
{
    json_t *segments = ms_report_array(report->root, "segments"), *segment, *block;
    size_t count = json_array_size(segments), blocks = 0, i, k;

    json_array_foreach (segments, i, segment)
        blocks += json_array_size(ms_report_array(segment, "blocks"));
    *all = (struct all){.segments = calloc(count + 1, sizeof(json_t *)),
                        .blocks = calloc(blocks + 1, sizeof(json_t *)),
                        .device = calloc(count + 1, sizeof(uint32_t)),
                        .first = calloc(count + 1, sizeof(uint32_t))};
    if (!all->segments || !all->blocks || !all->device || !all->first)
        return -1;
    json_array_foreach (segments, i, segment) {
        size_t device = ms_report_device_of(report, segment);

        all->segments[i] = segment;
        all->device[i] = device == SIZE_MAX ? MS_HTML_NONE : (uint32_t)device;
        all->first[i] = (uint32_t)all->block_count;
        json_array_foreach (ms_report_array(segment, "blocks"), k, block)
            all->blocks[all->block_count++] = block;
    }
    all->count = count;
    all->first[count] = (uint32_t)all->block_count;
    return 0;
}

static int put_all(struct ms_columns *columns, struct ms_strings *strings, const struct all *all)
{
    static const char *const texts[] = {"tier", "backing", "space"};
    static const char *const numbers[] = {"address", "bytes", "blocks_left_out"};
    static const char *const block_texts[] = {"state", "api"};
    static const char *const block_numbers[] = {"offset", "bytes", "requested", "site", "born_ns"};
    char name[64];
    int status = 0;

    ms_columns_put(columns, "segment.device", all->device, sizeof(*all->device), all->count);
    ms_columns_put(columns, "segment.first", all->first, sizeof(*all->first), all->count + 1);
    for (size_t i = 0; i < MS_ARRAY_LEN(texts); i++) {
        snprintf(name, sizeof(name), "segment.%s", texts[i]);
        status |= put_text(columns, strings, name, all->segments, all->count, texts[i]);
    }
    for (size_t i = 0; i < MS_ARRAY_LEN(numbers); i++) {
        snprintf(name, sizeof(name), "segment.%s", numbers[i]);
        status |= put_number(columns, name, all->segments, all->count, numbers[i]);
    }
    for (size_t i = 0; i < MS_ARRAY_LEN(block_texts); i++) {
        snprintf(name, sizeof(name), "block.%s", block_texts[i]);
        status |= put_text(columns, strings, name, all->blocks, all->block_count, block_texts[i]);
    }
    for (size_t i = 0; i < MS_ARRAY_LEN(block_numbers); i++) {
        snprintf(name, sizeof(name), "block.%s", block_numbers[i]);
        status |= put_number(columns, name, all->blocks, all->block_count, block_numbers[i]);
    }
    return status;
}

int ms_html_segments(struct ms_columns *columns, struct ms_strings *strings, const struct ms_report *report)
{
    struct all all;
    int status = open_all(&all, report);

    if (status == 0)
        status = put_all(columns, strings, &all);
    close_all(&all);
    return status;
}
