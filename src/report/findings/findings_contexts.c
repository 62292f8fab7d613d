/* findings_contexts.c - the rule of contexts that nobody needs: unused_device_context; see findings.h.
 *
 * Floor 4, command line only. A device is used if memory was ever allocated on it, or others' was opened
 * there, or modules were loaded into its context. What is pinned is the host's, whichever device's context it
 * took. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings.h"
#include "report/read/sites.h"
#include "report/text/text.h"

/* The uses of the rows of devices[]. */
struct use {
    bool *memory, *modules; /* as long as devices[] */
    bool anywhere, managed; /* memory on any of them; memory that is all devices' */
};

static bool is_of_the_host(const char *kind)
{
    return !strcmp(kind, "pinned") || !strcmp(kind, "registered");
}

static void findings_contexts_look_at_sites(struct use *use, const struct ms_report *report)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;

    for (size_t i = 0; i < count; i++) {
        if (is_of_the_host(sites[i].kind) || sites[i].device_row == SIZE_MAX || sites[i].total_count <= 0)
            continue;
        use->memory[sites[i].device_row] = use->anywhere = true;
        use->managed = use->managed || !strcmp(sites[i].kind, "managed");
    }
}

static void look_at_modules(struct use *use, const struct ms_report *report)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "contexts"), i, row) {
        size_t at =
            strcmp(ms_report_text(row, "kind"), "module") ? SIZE_MAX : ms_report_device_of(report, row);

        if (at != SIZE_MAX)
            use->modules[at] = true;
    }
}

static void findings_contexts_annotate(struct ms_finder *finder, const json_t *row, size_t number)
{
    json_int_t bytes = ms_report_int(row, "bytes"), device = ms_report_int(row, "device");
    const char *api = ms_report_text(row, "api");
    char *line = ms_finding_line(finder->report, row, "the first call that touches it");
    json_t *found;

    if (!line)
        return;
    found = ms_finding_add(
        finder, "unused_device_context", bytes, NULL,
        ms_finding_text("%.64s made a context on %sdevice %" JSON_INTEGER_FORMAT
                        ", which took %s, and nothing was allocated there",
                        api, ms_report_device_prefix(row), device, ms_text_size(bytes).text),
        ms_finding_text("choose the device (cudaSetDevice) before %s, or keep device %" JSON_INTEGER_FORMAT
                        " out of CUDA_VISIBLE_DEVICES",
                        line, device));
    if (found) {
        json_object_set_new(found, "context", json_integer((json_int_t)number));
        json_object_set(found, "device", json_object_get(row, "device"));
        if (json_object_get(row, "device_api"))
            json_object_set(found, "device_api", json_object_get(row, "device_api"));
    }
    free(line);
}

void ms_findings_look_at_contexts(struct ms_finder *finder)
{
    const struct ms_report *report = finder->report;
    size_t count = json_array_size(ms_report_array(report->root, "devices")), i;
    struct use use = {calloc(count + 1, sizeof(bool)), calloc(count + 1, sizeof(bool)), false, false};
    json_t *row;

    if (use.memory && use.modules) {
        findings_contexts_look_at_sites(&use, report);
        look_at_modules(&use, report);
        json_array_foreach (ms_report_array(report->root, "contexts"), i, row) {
            size_t at = ms_report_device_of(report, row);

            if (use.anywhere && !use.managed && at != SIZE_MAX && !use.memory[at] && !use.modules[at] &&
                ms_report_int(row, "bytes") > 0)
                findings_contexts_annotate(finder, row, i);
        }
    }
    free(use.memory);
    free(use.modules);
}
