/* sites.c - see sites.h.
 *
 * Floor 4, command line only. */
#include "report/read/sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

struct ms_report_sites {
    size_t count;
    struct ms_site_row rows[];
};

static const struct member {
    const char *name;
    size_t offset;
    bool is_text;
} members[] = {
#define MS_SITE_MEMBER(name) {#name, offsetof(struct ms_site_row, name), false},
    MS_SITE_NUMBERS(MS_SITE_MEMBER)
#undef MS_SITE_MEMBER
#define MS_SITE_MEMBER(name) {#name, offsetof(struct ms_site_row, name), true},
        MS_SITE_TEXTS(MS_SITE_MEMBER)
#undef MS_SITE_MEMBER
};

/* Looked for behind the one before, since reports have them in one order. */
static const struct member *find_member(const char *name, size_t *next_p)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(members); i++) {
        size_t at = (*next_p + i) % MS_ARRAY_LEN(members);

        if (!strcmp(members[at].name, name)) {
            *next_p = at + 1;
            return &members[at];
        }
    }
    return NULL;
}

static void take_member(struct ms_site_row *row, const struct member *member, const json_t *value)
{
    char *to = (char *)row + member->offset;
    const char *text = json_string_value(value);

    if (member->is_text && text)
        memcpy(to, &text, sizeof(text));
    else if (!member->is_text)
        *(json_int_t *)to = json_integer_value(value);
}

static void sites_take_row(struct ms_site_row *row, json_t *json)
{
    const char *name;
    json_t *value;
    size_t next = 0;

    *row = (struct ms_site_row){.json = json, .api = "", .kind = "", .device_api = "", .owner = ""};
    json_object_foreach (json, name, value) {
        const struct member *member = find_member(name, &next);

        if (!member)
            continue;
        take_member(row, member, value);
        if (member->offset == offsetof(struct ms_site_row, device))
            row->has_device = json_is_integer(value);
    }
}

static void place_row(const struct ms_report *report, struct ms_site_row *row, const struct ms_site_row *last)
{
    if (last && last->device == row->device && !strcmp(last->device_api, row->device_api))
        row->device_row = last->device_row;
    else
        row->device_row = ms_report_device_of(report, row->json);
    row->counts =
        last && !strcmp(last->kind, row->kind) ? last->counts : ms_report_is_device_memory(row->json);
}

static struct ms_report_sites *make_sites(const struct ms_report *report)
{
    struct ms_report_sites *sites =
        malloc(sizeof(*sites) + json_array_size(report->sites) * sizeof(struct ms_site_row));
    json_t *json;
    size_t i;

    if (!sites)
        return NULL;
    sites->count = json_array_size(report->sites);
    json_array_foreach (report->sites, i, json) {
        sites_take_row(&sites->rows[i], json);
        place_row(report, &sites->rows[i], i ? &sites->rows[i - 1] : NULL);
    }
    return sites;
}

const struct ms_site_row *ms_report_sites(const struct ms_report *report)
{
    struct ms_report_sites **sites_p = &((struct ms_report *)report)->site_rows;

    if (!*sites_p)
        *sites_p = make_sites(report);
    return *sites_p ? (*sites_p)->rows : NULL;
}

void ms_report_site_owned(const struct ms_report *report, size_t row, json_t *owner)
{
    json_object_set_new(json_array_get(report->sites, row), "owner", owner);
    if (report->site_rows && row < report->site_rows->count)
        report->site_rows->rows[row].owner = ms_report_text(report->site_rows->rows[row].json, "owner");
}
