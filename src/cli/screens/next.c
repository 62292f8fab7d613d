/* next.c - the command that says more of what matters most; see next.h.
 *
 * Floor 5. */
#include "cli/screens/next.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/analyse/leak_class.h"
#include "report/analyse/owners.h"
#include "report/read/layer.h"
#include "report/text/text.h"

/* The worst first. */
enum next { NEXT_OOM, NEXT_FINDINGS, NEXT_LEAKS, NEXT_SEE_THROUGH, NEXT_PEAK };

static const char *const verbs[] = {[NEXT_OOM] = "oom",
                                    [NEXT_FINDINGS] = "findings",
                                    [NEXT_LEAKS] = "leaks",
                                    [NEXT_SEE_THROUGH] = "run --see-through --",
                                    [NEXT_PEAK] = "peak"};

const char *ms_next_path(const char *path)
{
    char *directory = getcwd(NULL, 0);
    size_t length = directory ? strlen(directory) : 0;

    if (length > 1 && !strncmp(path, directory, length) && path[length] == '/')
        path += length + 1;
    free(directory);
    return path;
}

const json_t *ms_next_finding(const struct ms_report *report)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "findings"), i, row) {
        if (strcmp(ms_report_text(row, "rule"), "leak") &&
            strcmp(ms_report_text(row, "rule"), "out_of_memory") &&
            strcmp(ms_report_text(row, "severity"), "info"))
            return row;
    }
    return NULL;
}

/* True if the program itself has memory that grows or was lost, and not only libraries that keep what they
 * have. */
static bool leaks_itself(const struct ms_report *report)
{
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "leaks"), i, leak) {
        const json_t *site = ms_report_site(report, ms_report_int(leak, "site"));

        if (ms_leak_class_of(leak) <= MS_LEAK_LOST && !ms_owners_is_library(ms_report_text(site, "owner")))
            return true;
    }
    return false;
}

static enum next next_of(const struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run");

    if (ms_report_oom_count(report))
        return NEXT_OOM;
    if (ms_next_finding(report))
        return NEXT_FINDINGS;
    if (leaks_itself(report))
        return NEXT_LEAKS;
    /* If the rows are segments of a cache, a run that shows the tensors is next. */
    return !strcmp(ms_report_text(run, "view"), "segments") && !ms_report_has_inner(report) &&
                   json_array_size(json_object_get(run, "argv"))
               ? NEXT_SEE_THROUGH
               : NEXT_PEAK;
}

/* A path as a shell takes it for one word. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./%+:@,-=";

    if (*word && !word[strspn(word, plain)]) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word += strcspn(word, "'") + (*word == '\'')) {
        char *part = strndup(word, strcspn(word, "'"));

        ms_text_put(out, *word == '\'' ? "'\\''" : part ? part : "");
        free(part);
    }
    fputc('\'', out);
}

/* The command that was run. */
static void put_program(FILE *out, const struct ms_report *report)
{
    enum { WORDS = 8 };
    json_t *word;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(report->root, "run"), "argv"), i, word) {
        fputc(' ', out);
        if (i == WORDS) {
            fputs("...", out);
            break;
        }
        put_word(out, json_string_value(word) ? json_string_value(word) : "?");
    }
}

/* The files of the reports that this verb is for; one if they are many. */
static void put_files(FILE *out, enum next next, const struct ms_next_report *reports, size_t count)
{
    enum { NAMED = 8 };
    size_t wanted = 0, named = 0, i;

    for (i = 0; i < count; i++)
        wanted += next_of(reports[i].report) == next;
    for (i = 0; i < count; i++) {
        if (next_of(reports[i].report) != next || (named && wanted > NAMED))
            continue;
        fputc(' ', out);
        put_word(out, ms_next_path(reports[i].path));
        named++;
    }
}

void ms_next_print(FILE *out, const char *before, const struct ms_next_report *reports, size_t count)
{
    enum next next = NEXT_PEAK;
    size_t first = 0, i;

    for (i = 0; i < count; i++) {
        enum next one = next_of(reports[i].report);

        if (one < next) {
            next = one;
            first = i;
        }
    }
    fprintf(out, "%smemshim %s", before, verbs[next]);
    if (next == NEXT_SEE_THROUGH)
        put_program(out, reports[first].report);
    else
        put_files(out, next, reports, count);
    fputc('\n', out);
}
