/* cmd_suppress.c - memshim suppress: the leaks of reports as LeakSanitizer's leak: lines, for
 * MEMSHIM_SUPPRESSIONS.
 *
 * Floor 5. A line is of the program's own line that leaks (report/fold.h): the whole name of its function,
 * or, without one, its source file or module. What one line suppresses already gets no second one. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/leaks.h"
#include "cli/load.h"
#include "cli/many.h"
#include "export/names.h"
#include "report/fold.h"
#include "report/text.h"

static int take(void *arg, int id, const char *value)
{
    ms_cli_take_printing(arg, id, value);
    return 0;
}

/* A template that fits `name` from end to end. A star fits itself; what cannot stand in a line, or would be
 * taken for an end, is left to a star. */
static void put_template(FILE *out, const char *name)
{
    size_t length = strlen(name);

    fputs("leak:^", out);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        bool odd = c < 0x20 || c >= 0x7f || (c == '^' && !i) || (c == '$' && i + 1 == length);

        fputc(odd ? '*' : c, out);
    }
    fputs("$\n", out);
}

/* What a frame is known by, for a suppression. */
static const char *name_of(const struct ms_report *report, const json_t *frame)
{
    json_t *module = json_object_get(frame, "module");

    if (*ms_report_text(frame, "function"))
        return ms_report_text(frame, "function");
    if (*ms_report_text(frame, "file"))
        return ms_report_text(frame, "file");
    return json_is_integer(module)
               ? ms_report_text(ms_report_module(report, json_integer_value(module)), "path")
               : "";
}

/* The frame that a leak is known by. main is below everything: where something else was called last, that. */
static const json_t *frame_of(const struct ms_report *report, json_int_t stack)
{
    bool inferred;
    const json_t *own = ms_fold_own(report, stack, &inferred);
    size_t row;

    return strcmp(ms_report_text(own, "function"), "main") ? own : ms_report_stack_next(report, &stack, &row);
}

static void put_leaks(FILE *out, const struct ms_report *report, struct ms_names *names)
{
    struct ms_leaks leaks;

    if (ms_leaks_open(report, 0, &leaks) < 0)
        return;
    for (size_t i = 0; i < leaks.count; i++) {
        const json_t *site = ms_report_site(report, ms_report_int(leaks.rows[i], "site"));
        size_t known = names->count;
        const json_t *frame;
        const char *name;

        if (!site || !ms_report_is_leak(leaks.rows[i]))
            continue;
        frame = frame_of(report, ms_report_int(site, "stack"));
        name = frame ? name_of(report, frame) : "";
        if (!*name) {
            ms_cli_note("a leak of %s by %s has no stack, and no line can be written for it",
                        ms_text_size(ms_report_int(leaks.rows[i], "bytes")).text, ms_cli_site_api(site));
            continue;
        }
        if (ms_names_number(names, name) < known)
            continue;
        if (!strcmp(name, "main"))
            ms_cli_note("leak:^main$ suppresses whatever main leaks, and all that it calls");
        fprintf(out, "# %s by ", ms_text_size(ms_report_int(leaks.rows[i], "bytes")).text);
        ms_text_put(out, ms_cli_site_api(site));
        ms_text_put_own(out, report, ms_report_int(site, "stack"));
        fputc('\n', out);
        put_template(out, name);
    }
    ms_leaks_close(&leaks);
}

int ms_cmd_suppress(int argc, char **argv)
{
    struct ms_cli_printing printing = {false, false, NULL};
    int first = ms_cli_parse(argc, argv, false, take, &printing), status = MS_EXIT_USAGE;
    struct ms_names names = {NULL, NULL, 0, 0, 0};
    struct ms_report *reports;
    FILE *out = NULL;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim suppress [OPTION...] FILE...");
        return MS_EXIT_USAGE;
    }
    reports = ms_many_load(argv + first, (size_t)(argc - first));
    if (reports)
        out = ms_cli_open_output(printing.output, printing.force);
    for (int i = 0; out && i < argc - first; i++)
        put_leaks(out, &reports[i], &names);
    if (out)
        status = ms_cli_close_output(out);
    ms_names_close(&names);
    ms_many_close(reports, reports ? (size_t)(argc - first) : 0);
    return status;
}
