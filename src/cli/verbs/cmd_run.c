/* cmd_run.c - memshim run: a program under memshim, its report, and what to do next.
 *
 * Floor 5. The program's own status is the command's, unless memshim fails before it runs or a condition was
 * asked for. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/check/check.h"
#include "cli/run/child.h"
#include "cli/cli.h"
#include "cli/run/run_summary.h"
#include "cli/run/displaced.h"
#include "cli/doctor/doctor.h"
#include "cli/live/job_ledgers.h"
#include "cli/live/ledgers.h"
#include "cli/run/host.h"
#include "cli/run/run_reports.h"
#include "cli/run/preload.h"
#include "cli/run/see_through.h"
#include "cli/screens/suppress.h"
#include "report/analyse/leak_class.h"
#include "report/text/text.h"

/* The leaks that --fail-on-leak allows of all processes together. */
struct ms_leak_gate {
    bool all;       /* of all that counts as leaked */
    uint64_t bytes; /* so much of that */
    struct {
        bool given;
        uint64_t bytes;
    } of[MS_LEAK_CONTEXT + 1]; /* and so much of one class */
};

struct run_options {
    bool sim, force, quiet, fail_on_leak, see_through;
    struct ms_leak_gate leaks;
    long error_code;
    const char *mode, *output, *trace, *config, *baseline, *merged;
    struct ms_check_rules rules;
    struct ms_host node;
};

/* True if anything is to hold at the end. */
static bool has_gate(const struct run_options *options)
{
    return options->fail_on_leak || ms_check_has_rules(&options->rules);
}

/* How lines call what was asked for. */
static const char *gate_name(const struct run_options *options)
{
    return options->fail_on_leak ? "--fail-on-leak" : "--fail-on-...";
}

static int take_leak(struct run_options *options, const char *value)
{
    size_t length = value ? strcspn(value, "=") : 0;
    enum ms_leak_class class = value ? ms_leak_class_find(value, length) : MS_LEAK_CLASSES;

    options->fail_on_leak = true;
    if (class <= MS_LEAK_CONTEXT) {
        options->leaks.of[class].given = true;
        return value[length]
                   ? ms_cli_size("--fail-on-leak", value + length + 1, &options->leaks.of[class].bytes)
                   : 0;
    }
    options->leaks.all = true;
    if (value && length != strlen(value)) {
        ms_cli_error("--fail-on-leak '%s': before the = may stand growing, lost, held, interrupted, context",
                     value);
        return -1;
    }
    return value ? ms_cli_size("--fail-on-leak", value, &options->leaks.bytes) : 0;
}

/* True if `word` is one of the words in "a|b|c". */
static bool is_one_of(const char *word, const char *words)
{
    size_t length = strlen(word);

    for (;; words++) {
        size_t next = strcspn(words, "|");

        if (next == length && !strncmp(words, word, length))
            return true;
        words += next;
        if (!*words)
            return false;
    }
}

static int take_mode(struct run_options *options, const char *value)
{
    const char *allowed = ms_option_info(MS_OPT_MODE)->values;

    options->mode = value;
    if (is_one_of(value, allowed))
        return 0;
    ms_cli_error("--mode '%s' is not allowed: one of %s", value, allowed);
    return -1;
}

static int take_file(const char *option, const char *value, const char **file_p)
{
    *file_p = value;
    if (*value && strcmp(value, "-"))
        return 0;
    ms_cli_error("%s '%s': needs the name of a file; standard output is the program's", option, value);
    return -1;
}

/* The program may change its directory before its processes read the file. */
static int take_config(struct run_options *options, const char *value)
{
    static char path[PATH_MAX];

    options->config = realpath(value, path);
    if (options->config)
        return 0;
    ms_cli_error("--config '%s' cannot be read: %s", value, strerror(errno));
    return -1;
}

static int run_take(void *arg, int id, const char *value)
{
    struct run_options *options = arg;

    switch (id) {
    case 's':
        options->sim = true;
        return 0;
    case 'f':
        options->force = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case 'c':
        options->see_through = true;
        return 0;
    case 'a':
        ms_text_show_all_frames();
        return 0;
    case 'o':
        return take_file("--output", value, &options->output);
    case 't':
        return take_file("--trace", value, &options->trace);
    case 'C':
        return take_config(options, value);
    case 'm':
        return take_mode(options, value);
    case 'l':
        return take_leak(options, value);
    case 'P':
        return ms_check_take_limit(&options->rules, MS_CHECK_PEAK, "--fail-on-peak", value);
    case 'G':
        return ms_check_take_limit(&options->rules, MS_CHECK_GROWTH, "--fail-on-growth", value);
    case 'F':
        return ms_check_take_limit(&options->rules, MS_CHECK_FRAG, "--fail-on-frag", value);
    case 'R':
        return ms_check_take_limit(&options->rules, MS_CHECK_RESERVED, "--fail-on-reserved", value);
    case 'O':
        return ms_check_take_limit(&options->rules, MS_CHECK_OOM, "--fail-on-oom", value ? value : "0");
    case 'B':
        options->baseline = value;
        return 0;
    case 'M':
        return take_file("--merge-node", value, &options->merged);
    default:
        return ms_cli_number("--error-exitcode", value, 1, 255, &options->error_code);
    }
}

/* Absolute; NULL for none. */
struct patterns {
    char *report, *trace;
};

/* Options become variables, and then all variables are checked alike. Returns an exit status, 0 for good. */
static int set_variables(const struct run_options *options, struct patterns *patterns)
{
    char **pattern_p = &patterns->report;

    if ((options->config && setenv("MEMSHIM_CONFIG", options->config, 1) < 0) ||
        (options->mode && setenv("MEMSHIM_MODE", options->mode, 1) < 0) ||
        (options->output && setenv("MEMSHIM_REPORT", options->output, 1) < 0) ||
        (options->trace && setenv("MEMSHIM_TRACE", options->trace, 1) < 0))
        return MS_EXIT_FAILED;
    if (ms_preload_check_options())
        return MS_EXIT_USAGE;
    if (!strcmp(ms_option_text(MS_OPT_REPORT), "-")) {
        ms_cli_error(
            "MEMSHIM_REPORT is -: standard output is the program's, and is not read back; give -o FILE");
        return MS_EXIT_USAGE;
    }
    *pattern_p = ms_reports_pattern(MS_OPT_REPORT);
    patterns->trace = ms_reports_pattern(MS_OPT_TRACE);
    if ((*pattern_p && setenv("MEMSHIM_REPORT", *pattern_p, 1) < 0) ||
        (patterns->trace && setenv("MEMSHIM_TRACE", patterns->trace, 1) < 0))
        return MS_EXIT_FAILED;
    if (patterns->trace && *pattern_p && !strcmp(patterns->trace, *pattern_p)) {
        ms_cli_error("the report and the trace would both be %s", patterns->trace);
        return MS_EXIT_USAGE;
    }
    if (options->trace && ms_option_int(MS_OPT_MODE) == MS_MODE_OFF) {
        ms_cli_error("--trace needs the program to be followed, and mode off does not");
        return MS_EXIT_USAGE;
    }
    if (has_gate(options) && (!*pattern_p || ms_option_int(MS_OPT_MODE) == MS_MODE_OFF)) {
        ms_cli_error("%s needs a report, and %s says there is none", gate_name(options),
                     *pattern_p ? "mode off" : "MEMSHIM_REPORT=none");
        return MS_EXIT_USAGE;
    }
    return MS_EXIT_OK;
}

/* A directory that cannot be written to is better known before a long run than after it. */
static int check_directory(const char *what, const char *pattern)
{
    const char *slash = strrchr(pattern, '/');
    char *directory = slash ? strndup(pattern, (size_t)(slash - pattern) + 1) : strdup(".");
    char *path = directory ? ms_reports_fixed_path(directory) : NULL;
    int status = MS_EXIT_OK;

    if (path && access(path, W_OK | X_OK) < 0) {
        ms_cli_error("no %s can be written in %s: %s", what, path, strerror(errno));
        status = MS_EXIT_USAGE;
    }
    free(directory);
    free(path);
    return status;
}

/* An old report or trace under the name would be taken for this run's if the program wrote none. */
static int clear_way(const char *what, const char *pattern, bool force)
{
    char *path = pattern ? ms_reports_fixed_path(pattern) : NULL;
    struct stat st;
    int status = pattern ? check_directory(what, pattern) : MS_EXIT_OK;

    if (!status && path && lstat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode)) {
            ms_cli_error("%s exists and is no regular file; a %s cannot go there", path, what);
            status = MS_EXIT_USAGE;
        } else if (!force) {
            ms_cli_error("%s exists; give -f to replace it", path);
            status = MS_EXIT_USAGE;
        } else if (ms_reports_remove(path) < 0) {
            ms_cli_error("cannot replace %s: %s", path, strerror(errno));
            status = MS_EXIT_FAILED;
        }
    }
    free(path);
    return status;
}

static bool is_more(json_int_t leaked, uint64_t allowed, const char *class)
{
    if (leaked <= 0 || (uint64_t)leaked <= allowed)
        return false;
    ms_cli_error("leaked %s%s%s, allowed %s", ms_text_size(leaked).text, *class ? ", " : "", class,
                 ms_text_size((json_int_t)allowed).text);
    return true;
}

/* 0, or the error exit code after a line. */
static int gate_leaks(const struct run_options *options, const struct ms_reports *outcome)
{
    struct ms_leak_sums sums = {.of = {{0, 0, 0}}};
    bool failed;
    json_t *leak;

    for (size_t i = 0, k; i < outcome->count; i++)
        json_array_foreach (ms_report_array(outcome->found[i].report.root, "leaks"), k, leak)
            ms_leak_sums_add(&sums, leak);
    failed = options->leaks.all && is_more(ms_leak_sums_leaked(&sums).bytes, options->leaks.bytes, "");
    for (unsigned class = 0; class <= MS_LEAK_CONTEXT && !failed; class ++)
        failed = options->leaks.of[class].given &&
                 is_more(sums.of[class].bytes, options->leaks.of[class].bytes, ms_leak_class_text(class));
    if (!failed)
        return 0;
    ms_closing_leaks(outcome);
    return (int)options->error_code;
}

static void print_failed(const struct ms_check_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct ms_check_result *result = &results->rows[i];
        char *message = ms_check_message(result), *line = ms_check_line(result);

        if (!result->held)
            ms_cli_error("%s: %s%s%s%s%s", result->path, message ? message : "?", line ? "; " : "",
                         line ? ms_text_size(result->measure.site_bytes).text : "", line ? " by " : "",
                         line ? line : "");
        free(message);
        free(line);
    }
}

/* The limits of memshim check, on each process by itself. 0, or a status after a line. */
static int gate_limits(struct run_options *options, const struct ms_reports *outcome)
{
    struct ms_check_results results = {.rows = NULL};
    int status = 0;

    for (size_t i = 0; i < outcome->count && !status; i++)
        if (ms_check_report(&options->rules, ms_reports_title(&outcome->found[i]), &outcome->found[i].report,
                            &results) < 0)
            status = MS_EXIT_FAILED;
    if (!status && results.failed) {
        print_failed(&results);
        status = (int)options->error_code;
    }
    if (!status && outcome->count && ms_check_all_met(&options->rules) < 0)
        status = MS_EXIT_FAILED;
    ms_check_results_free(&results);
    return status;
}

/* The program's failure is worth more than ours: its status stands. A gate that could not look does not
 * pass. */
static int gate(struct run_options *options, const struct ms_reports *outcome,
                const struct ms_ledgers_left *left, const struct ms_child *child)
{
    int status;

    if (child->status || !has_gate(options))
        return child->status;
    status = options->fail_on_leak ? gate_leaks(options, outcome) : 0;
    if (!status && ms_check_has_rules(&options->rules))
        status = gate_limits(options, outcome);
    if (status)
        return status;
    if (outcome->count && !left->failed)
        return child->status;
    ms_cli_error(outcome->count ? "%s: not every process has a report to look at"
                                : "%s: there is no report to look at",
                 gate_name(options));
    return MS_EXIT_FAILED;
}

/* Obstacles are told, and do not forbid the run. False if the library cannot be loaded: then the program runs
 * as it would without this command. */
static bool can_follow(const char *path, bool sim)
{
    json_t *program = ms_doctor_program(path, sim, false), *line;
    bool loadable = !ms_report_bool(program, "unreachable");
    size_t i;

    json_array_foreach (json_object_get(program, "obstacles"), i, line)
        ms_cli_note("%s", json_string_value(line));
    if (!loadable)
        ms_cli_note("it runs without memshim, and nothing of it will be seen");
    json_decref(program);
    return loadable;
}

/* A program that the library cannot be loaded into. */
static int run_alone(const struct run_options *options, const char *path, char **argv)
{
    struct ms_child child = {0};
    int status = ms_child_run(path, argv, &child);

    if (status || child.status || !has_gate(options))
        return status ? status : child.status;
    ms_cli_error("%s: nothing was checked: memshim cannot be loaded into %s", gate_name(options), argv[0]);
    return MS_EXIT_FAILED;
}

static int run_follow(struct run_options *options, const char *path, char **argv,
                      const struct patterns *patterns)
{
    struct ms_reports outcome = {NULL, 0, false};
    struct ms_ledgers_left left = {0, 0};
    struct ms_child child = {0};
    struct ms_program_run run;
    const char *pattern = patterns->report;
    char *displaced;
    int status;

    if (!can_follow(path, options->sim))
        return run_alone(options, path, argv);
    if (options->see_through && ms_see_through_set(options->quiet) < 0)
        return MS_EXIT_FAILED;
    if (ms_option_int(MS_OPT_MODE) != MS_MODE_OFF &&
        (ms_preload_set_nvtx(options->quiet) < 0 || ms_preload_set_python() < 0))
        return MS_EXIT_FAILED;
    if (ms_preload_set(options->sim, path, options->quiet) < 0 || ms_reports_begin(&run) < 0)
        return MS_EXIT_FAILED;
    displaced = options->sim ? ms_displaced_begin() : NULL;
    status = ms_child_run(path, argv, &child);
    if (!status && !options->quiet)
        ms_displaced_print(displaced);
    ms_displaced_end(displaced);
    if (status) {
        ms_reports_end(&run);
        return status;
    }
    if (pattern && ms_option_int(MS_OPT_MODE) != MS_MODE_OFF) {
        ms_ledgers_complete(&run, &child, &left);
        ms_reports_find(pattern, &run, child.pid, &outcome);
        ms_reports_symbolize(&outcome);
        if (!options->quiet && !options->node.directory)
            ms_closing_print(&outcome, &left, &child, argv[0], options->sim);
        ms_job_ledgers_tell(&run, options->node.directory ? options->node.path : pattern, options->quiet);
    }
    if (patterns->trace)
        ms_reports_compress_traces(patterns->trace, &run, pattern && !left.failed);
    ms_reports_end(&run);
    ms_host_name(&options->node, &outcome);
    status = gate(options, &outcome, &left, &child);
    if (options->node.path && ms_host_merge(&options->node, &outcome, options->force, options->quiet) < 0 &&
        !status)
        status = MS_EXIT_FAILED;
    ms_reports_free(&outcome);
    return status;
}

/* The place of the node's report is looked at before the program runs, like that of the program's own. An
 * exit status. */
static int begin_node(struct run_options *options)
{
    bool own = !options->output && !getenv("MEMSHIM_REPORT");
    int status = options->merged ? ms_host_begin(&options->node, options->merged, own) : MS_EXIT_OK;

    if (!status && options->merged)
        status = check_directory("job report", options->merged);
    if (!status && options->node.path && !options->force && access(options->node.path, F_OK) == 0) {
        ms_cli_error("%s exists; give -f to replace it", options->node.path);
        status = MS_EXIT_USAGE;
    }
    if (!status && options->node.pattern)
        options->output = options->node.pattern;
    return status;
}

int ms_cmd_run(int argc, char **argv)
{
    struct run_options options = {.error_code = MS_EXIT_LEAKED};
    int first = ms_cli_parse(argc, argv, true, run_take, &options), status;
    struct patterns patterns = {NULL, NULL};
    char *path = NULL;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no program given; usage: memshim run [OPTION...] [--] PROGRAM [ARGUMENT...]");
        return MS_EXIT_USAGE;
    }
    if (options.baseline && ms_check_baseline_read(options.baseline, &options.rules) < 0)
        return MS_EXIT_USAGE;
    status = begin_node(&options);
    if (!status)
        status = set_variables(&options, &patterns);
    if (!status)
        status = ms_child_find(argv[first], &path);
    if (!status && ms_suppress_load() < 0)
        status = MS_EXIT_USAGE;
    if (!status)
        status = clear_way("report", patterns.report, options.force);
    if (!status)
        status = clear_way("trace", patterns.trace, options.force);
    if (!status)
        status = run_follow(&options, path, argv + first, &patterns);
    free(patterns.report);
    free(patterns.trace);
    free(path);
    ms_check_rules_free(&options.rules);
    ms_host_end(&options.node);
    return status;
}
