/* cmd_suppress.c - memshim suppress: the leaks of reports as lines for MEMSHIM_SUPPRESSIONS.
 *
 * Floor 5. A line is of the whole chain of calls that led to a leak, so that another leak through the same
 * helper, or by another line of the same function, is told when it comes; of the stack's hash where a frame
 * of the chain has no name or no line. What one line suppresses already gets no second one. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/screens/leaks.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "cli/screens/suppress.h"
#include "export/names.h"
#include "report/text/text.h"

static int suppress_take(void *arg, int id, const char *value)
{
    ms_cli_take_printing(arg, id, value);
    return 0;
}

/* A template that fits `name` from end to end. A star fits itself; what cannot stand in a line, or would be
 * taken for an end or an arrow, is left to a star. */
static void put_template(FILE *out, const char *name)
{
    size_t length = strlen(name);

    fputc('^', out);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        bool odd = c < 0x20 || c >= 0x7f || (c == '^' && !i) || (c == '$' && i + 1 == length) ||
                   !strncmp(name + i, MS_SUPPRESS_ARROW, strlen(MS_SUPPRESS_ARROW));

        fputc(odd ? '*' : c, out);
    }
    fputc('$', out);
}

/* "chain:^alloc$:4 <- ^grow$:9 <- ^main$:20", or "hash:..." if one of them has no name or line; "" if neither
 * can be told. To be freed. */
static char *suppress_line_of(const struct ms_report *report, const json_t *site)
{
    const json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t count = ms_suppress_chain(report, ms_report_int(site, "stack"), frames), i, bytes;
    char *line = NULL;
    FILE *out = open_memstream(&line, &bytes);
    bool named = count > 0;

    for (i = 0; i < count; i++)
        named = named && *ms_report_text(frames[i], "function") && ms_report_int(frames[i], "line") > 0;
    for (i = 0; out && named && i < count; i++) {
        fputs(i ? MS_SUPPRESS_ARROW : "chain:", out);
        put_template(out, ms_report_text(frames[i], "function"));
        fprintf(out, ":%" JSON_INTEGER_FORMAT, ms_report_int(frames[i], "line"));
    }
    if (out && !named && ms_report_int(site, "stack") > 0 && *ms_report_text(site, "hash"))
        fprintf(out, "hash:%s", ms_report_text(site, "hash"));
    if (out && fclose(out) == 0)
        return line;
    free(line);
    return NULL;
}

static void put_leaks(FILE *out, const struct ms_report *report, struct ms_names *names)
{
    struct ms_leaks leaks;

    if (ms_leaks_open(report, 0, &leaks) < 0)
        return;
    for (size_t i = 0; i < leaks.count; i++) {
        const json_t *site = ms_report_site(report, ms_report_int(leaks.rows[i], "site"));
        size_t known = names->count;
        char *line = site && ms_report_is_leak(leaks.rows[i]) ? suppress_line_of(report, site) : NULL;

        if (line && !*line) {
            ms_cli_note("a leak of %s by %s has no stack, and no line can be written for it",
                        ms_text_size(ms_report_int(leaks.rows[i], "bytes")).text, ms_cli_site_api(site));
        } else if (line && ms_names_number(names, line) >= known) {
            fprintf(out, "# %s by ", ms_text_size(ms_report_int(leaks.rows[i], "bytes")).text);
            ms_text_put(out, ms_cli_site_api(site));
            ms_text_put_own(out, report, ms_report_int(site, "stack"));
            fputc('\n', out);
            ms_text_put(out, line);
            fputc('\n', out);
        }
        free(line);
    }
    ms_leaks_close(&leaks);
}

int ms_cmd_suppress(int argc, char **argv)
{
    struct ms_cli_printing printing = {false, false, NULL};
    int first = ms_cli_parse(argc, argv, false, suppress_take, &printing), status = MS_EXIT_USAGE;
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
