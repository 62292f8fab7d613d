/* outcome.c - the reports that a run left behind; see outcome.h.
 *
 * Floor 5. A report is recognised by what it says (process, host, time), not by its name alone: an old file
 * of the same name, or another run's in the same directory, is none of ours. */
#include "cli/outcome.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/cli.h"
#include "cli/suppress.h"
#include "report/symbols.h"

char *ms_outcome_pattern(enum ms_option_id id)
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
        } else if (*c == '%' && c[1] && strchr("pre", c[1])) {
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

char *ms_outcome_fixed_path(const char *pattern)
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

static void consider(struct ms_outcome *outcome, const char *path, pid_t pid, int64_t since_unix_ns)
{
    struct ms_found *grown, found;
    char error[4608];
    struct stat st;
    json_t *run;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_mtim.tv_sec < since_unix_ns / 1000000000)
        return;
    if (ms_report_read(path, &found.report, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return;
    }
    run = json_object_get(found.report.root, "run");
    grown = ms_report_int(run, "start_unix_ns") >= since_unix_ns
                ? realloc(outcome->found, (outcome->count + 1) * sizeof(*grown))
                : NULL;
    found.path = grown ? strdup(path) : NULL;
    if (grown)
        outcome->found = grown;
    if (!found.path) {
        ms_report_close(&found.report);
        return;
    }
    outcome->found[outcome->count++] = found;
    if (!outcome->own && ms_report_int(run, "pid") == pid) {
        outcome->own = true;
        outcome->found[outcome->count - 1] = outcome->found[0];
        outcome->found[0] = found;
    }
}

void ms_outcome_find(const char *pattern, pid_t pid, int64_t since_unix_ns, struct ms_outcome *outcome_p)
{
    glob_t matches;
    bool exact;
    char *text = glob_pattern(pattern, "", &exact);
    size_t i;

    *outcome_p = (struct ms_outcome){NULL, 0, false};
    if (text && glob(text, 0, NULL, &matches) == 0) {
        for (i = 0; i < matches.gl_pathc; i++)
            consider(outcome_p, matches.gl_pathv[i], pid, since_unix_ns);
        globfree(&matches);
    }
    free(text);
}

static void note_module(void *arg, const char *line)
{
    (void)arg;
    ms_cli_note("%s", line);
}

void ms_outcome_symbolize(struct ms_outcome *outcome)
{
    struct ms_symbol_places places = {NULL, NULL};
    struct ms_symbols_result result;
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        struct ms_report *report = &outcome->found[i].report;

        if (ms_report_bool(json_object_get(report->root, "run"), "symbolized"))
            continue;
        ms_symbols_resolve(report, &places, note_module, NULL, &result);
        ms_suppress_apply(report);
        ms_outcome_store(outcome->found[i].path, report);
    }
}

void ms_outcome_free(struct ms_outcome *outcome)
{
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        ms_report_close(&outcome->found[i].report);
        free(outcome->found[i].path);
    }
    free(outcome->found);
}

static int dump_row(FILE *out, const json_t *row, bool first)
{
    if (fputs(first ? "\n" : ",\n", out) < 0)
        return -1;
    return json_dumpf(row, out, JSON_COMPACT | JSON_ENCODE_ANY);
}

static int dump_member(FILE *out, const json_t *value)
{
    json_t *row;
    size_t i;

    if (!json_is_array(value))
        return json_dumpf(value, out, JSON_COMPACT | JSON_ENCODE_ANY);
    fputc('[', out);
    json_array_foreach (value, i, row)
        if (dump_row(out, row, i == 0) < 0)
            return -1;
    return fputs(json_array_size(value) ? "\n]" : "]", out) < 0 ? -1 : 0;
}

int ms_outcome_dump(FILE *out, const struct ms_report *report)
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
    return fputs("\n}\n", out) < 0 ? -1 : 0;
}

int ms_outcome_store(const char *path, const struct ms_report *report)
{
    struct stat st;
    bool known = stat(path, &st) == 0;
    FILE *out = ms_cli_open_output(path, true);

    if (!out)
        return -1;
    if (ms_outcome_dump(out, report) < 0) {
        ms_cli_error("cannot write %s: %s", path, strerror(errno));
        ms_cli_discard_output(out);
        return -1;
    }
    if (ms_cli_close_output(out) != MS_EXIT_OK)
        return -1;
    if (known && chmod(path, st.st_mode & 07777) < 0)
        ms_cli_note("cannot restore the mode of %s: %s", path, strerror(errno));
    return 0;
}
