/* run_reports.c - the reports that a run left behind; see run_reports.h.
 *
 * Floor 5. A directory may hold reports of other runs, of other users, and whatever somebody put there to be
 * taken for one. A report is the run's if the file is this user's own and says the number that the run drew
 * and told nobody but its own processes. */
#include "cli/run/run_reports.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/screens/suppress.h"
#include "report/write/report.h"
#include "report/symbols/symbols.h"
#include "report/text/text.h"
#include "report/analyse/analyse.h"
#include "trace/reader.h"

char *ms_reports_pattern(enum ms_option_id id)
{
    const char *text = ms_option_text(id), *c;
    char *directory, *pattern, *p;

    if (!*text || !strcmp(text, "none"))
        return NULL;
    if (*text == '/')
        return strdup(text);
    directory = getcwd(NULL, 0);
    pattern = directory ? malloc(2 * strlen(directory) + strlen(text) + 2) : NULL;
    if (pattern) {
        for (p = pattern, c = directory; *c; c++) {
            if (*c == '%')
                *p++ = '%';
            *p++ = *c;
        }
        *p++ = '/';
        strcpy(p, text);
    }
    free(directory);
    return pattern;
}

/* A file name pattern for glob(3): what is known is put in, what is not becomes a star. `process` "" stands
 * for any. *exact_p says that no star was needed. */
static char *glob_pattern(const char *pattern, const char *process, bool *exact_p)
{
    char host[256] = "";
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    const char *c;

    if (!out)
        return NULL;
    gethostname(host, sizeof(host) - 1);
    *exact_p = true;
    for (c = pattern; *c; c++) {
        if (*c == '%' && c[1] == 'h') {
            fputs(host, out);
            c++;
        } else if (*c == '%' && c[1] == 'p' && *process) {
            fputs(process, out);
            c++;
        } else if (*c == '%' && c[1] && strchr("preR", c[1])) {
            fputc('*', out);
            *exact_p = false;
            c++;
        } else {
            if (*c == '%' && c[1] == '%')
                c++;
            fprintf(out, "%s%c", strchr("*?[\\", *c) ? "\\" : "", *c);
        }
    }
    fclose(out);
    return text;
}

/* A name with a star in the place where ms_file_number() puts a number. `to` has room for three bytes
 * more. */
static void insert_star(const char *text, char *to)
{
    const char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text, *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - text) : strlen(text);

    sprintf(to, "%.*s.*%s", (int)stem, text, text + stem);
}

/* The backslashes that keep glob(3) from reading a plain name as a pattern, taken out again. */
static void unescape(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        *to++ = *text;
    }
    *to = '\0';
}

char *ms_reports_fixed_path(const char *pattern)
{
    bool exact;
    char *path = glob_pattern(pattern, "", &exact);

    if (path && !exact) {
        free(path);
        return NULL;
    }
    if (path)
        unescape(path);
    return path;
}

/* A number behind the name, as children of the program have it. */
void ms_reports_compress_traces(const char *pattern, const struct ms_program_run *run, bool is_complete)
{
    bool exact;
    char *name = glob_pattern(pattern, "", &exact), *numbered = NULL;
    glob_t found = {.gl_pathc = 0};

    if (!name || asprintf(&numbered, "%s.*", name) < 0) {
        free(name);
        return;
    }
    if (glob(name, GLOB_NOSORT, NULL, &found) == 0 || found.gl_pathc == 0)
        glob(numbered, GLOB_NOSORT | GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (ms_trace_compress(found.gl_pathv[i], run->id, is_complete) < 0)
            ms_cli_note("%s is not compressed: %s", found.gl_pathv[i], strerror(errno));
    globfree(&found);
    free(numbered);
    free(name);
}

int ms_reports_begin(struct ms_program_run *run_p)
{
    struct timespec now;
    char text[24];

    clock_gettime(CLOCK_REALTIME, &now);
    run_p->since_unix_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    do {
        if (getrandom(&run_p->id, sizeof(run_p->id), 0) != (ssize_t)sizeof(run_p->id)) {
            ms_cli_error("no random number for this run: %s", strerror(errno));
            return -1;
        }
        run_p->id &= INT64_MAX;
    } while (!run_p->id);
    snprintf(text, sizeof(text), "%" PRIu64, run_p->id);
    if (setenv("MEMSHIM_RUN", text, 1) < 0) {
        ms_cli_error("out of memory");
        return -1;
    }
    ms_run_list_make(run_p->id, run_p->list);
    return 0;
}

void ms_reports_end(const struct ms_program_run *run)
{
    if (*run->list)
        unlink(run->list);
}

/* Times of files may be a tick coarser than the clock. */
bool ms_reports_is_older(const struct stat *st, int64_t unix_ns)
{
    const int64_t tick_ns = 100000000;

    return st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec < unix_ns - tick_ns;
}

/* True if a report says that it is of the run with this number; one without a number is of none. */
static bool is_of_run(const struct ms_report *report, const char *id)
{
    return *id && !strcmp(ms_report_text(json_object_get(report->root, "run"), "id"), id);
}

/* The program itself: after an exec it is the one that came last. */
static bool is_program(const struct ms_report *report, pid_t pid)
{
    json_t *run = json_object_get(report->root, "run");

    return ms_report_int(run, "pid") == pid && strcmp(ms_report_text(run, "end_reason"), "exec") != 0;
}

static void run_reports_add(struct ms_reports *outcome, const char *path, const struct ms_run_report *found,
                            pid_t pid)
{
    struct ms_run_report *grown = realloc(outcome->found, (outcome->count + 1) * sizeof(*grown));
    char *copy = strdup(path);
    size_t last = outcome->count;

    if (grown)
        outcome->found = grown;
    if (!grown || !copy) {
        struct ms_report dropped = found->report;

        ms_report_close(&dropped);
        free(copy);
        ms_cli_error("out of memory: %s is left out", path);
        return;
    }
    grown[last] = *found;
    grown[last].path = copy;
    outcome->count++;
    if (!outcome->own && is_program(&found->report, pid)) {
        struct ms_run_report first = grown[0];

        outcome->own = true;
        grown[0] = grown[last];
        grown[last] = first;
    }
}

static void consider(struct ms_reports *outcome, const char *path, const struct ms_program_run *run,
                     pid_t pid)
{
    struct ms_run_report found = {.path = NULL};
    char error[4608], id[24];
    struct stat st;
    int fd = ms_file_open_own(path, &st);

    if (fd < 0)
        return;
    if (ms_reports_is_older(&st, run->since_unix_ns)) {
        close(fd);
        return;
    }
    snprintf(id, sizeof(id), MS_RUN_ID_FORMAT, run->id);
    if (ms_report_read_fd(fd, path, &found.report, error, sizeof(error)) < 0) {
        ms_cli_note("%s; it is not counted", error);
        return;
    }
    found.mode = st.st_mode & 0666;
    if (is_of_run(&found.report, id))
        run_reports_add(outcome, path, &found, pid);
    else
        ms_report_close(&found.report);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The files that a name may have become: itself, and with a number in it. */
static void match(const char *text, glob_t *matches)
{
    char *numbered = malloc(strlen(text) + 3);

    if (!numbered)
        return;
    insert_star(text, numbered);
    glob(text, matches->gl_pathv ? GLOB_APPEND : 0, NULL, matches);
    glob(numbered, matches->gl_pathv ? GLOB_APPEND : 0, NULL, matches);
    free(numbered);
}

/* A path as a pattern that is matched by itself alone. */
static void match_path(const char *path, glob_t *matches)
{
    char *text = malloc(2 * strlen(path) + 1), *to = text;

    for (; text && *path; *to++ = *path++) {
        if (strchr("*?[\\", *path))
            *to++ = '\\';
    }
    if (text) {
        *to = '\0';
        match(text, matches);
    }
    free(text);
}

static void run_reports_sort(glob_t *matches)
{
    if (matches->gl_pathc)
        qsort(matches->gl_pathv, matches->gl_pathc, sizeof(char *), compare_paths);
}

/* Reports that the processes of the run have put on its list, if they are not among the matches. The list is
 * a file of this user's. */
static void match_listed(const struct ms_program_run *run, glob_t *matches)
{
    struct stat st;
    int fd = *run->list ? ms_file_open_own(run->list, &st) : -1;
    FILE *list = fd >= 0 ? fdopen(fd, "r") : NULL;
    size_t known = matches->gl_pathc, bytes = 0;
    char *path = NULL;

    if (!list && fd >= 0)
        close(fd);
    while (list && getdelim(&path, &bytes, '\0', list) > 0) {
        if (*path == '/' &&
            !(known && bsearch(&path, matches->gl_pathv, known, sizeof(char *), compare_paths)))
            match_path(path, matches);
    }
    free(path);
    if (list)
        fclose(list);
}

void ms_reports_find(const char *pattern, const struct ms_program_run *run, pid_t pid,
                     struct ms_reports *outcome_p)
{
    glob_t matches = {.gl_pathc = 0};
    bool exact;
    char *text = glob_pattern(pattern, "", &exact);
    size_t i;

    *outcome_p = (struct ms_reports){NULL, 0, false};
    if (text)
        match(text, &matches);
    run_reports_sort(&matches);
    match_listed(run, &matches);
    run_reports_sort(&matches);
    for (i = 0; i < matches.gl_pathc; i++)
        if (!i || strcmp(matches.gl_pathv[i], matches.gl_pathv[i - 1]))
            consider(outcome_p, matches.gl_pathv[i], run, pid);
    globfree(&matches);
    free(text);
}

/* The number of the run that a report is of, into `id` of 24 bytes; "" for none, or for what is no report. */
static void read_run_id(const char *path, char *id)
{
    struct ms_report report;
    char error[4608];
    struct stat st;
    int fd = ms_file_open_own(path, &st);

    *id = '\0';
    if (fd < 0 || ms_report_read_fd(fd, path, &report, error, sizeof(error)) < 0)
        return;
    snprintf(id, 24, "%s", ms_report_text(json_object_get(report.root, "run"), "id"));
    ms_report_close(&report);
}

int ms_reports_remove(const char *path)
{
    char id[24], other[24], numbered[PATH_MAX];
    unsigned i;

    read_run_id(path, id);
    if (unlink(path) < 0)
        return -1;
    for (i = 2; *id && i <= MS_FILE_NUMBERS; i++) {
        if (ms_file_number(path, i, numbered, sizeof(numbered)) < 0)
            break;
        read_run_id(numbered, other);
        if (strcmp(other, id) != 0 || unlink(numbered) < 0)
            break;
    }
    return 0;
}

static void note_module(void *arg, const char *line)
{
    (void)arg;
    ms_cli_note("%s", line);
}

void ms_reports_symbolize(struct ms_reports *outcome)
{
    struct ms_symbol_places places = {NULL, NULL};
    struct ms_symbols_result result;
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        struct ms_report *report = &outcome->found[i].report;

        if (ms_report_bool(json_object_get(report->root, "run"), "symbolized")) {
            ms_report_annotate(report, NULL);
            continue;
        }
        ms_symbols_resolve(report, &places, note_module, NULL, &result);
        ms_report_annotate(report, NULL);
        ms_suppress_apply(report);
        ms_reports_store(outcome->found[i].path, outcome->found[i].mode, report);
    }
}

void ms_reports_free(struct ms_reports *outcome)
{
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        ms_report_close(&outcome->found[i].report);
        free(outcome->found[i].path);
        free(outcome->found[i].title);
    }
    free(outcome->found);
}

static int dump_row(FILE *out, const json_t *row, bool first)
{
    if (fputs(first ? "\n" : ",\n", out) < 0)
        return -1;
    return ms_text_json(out, row, JSON_COMPACT | JSON_ENCODE_ANY);
}

static int dump_member(FILE *out, const json_t *value)
{
    json_t *row;
    size_t i;

    if (!json_is_array(value))
        return ms_text_json(out, value, JSON_COMPACT | JSON_ENCODE_ANY);
    fputc('[', out);
    json_array_foreach (value, i, row)
        if (dump_row(out, row, i == 0) < 0)
            return -1;
    return fputs(json_array_size(value) ? "\n]" : "]", out) < 0 ? -1 : 0;
}

int ms_reports_dump_members(FILE *out, const struct ms_report *report)
{
    bool first = true;
    const char *name;
    json_t *value;

    fputc('{', out);
    json_object_foreach (report->root, name, value) {
        json_t *key = json_string(name);

        if (!key || dump_row(out, key, first) < 0 || fputs(": ", out) < 0 || dump_member(out, value) < 0) {
            json_decref(key);
            return -1;
        }
        json_decref(key);
        first = false;
    }
    return 0;
}

int ms_reports_dump(FILE *out, const struct ms_report *report)
{
    return ms_reports_dump_members(out, report) < 0 || fputs("\n}\n", out) < 0 ? -1 : 0;
}

int ms_reports_store(const char *path, mode_t mode, const struct ms_report *report)
{
    FILE *out = ms_cli_open_placed(path, mode, MS_FILE_REPLACE);

    if (!out)
        return -1;
    if (ms_reports_dump(out, report) < 0) {
        ms_cli_error("cannot write %s: %s", path, strerror(errno));
        ms_cli_discard_output(out);
        return -1;
    }
    return ms_cli_close_output(out) == MS_EXIT_OK ? 0 : -1;
}
