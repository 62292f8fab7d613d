/* rows_segments.c - segments and their blocks as columns.
 *
 * Floor 4. */
#include <stdlib.h>

#include "base/compiler.h"
#include "html/rows.h"

static const struct ms_html_key SEGMENT_KEYS[] = {
    {"segment.tier", "tier", true},    {"segment.backing", "backing", true},
    {"segment.space", "space", true},  {"segment.address", "address", false},
    {"segment.bytes", "bytes", false}, {"segment.blocks_left_out", "blocks_left_out", false},
};
static const struct ms_html_key BLOCK_KEYS[] = {
    {"block.state", "state", true},          {"block.api", "api", true},
    {"block.offset", "offset", false},       {"block.bytes", "bytes", false},
    {"block.requested", "requested", false}, {"block.site", "site", false},
    {"block.born_ns", "born_ns", false},
};

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
    *all = (struct all){.segments = calloc(count + 1, sizeof(*all->segments)),
                        .blocks = calloc(blocks + 1, sizeof(*all->blocks)),
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
    ms_columns_put(columns, "segment.device", all->device, sizeof(*all->device), all->count);
    ms_columns_put(columns, "segment.first", all->first, sizeof(*all->first), all->count + 1);
    if (ms_html_keys(columns, strings, all->segments, all->count, SEGMENT_KEYS, MS_ARRAY_LEN(SEGMENT_KEYS)) <
        0)
        return -1;
    return ms_html_keys(columns, strings, all->blocks, all->block_count, BLOCK_KEYS,
                        MS_ARRAY_LEN(BLOCK_KEYS));
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
