/* rows_sites.c - sites, the tree of their stacks, its frames, and leaks, as columns.
 *
 * Floor 4. */
#include <stdlib.h>

#include "base/compiler.h"
#include "html/rows.h"
#include "html/stack_tree.h"
#include "report/read/sites.h"

/* A column of texts, worked out for each site. */
typedef uint32_t (*number_func_t)(struct ms_strings *strings, const struct ms_model *model,
                                  const struct ms_model_site *site);

static uint32_t rows_sites_device_of(struct ms_strings *strings, const struct ms_model *model,
                                     const struct ms_model_site *site)
{
    (void)strings;
    (void)model;
    return site->device == SIZE_MAX ? MS_HTML_NONE : (uint32_t)site->device;
}

static uint32_t rows_sites_place_of(struct ms_strings *strings, const struct ms_model *model,
                                    const struct ms_model_site *site)
{
    (void)model;
    return ms_strings_number(strings, site->place);
}

static uint32_t rows_sites_kind_of(struct ms_strings *strings, const struct ms_model *model,
                                   const struct ms_model_site *site)
{
    (void)model;
    return ms_strings_number(strings, site->row->kind);
}

static uint32_t rows_sites_api_of(struct ms_strings *strings, const struct ms_model *model,
                                  const struct ms_model_site *site)
{
    (void)model;
    return ms_strings_number(strings, site->api);
}

static uint32_t owner_of(struct ms_strings *strings, const struct ms_model *model,
                         const struct ms_model_site *site)
{
    (void)model;
    return ms_strings_number(strings, *site->row->owner ? site->row->owner : "unknown");
}

static uint32_t rows_sites_line_of(struct ms_strings *strings, const struct ms_model *model,
                                   const struct ms_model_site *site)
{
    return ms_strings_own_line(strings, model->report, site->row->stack);
}

static const struct {
    const char *name;
    number_func_t number;
} NUMBERS[] = {{"site.device", rows_sites_device_of},
               {"site.place", rows_sites_place_of},
               {"site.kind", rows_sites_kind_of},
               {"site.api", rows_sites_api_of},
               {"site.owner", owner_of},
               {"site.line", rows_sites_line_of}};

static const struct {
    const char *name;
    size_t offset;
} FIGURES[] = {
#define FIGURE(name)                                                                                         \
    {                                                                                                        \
        "site." #name, offsetof(struct ms_site_row, name)                                                    \
    }
    FIGURE(id),       FIGURE(live_count),      FIGURE(max_bytes),       FIGURE(freed_count),
    FIGURE(first_ns), FIGURE(lifetime_ns_sum), FIGURE(requested_bytes), FIGURE(last_ns)};

static int put_numbers(struct ms_columns *columns, struct ms_strings *strings, const struct ms_model *model)
{
    size_t count = model->site_count;
    uint32_t *numbers = calloc(MS_ARRAY_LEN(NUMBERS) * count + 1, sizeof(*numbers));

    if (!numbers)
        return -1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < MS_ARRAY_LEN(NUMBERS); k++)
            numbers[k * count + i] = NUMBERS[k].number(strings, model, &model->sites[i]);
    for (size_t k = 0; k < MS_ARRAY_LEN(NUMBERS); k++)
        ms_columns_put(columns, NUMBERS[k].name, numbers + k * count, sizeof(*numbers), count);
    free(numbers);
    return 0;
}

static int put_values(struct ms_columns *columns, const struct ms_model *model)
{
    size_t count = model->site_count;
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    char name[64];

    if (!numbers)
        return -1;
    for (size_t k = 0; k < MS_VALUES; k++) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = model->sites[i].values[k];
        snprintf(name, sizeof(name), "site.%s", ms_value_names[k].name);
        ms_columns_put(columns, name, numbers, sizeof(*numbers), count);
    }
    for (size_t k = 0; k < MS_ARRAY_LEN(FIGURES); k++) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = *(const json_int_t *)((const char *)model->sites[i].row + FIGURES[k].offset);
        ms_columns_put(columns, FIGURES[k].name, numbers, sizeof(*numbers), count);
    }
    free(numbers);
    return 0;
}

static int put_tree(struct ms_columns *columns, const struct ms_model *model)
{
    struct ms_stack_tree tree;

    if (ms_stack_tree_open(&tree, model) < 0)
        return -1;
    ms_columns_put(columns, "node.parent", tree.parent, sizeof(*tree.parent), tree.count);
    ms_columns_put(columns, "node.frame", tree.frame, sizeof(*tree.frame), tree.count);
    ms_columns_put(columns, "site.node", tree.leaf, sizeof(*tree.leaf), model->site_count);
    ms_stack_tree_close(&tree);
    return 0;
}

static int rows_sites_put_frames(struct ms_columns *columns, struct ms_strings *strings,
                                 const struct ms_model *model)
{
    size_t count = model->frame_count;
    uint32_t *numbers = calloc(3 * count + 1, sizeof(*numbers));

    if (!numbers)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct ms_model_frame *frame = &model->frames[i];

        numbers[i] = ms_strings_number(strings, frame->name);
        numbers[count + i] = ms_strings_number(strings, frame->file);
        numbers[2 * count + i] = frame->line < UINT32_MAX ? (uint32_t)frame->line : 0;
    }
    ms_columns_put(columns, "frame.name", numbers, sizeof(*numbers), count);
    ms_columns_put(columns, "frame.file", numbers + count, sizeof(*numbers), count);
    ms_columns_put(columns, "frame.line", numbers + 2 * count, sizeof(*numbers), count);
    free(numbers);
    return 0;
}

static size_t count_held(const struct ms_model *model)
{
    size_t count = 0;

    for (size_t i = 0; i < model->site_count; i++)
        count += json_array_size(ms_report_array(model->sites[i].json, "held"));
    return count;
}

/* The bytes that the sites held at the moments of the timeline, as the report has them. */
static int put_held(struct ms_columns *columns, const struct ms_model *model)
{
    size_t count = count_held(model), at = 0, k;
    int64_t *bytes = calloc(2 * count + 1, sizeof(*bytes));
    uint32_t *site, *moment;
    json_t *held;

    if (!bytes)
        return -1;
    site = (uint32_t *)(bytes + count);
    moment = site + count;
    for (size_t i = 0; i < model->site_count; i++) {
        json_array_foreach (ms_report_array(model->sites[i].json, "held"), k, held) {
            site[at] = (uint32_t)i;
            moment[at] = (uint32_t)json_integer_value(json_array_get(held, 0));
            bytes[at++] = json_integer_value(json_array_get(held, 1));
        }
    }
    ms_columns_put(columns, "held.site", site, sizeof(*site), count);
    ms_columns_put(columns, "held.moment", moment, sizeof(*moment), count);
    ms_columns_put(columns, "held.bytes", bytes, sizeof(*bytes), count);
    free(bytes);
    return 0;
}

static int put_leaks(struct ms_columns *columns, struct ms_strings *strings, const struct ms_report *report)
{
    static const struct ms_html_key keys[] = {
        {"leak.class", "class", true},     {"leak.pattern", "pattern", true},
        {"leak.site", "site", false},      {"leak.bytes", "bytes", false},
        {"leak.count", "count", false},    {"leak.first_ns", "first_ns", false},
        {"leak.last_ns", "last_ns", false}};
    json_t *leaks = ms_report_array(report->root, "leaks"), *leak;
    json_t **rows = calloc(json_array_size(leaks) + 1, sizeof(*rows));
    size_t i;
    int status;

    if (!rows)
        return -1;
    json_array_foreach (leaks, i, leak)
        rows[i] = leak;
    status = ms_html_keys(columns, strings, rows, json_array_size(leaks), keys, MS_ARRAY_LEN(keys));
    free(rows);
    return status;
}

int ms_html_sites(struct ms_columns *columns, struct ms_strings *strings, const struct ms_model *model)
{
    if (put_numbers(columns, strings, model) < 0 || put_values(columns, model) < 0 ||
        put_held(columns, model) < 0 || put_tree(columns, model) < 0 ||
        rows_sites_put_frames(columns, strings, model) < 0)
        return -1;
    return put_leaks(columns, strings, model->report);
}
