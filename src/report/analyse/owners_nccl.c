/* owners_nccl.c - see owners_nccl.h.
 *
 * Floor 4, command line only. The function that the program called is the site's, or, for what the library
 * took where memshim has no frame, the outermost of the stack's frames that is one of NCCL's by its name; in
 * a thread of NCCL's own there is none. The communicator stands in a mark of the stack
 * (hooks/follow/communicators.h). */
#include "report/analyse/owners_nccl.h"

#include <stdio.h>
#include <string.h>

/* Every function has two names. */
static const char *plain(const char *function)
{
    return !strncmp(function, "pnccl", strlen("pnccl")) ? function + 1 : function;
}

static bool is_entry(const char *function)
{
    return !strncmp(plain(function), "nccl", strlen("nccl"));
}

bool ms_nccl_takes(const struct ms_site_row *site)
{
    return is_entry(site->api) && strcmp(plain(site->api), "ncclMemAlloc") != 0;
}

static bool is_of_nccl(const struct ms_report *report, const json_t *frame)
{
    const json_t *id = json_object_get(frame, "module");
    const json_t *module = json_is_integer(id) ? ms_report_module(report, json_integer_value(id)) : NULL;

    return module && !strcmp(ms_report_text(module, "owner"), "nccl");
}

/* The entry point and the communicator, as the stack has them; NULL for what it does not say. */
static void owners_nccl_look(const struct ms_report *report, const struct ms_site_row *site,
                             const char **entry_p, const char **communicator_p)
{
    json_int_t stack = site->stack;
    const json_t *frame;
    size_t row;

    *communicator_p = NULL;
    *entry_p = ms_nccl_takes(site) ? plain(site->api) : NULL;
    for (size_t i = 0; i < MS_REPORT_DEPTH_MAX && (frame = ms_report_stack_next(report, &stack, &row)); i++) {
        const char *function = ms_report_text(frame, "function"), *name = ms_report_text(frame, "name");

        if (!strcmp(ms_report_text(frame, "mark"), "communicator") && *name)
            *communicator_p = name;
        if (!ms_nccl_takes(site) && is_entry(function) && is_of_nccl(report, frame))
            *entry_p = plain(function);
    }
}

static void owners_nccl_add(json_t *row, const char *key, json_int_t more)
{
    json_object_set_new(row, key, json_integer(ms_report_sum(ms_report_int(row, key), more)));
}

void ms_nccl_add(const struct ms_report *report, const struct ms_site_row *site, json_t *parts)
{
    const char *entry, *communicator;
    char key[512];
    json_t *part;

    owners_nccl_look(report, site, &entry, &communicator);
    snprintf(key, sizeof(key), "%.250s %.250s", entry ? entry : "", communicator ? communicator : "");
    part = json_object_get(parts, key);
    if (!part) {
        part = json_object();
        json_object_set_new(parts, key, part);
        if (entry)
            json_object_set_new(part, "entry", json_string(entry));
        if (communicator)
            json_object_set_new(part, "communicator", json_string(communicator));
    }
    owners_nccl_add(part, "at_peak_bytes", site->at_peak_bytes);
    owners_nccl_add(part, "live_bytes", site->live_bytes);
    owners_nccl_add(part, "live_count", site->live_count);
    owners_nccl_add(part, "total_bytes", site->total_bytes);
    owners_nccl_add(part, "total_count", site->total_count);
}
