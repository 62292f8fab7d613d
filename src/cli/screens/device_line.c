/* device_line.c - see device_line.h. */
#include "cli/screens/device_line.h"

#include "report/read/read.h"
#include "report/text/text.h"

enum { NAMED = 4 };

static void put_bytes(FILE *out, const json_t *object, const char *key, const char *before, const char *after)
{
    fprintf(out, "%s%s%s", before, ms_text_size(ms_report_int(object, key)).text, after);
}

static void put_process(FILE *out, const json_t *process)
{
    ms_text_put(out, ms_report_text(process, "name"));
    fprintf(out, "%s%" JSON_INTEGER_FORMAT, *ms_report_text(process, "name") ? " " : "process ",
            ms_report_int(process, "pid"));
}

/* " (300.0 MiB serve 4712, 12.0 MiB train 4713, 3 more)" */
static void put_neighbours(FILE *out, const json_t *device)
{
    const json_t *process;
    size_t i, count = 0;

    json_array_foreach (ms_report_array(device, "processes"), i, process) {
        if (ms_report_bool(process, "yours") || count++ >= NAMED)
            continue;
        put_bytes(out, process, "used_bytes", count == 1 ? " (" : ", ", " ");
        put_process(out, process);
    }
    if (count > NAMED)
        fprintf(out, ", %zu more", count - NAMED);
    if (count)
        fputc(')', out);
}

json_int_t ms_device_line_beyond(const json_t *process)
{
    json_int_t used = ms_report_int(process, "used_bytes"), kept = ms_report_int(process, "guarantee_bytes");

    return kept && used > kept ? used - kept : 0;
}

/* "; train 4711 has 2.00 GiB kept for it, and 1.00 GiB beyond that" */
static void put_guarantees(FILE *out, const json_t *device)
{
    const json_t *process;
    size_t i;

    json_array_foreach (ms_report_array(device, "processes"), i, process) {
        json_int_t beyond = ms_device_line_beyond(process);

        if (!ms_report_int(process, "guarantee_bytes"))
            continue;
        fputs("; ", out);
        put_process(out, process);
        put_bytes(out, process, "guarantee_bytes", " has ", " kept for it");
        if (beyond)
            fprintf(out, ", and %s beyond that", ms_text_size(beyond).text);
    }
}

void ms_device_line_put(FILE *out, const json_t *device)
{
    put_bytes(out, device, "total_bytes", "", " = ");
    put_bytes(out, device, "free_bytes", "", " free + ");
    put_bytes(out, device, "yours_bytes", "", " yours");
    if (json_object_get(device, "allocated_bytes")) {
        put_bytes(out, device, "allocated_bytes", " (", " allocated + ");
        put_bytes(out, device, "cached_bytes", "", " cached + ");
        put_bytes(out, device, "contexts_bytes", ms_report_bool(device, "contexts_at_most") ? "at most " : "",
                  " contexts)");
    }
    put_bytes(out, device, "neighbours_bytes", " + ", " neighbours");
    put_neighbours(out, device);
    put_bytes(out, device, "unaccounted_bytes", " + ", " unaccounted");
    put_guarantees(out, device);
}
