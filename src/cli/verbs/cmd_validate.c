/* cmd_validate.c - memshim validate: reports held against themselves.
 *
 * Floor 5. */
#include "cli/cli.h"
#include "cli/load.h"
#include "report/analyse/consistent.h"
#include "report/read/read.h"
#include "report/text/text.h"

#define SHOWN_MAX 100 /* violations printed of one file; one mistake in a writer shows up in every row */

struct listener {
    const char *file;
    size_t count;
};

static int validate_take(void *arg, int id, const char *value)
{
    (void)value;
    if (id == 's')
        *(bool *)arg = true;
    return 0;
}

static void violation(void *arg, const char *path, const char *text)
{
    struct listener *listener = arg;

    if (++listener->count > SHOWN_MAX)
        return;
    ms_text_put(stdout, listener->file);
    fputs(": ", stdout);
    ms_text_put(stdout, path);
    fputc(' ', stdout);
    ms_text_put(stdout, text);
    fputc('\n', stdout);
}

static int validate(const char *path)
{
    struct listener listener = {path, 0};
    struct ms_report report;

    if (ms_cli_read(path, &report) < 0)
        return MS_EXIT_USAGE;
    ms_report_consistent(&report, violation, &listener);
    if (listener.count > SHOWN_MAX) {
        ms_text_put(stdout, path);
        printf(": and %zu more\n", listener.count - SHOWN_MAX);
    }
    ms_report_close(&report);
    return listener.count ? MS_EXIT_CONDITION : MS_EXIT_OK;
}

int ms_cmd_validate(int argc, char **argv)
{
    bool print_schema = false;
    int first = ms_cli_parse(argc, argv, false, validate_take, &print_schema), status = MS_EXIT_OK, one, i;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc && !print_schema) {
        ms_cli_error("no report given; usage: memshim validate FILE...");
        return MS_EXIT_USAGE;
    }
    if (print_schema)
        fputs(ms_report_schema, stdout);
    for (i = first; i < argc; i++) {
        one = validate(argv[i]);
        status = one > status ? one : status;
    }
    one = ms_cli_close_output(stdout);
    return one > status ? one : status;
}
