/* cmd_symbolize.c - memshim symbolize: a report with the names of its frames written in.
 *
 * Floor 5. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/run/run_reports.h"
#include "report/symbols/symbols.h"
#include "report/analyse/analyse.h"

struct symbolize_options {
    struct ms_cli_printing printing;
    struct ms_symbol_places places;
    char sysroot[PATH_MAX], debug_path[PATH_MAX];
};

/* Made absolute into `path`: libdwfl takes no other directory. */
static int take_directory(const char *option, const char *value, char *path, const char **directory_p)
{
    struct stat st;

    if (!realpath(value, path) || stat(path, &st) < 0) {
        ms_cli_error("%s '%s': %s", option, value, strerror(errno));
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        ms_cli_error("%s '%s' is not a directory", option, value);
        return -1;
    }
    *directory_p = path;
    return 0;
}

static int symbolize_take(void *arg, int id, const char *value)
{
    struct symbolize_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    if (id == 's')
        return take_directory("--sysroot", value, options->sysroot, &options->places.sysroot);
    return take_directory("--debug-path", value, options->debug_path, &options->places.debug_path);
}

static void note_module(void *arg, const char *line)
{
    (void)arg;
    ms_cli_note("%s", line);
}

/* A report of this user's keeps who may read it, and nothing else of its permissions. */
static mode_t mode_of(const char *path)
{
    struct stat st;

    ms_options_load(environ, NULL, NULL);
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() ? st.st_mode & 0666
                                                                                  : ms_file_mode();
}

/* Without -o the report is replaced by itself with names, which takes -f: nothing is overwritten without
 * it. */
static int symbolize_write_report(const char *path, const struct symbolize_options *options,
                                  const struct ms_report *report)
{
    FILE *out;

    if (!options->printing.output && strcmp(path, "-")) {
        if (!options->printing.force) {
            ms_cli_error("%s would be replaced; give -f for that, or -o FILE", path);
            return MS_EXIT_USAGE;
        }
        return ms_reports_store(path, mode_of(path), report) < 0 ? MS_EXIT_USAGE : MS_EXIT_OK;
    }
    out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (!out)
        return MS_EXIT_USAGE;
    if (ms_reports_dump(out, report) < 0) {
        ms_cli_error("cannot write %s: %s",
                     options->printing.output ? options->printing.output : "the output", strerror(errno));
        ms_cli_discard_output(out);
        return MS_EXIT_USAGE;
    }
    return ms_cli_close_output(out);
}

int ms_cmd_symbolize(int argc, char **argv)
{
    struct symbolize_options options = {0};
    struct ms_symbols_result result;
    struct ms_report report;
    int first = ms_cli_parse(argc, argv, false, symbolize_take, &options), status;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 1) {
        ms_cli_error("takes one report, got %d; usage: memshim symbolize [OPTION...] FILE", argc - first);
        return MS_EXIT_USAGE;
    }
    if (!options.printing.output && ms_cli_is_ledger(argv[first])) {
        ms_cli_error("%s is a ledger, which no report replaces; give -o FILE", argv[first]);
        return MS_EXIT_USAGE;
    }
    if (ms_cli_read(argv[first], &report) < 0)
        return MS_EXIT_USAGE;
    ms_symbols_resolve(&report, &options.places, note_module, NULL, &result);
    ms_cli_note_dangling(argv[first], &report, &result.astray);
    ms_report_annotate(&report, NULL);
    status = symbolize_write_report(argv[first], &options, &report);
    if (status == MS_EXIT_OK)
        ms_cli_note("%zu frames had no name; %zu have one now, %zu with file and line", result.frames,
                    result.resolved, result.lines);
    ms_report_close(&report);
    return status;
}
