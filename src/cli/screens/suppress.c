/* suppress.c - see suppress.h.
 *
 * Floor 5. */
#include "cli/screens/suppress.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "report/analyse/fold.h"

enum by { LEAK, CHAIN, HASH };

static const char *const kinds[] = {[LEAK] = "leak:", [CHAIN] = "chain:", [HASH] = "hash:"};

struct suppression {
    enum by by;
    char *template;    /* as it was written */
    char **globs;      /* for fnmatch; of a chain one for each frame, innermost first */
    json_int_t *lines; /* of each, the line in its file; -1: whichever */
    size_t glob_count;
    json_int_t bytes, count;
};

static struct suppression *list;
static size_t list_count;
static bool loaded;

/* The template as a glob: open at both ends unless it says otherwise, and nothing special but the star. */
static char *glob_of(const char *template)
{
    size_t length = strlen(template);
    bool from_start = *template == '^', to_end = length && template[length - 1] == '$';
    char *glob = malloc(2 * length + 3), *to = glob;

    if (!glob)
        return NULL;
    if (!from_start)
        *to++ = '*';
    for (const char *c = template + from_start; *c && !(to_end && !c[1]); c++) {
        if (strchr("?[]\\", *c))
            *to++ = '\\';
        *to++ = *c;
    }
    if (!to_end)
        *to++ = '*';
    *to = '\0';
    return glob;
}

/* The line of "^kv$:12", which is cut off; -1 without one. */
static json_int_t cut_line(char *template)
{
    char *colon = strrchr(template, ':');

    if (!colon || colon == template || !colon[1] || strlen(colon + 1) > 9 ||
        colon[1 + strspn(colon + 1, "0123456789")])
        return -1;
    *colon = '\0';
    return atoi(colon + 1);
}

/* "a <- b <- c" cut at its arrows. */
static int add_globs(struct suppression *suppression)
{
    const char *from = suppression->template;
    bool more = true;

    while (more) {
        const char *arrow = suppression->by == CHAIN ? strstr(from, MS_SUPPRESS_ARROW) : NULL;
        char **grown = realloc(suppression->globs, (suppression->glob_count + 1) * sizeof(*grown));
        json_int_t *lines = realloc(suppression->lines, (suppression->glob_count + 1) * sizeof(*lines));
        char *one = arrow ? strndup(from, (size_t)(arrow - from)) : strdup(from);

        suppression->globs = grown ? grown : suppression->globs;
        suppression->lines = lines ? lines : suppression->lines;
        if (grown && lines && one)
            lines[suppression->glob_count] = suppression->by == CHAIN ? cut_line(one) : -1;
        if (!grown || !lines || !one || !(grown[suppression->glob_count] = glob_of(one))) {
            free(one);
            return -1;
        }
        free(one);
        suppression->glob_count++;
        more = arrow != NULL;
        from = more ? arrow + strlen(MS_SUPPRESS_ARROW) : from;
    }
    return 0;
}

static int suppress_add(enum by by, const char *template)
{
    struct suppression *grown = realloc(list, (list_count + 1) * sizeof(*grown));

    if (!grown)
        return -1;
    list = grown;
    list[list_count] = (struct suppression){.by = by, .template = strdup(template)};
    if (!list[list_count].template || add_globs(&list[list_count]) < 0)
        return -1;
    list_count++;
    return 0;
}

/* Returns 0, or -1 after an error line. */
static int take_line(const char *path, int number, char *line)
{
    size_t length;
    unsigned by = LEAK;

    while (isspace((unsigned char)*line))
        line++;
    for (length = strlen(line); length && isspace((unsigned char)line[length - 1]);)
        line[--length] = '\0';
    if (!*line || *line == '#')
        return 0;
    while (by <= HASH && strncmp(line, kinds[by], strlen(kinds[by])))
        by++;
    if (by > HASH || !line[strlen(kinds[by])]) {
        ms_cli_error(
            "%s:%d: '%.60s' is no suppression; allowed: leak:TEMPLATE, chain:TEMPLATE[:LINE] <- ..., "
            "hash:HASH, comments with #",
            path, number, line);
        return -1;
    }
    if (suppress_add((enum by)by, line + strlen(kinds[by])) < 0) {
        ms_cli_error("out of memory");
        return -1;
    }
    return 0;
}

int ms_suppress_load(void)
{
    const char *path;
    char *line = NULL;
    size_t bytes = 0;
    int number = 0, result = 0;
    FILE *file;

    if (loaded)
        return 0;
    loaded = true;
    ms_options_load(environ, NULL, NULL);
    path = ms_option_text(MS_OPT_SUPPRESSIONS);
    if (!*path)
        return 0;
    file = fopen(path, "re");
    if (!file) {
        ms_cli_error("MEMSHIM_SUPPRESSIONS: cannot read %s: %s", path, strerror(errno));
        return -1;
    }
    while (result == 0 && getline(&line, &bytes, file) >= 0)
        result = take_line(path, ++number, line);
    if (ferror(file)) {
        ms_cli_error("MEMSHIM_SUPPRESSIONS: cannot read %s: %s", path, strerror(errno));
        result = -1;
    }
    fclose(file);
    free(line);
    return result;
}

static bool matches(const char *glob, const char *text)
{
    return *text && fnmatch(glob, text, 0) == 0;
}

static bool frame_matches(const struct ms_report *report, const char *glob, const json_t *frame)
{
    return matches(glob, ms_report_text(frame, "function")) || matches(glob, ms_report_text(frame, "file")) ||
           (json_object_get(frame, "module") &&
            matches(glob, ms_report_text(ms_report_module(report, ms_report_int(frame, "module")), "path")));
}

size_t ms_suppress_chain(const struct ms_report *report, json_int_t stack, const json_t **frames)
{
    size_t rows[MS_REPORT_DEPTH_MAX], chain = 0, i;
    unsigned any;
    size_t count = ms_fold_stack(report, stack, rows, &any);

    for (i = 0; i < count; i++) {
        unsigned known = ms_fold_of(report, rows[i]);

        if (known & MS_FOLD_INFERRED) /* what follows is of another moment */
            break;
        if (!(known & (MS_FOLD_MARK | MS_FOLD_STARTUP | MS_FOLD_FOLDED)))
            frames[chain++] = json_array_get(report->frames, rows[i]);
    }
    return chain;
}

static bool chain_matches(const struct ms_report *report, const struct suppression *chain,
                          const json_t *const *frames, size_t count)
{
    size_t i = 0;

    if (count != chain->glob_count)
        return false;
    while (i < count && frame_matches(report, chain->globs[i], frames[i]) &&
           (chain->lines[i] < 0 || chain->lines[i] == ms_report_int(frames[i], "line")))
        i++;
    return i == count;
}

static bool suppresses(const struct ms_report *report, const struct suppression *suppression,
                       const json_t *site, json_t *const *stack, size_t depth)
{
    const json_t *chain[MS_REPORT_DEPTH_MAX];
    size_t i = 0;

    switch (suppression->by) {
    case HASH:
        return !strcmp(suppression->template, ms_report_text(site, "hash"));
    case CHAIN:
        return chain_matches(report, suppression, chain,
                             ms_suppress_chain(report, ms_report_int(site, "stack"), chain));
    case LEAK:
    default:
        while (i < depth && !frame_matches(report, suppression->globs[0], stack[i]))
            i++;
        return i < depth;
    }
}

static struct suppression *suppress_find(const struct ms_report *report, const json_t *site)
{
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t depth = ms_report_stack(report, ms_report_int(site, "stack"), frames, MS_REPORT_DEPTH_MAX), k;

    for (k = 0; k < list_count; k++)
        if (suppresses(report, &list[k], site, frames, depth))
            return &list[k];
    return NULL;
}

/* Memory that was freed is no leak; that a suppressed site had grown is not told either. */
static size_t apply_to_grown(struct ms_report *report)
{
    json_t *site;
    size_t i, count = 0;

    json_array_foreach (report->sites, i, site) {
        if (ms_report_int(site, "grew_bytes") > 0 && suppress_find(report, site)) {
            json_object_del(site, "grew_bytes");
            count++;
        }
    }
    if (count)
        ms_report_changed(report);
    return count;
}

/* Rows of what is never used, or idle at the peak, are removed if their site is suppressed. */
static size_t apply_to_uses(const struct ms_report *report, const char *key)
{
    json_t *rows = json_object_get(json_object_get(report->root, "uses"), key);
    size_t count = 0;

    for (size_t i = json_array_size(rows); i-- > 0;) {
        const json_t *row = json_array_get(rows, i);
        if (suppress_find(report, ms_report_site(report, ms_report_int(row, "site"))) &&
            !json_array_remove(rows, i))
            count++;
    }
    return count;
}

size_t ms_suppress_apply(struct ms_report *report)
{
    json_t *leaks = ms_report_array(report->root, "leaks"), *leak;
    size_t i, count = 0;

    if (!list_count)
        return 0;
    json_array_foreach (leaks, i, leak) {
        struct suppression *suppression =
            suppress_find(report, ms_report_site(report, ms_report_int(leak, "site")));

        if (!suppression)
            continue;
        suppression->bytes += ms_report_int(leak, "bytes");
        suppression->count += ms_report_int(leak, "count");
        json_object_set_new(leak, "class", json_string("suppressed"));
        count++;
    }
    return count + apply_to_grown(report) + apply_to_uses(report, "idle") + apply_to_uses(report, "pinned");
}

void ms_suppress_note_used(void)
{
    size_t k;

    for (k = 0; k < list_count; k++)
        if (list[k].count)
            ms_cli_note("suppressed: %" JSON_INTEGER_FORMAT " blocks, %" JSON_INTEGER_FORMAT " bytes by %s%s",
                        list[k].count, list[k].bytes, kinds[list[k].by], list[k].template);
}
