/* cmd_html.c - memshim html: reports as one page for a browser.
 *
 * Floor 5. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "html/page.h"

static int take(void *arg, int id, const char *value)
{
    return ms_cli_take_stacks(arg, id, value) < 0 ? -1 : 0;
}

/* One report at a time is in memory; the last one stays until the process ends, as to give millions of values
 * back takes a while. 0, or -1 after an error line. */
static int put_report(FILE *out, const char *path, bool all_frames, json_t *index)
{
    static struct ms_report report;
    struct ms_model model;
    int status = -1;

    if (report.root)
        ms_report_close(&report);
    if (ms_cli_load(path, &report) < 0)
        return -1;
    if (ms_model_open(&model, &report, all_frames) == 0) {
        status = ms_html_page_put(out, path, &model, index);
        ms_model_close(&model);
    }
    if (status < 0)
        ms_cli_error("no memory for %s", path);
    return status;
}

static int put_page(FILE *out, char **paths, int count, bool all_frames)
{
    json_t *index = json_array();
    int done = 0, status = -1;

    ms_html_page_begin(out);
    while (index && done < count && put_report(out, paths[done], all_frames, index) == 0)
        done++;
    if (index && done == count && (status = ms_html_page_end(out, index)) < 0)
        ms_cli_error("no memory for the page");
    json_decref(index);
    return status;
}

int ms_cmd_html(int argc, char **argv)
{
    struct ms_cli_stacks options = {.all_frames = false};
    int first = ms_cli_parse(argc, argv, false, take, &options);
    FILE *out;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim html REPORT... -o PAGE.html");
        return MS_EXIT_USAGE;
    }
    if (!options.printing.output && isatty(STDOUT_FILENO)) {
        ms_cli_error("a page is nothing for a terminal; give -o PAGE.html");
        return MS_EXIT_USAGE;
    }
    out = ms_cli_open_output(options.printing.output, options.printing.force);
    if (!out)
        return MS_EXIT_USAGE;
    if (put_page(out, argv + first, argc - first, options.all_frames) == 0)
        return ms_cli_close_output(out);
    ms_cli_discard_output(out);
    return MS_EXIT_USAGE;
}
