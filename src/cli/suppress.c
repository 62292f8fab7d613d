/* suppress.c - see suppress.h.
 *
 * Floor 5. */
#include "cli/suppress.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/cli.h"

struct suppression {
    char *template; /* as it was written */
    char *glob;     /* for fnmatch */
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

static int add(const char *template)
{
    struct suppression *grown = realloc(list, (list_count + 1) * sizeof(*grown));

    if (!grown)
        return -1;
    list = grown;
    list[list_count] = (struct suppression){strdup(template), glob_of(template), 0, 0};
    if (!list[list_count].template || !list[list_count].glob)
        return -1;
    list_count++;
    return 0;
}

/* Returns 0, or -1 after an error line. */
static int take_line(const char *path, int number, char *line)
{
    size_t length;

    while (isspace((unsigned char)*line))
        line++;
    for (length = strlen(line); length && isspace((unsigned char)line[length - 1]);)
        line[--length] = '\0';
    if (!*line || *line == '#')
        return 0;
    if (strncmp(line, "leak:", 5) || !line[5]) {
        ms_cli_error("%s:%d: '%.60s' is no suppression; allowed: leak:TEMPLATE, comments with #", path,
                     number, line);
        return -1;
    }
    if (add(line + 5) < 0) {
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

static bool matches(const struct suppression *suppression, const char *text)
{
    return *text && fnmatch(suppression->glob, text, 0) == 0;
}

static struct suppression *find(const struct ms_report *report, const json_t *site)
{
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t depth = ms_report_stack(report, ms_report_int(site, "stack"), frames, MS_REPORT_DEPTH_MAX), i, k;

    for (k = 0; k < list_count; k++)
        for (i = 0; i < depth; i++) {
            const json_t *module = ms_report_module(report, ms_report_int(frames[i], "module"));

            if (matches(&list[k], ms_report_text(frames[i], "function")) ||
                matches(&list[k], ms_report_text(frames[i], "file")) ||
                (json_object_get(frames[i], "module") && matches(&list[k], ms_report_text(module, "path"))))
                return &list[k];
        }
    return NULL;
}

/* What was freed is no leak; that it had grown is not told either. */
static size_t apply_to_grown(struct ms_report *report)
{
    json_t *site;
    size_t i, count = 0;

    json_array_foreach (report->sites, i, site) {
        if (ms_report_int(site, "grew_bytes") > 0 && find(report, site)) {
            json_object_del(site, "grew_bytes");
            count++;
        }
    }
    if (count)
        ms_report_changed(report);
    return count;
}

/* What is never used, or idle at the peak, of a site that is named. */
static size_t apply_to_uses(const struct ms_report *report, const char *key)
{
    json_t *rows = json_object_get(json_object_get(report->root, "uses"), key);
    size_t count = 0;

    for (size_t i = json_array_size(rows); i-- > 0;) {
        const json_t *row = json_array_get(rows, i);
        if (find(report, ms_report_site(report, ms_report_int(row, "site"))) && !json_array_remove(rows, i))
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
        struct suppression *suppression = find(report, ms_report_site(report, ms_report_int(leak, "site")));

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
            ms_cli_note("suppressed: %" JSON_INTEGER_FORMAT " blocks, %" JSON_INTEGER_FORMAT
                        " bytes by leak:%s",
                        list[k].count, list[k].bytes, list[k].template);
}
