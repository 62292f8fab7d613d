/* host.c - the processes of a run merged into one job report; see host.h.
 *
 * Floor 5. */
#include "cli/run/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job/job.h"

/* A path as a pattern: its percent signs are none of ours. */
static char *pattern_in(const char *directory)
{
    static const char name[] = "/memshim.%h%R.%p.json";
    char *pattern = malloc(2 * strlen(directory) + sizeof(name)), *to = pattern;

    for (; pattern && *directory; directory++) {
        if (*directory == '%')
            *to++ = '%';
        *to++ = *directory;
    }
    if (pattern)
        strcpy(to, name);
    return pattern;
}

static int make_directory(struct ms_host *node)
{
    const char *place = getenv("TMPDIR");

    if (asprintf(&node->directory, "%s/memshim-node.XXXXXX", place && *place == '/' ? place : "/tmp") < 0)
        node->directory = NULL;
    if (!node->directory || !mkdtemp(node->directory)) {
        ms_cli_error("--merge-node: no directory can be made in %s: %s", place ? place : "/tmp",
                     strerror(errno));
        free(node->directory);
        node->directory = NULL;
        return MS_EXIT_FAILED;
    }
    node->pattern = pattern_in(node->directory);
    return node->pattern ? MS_EXIT_OK : MS_EXIT_FAILED;
}

int ms_host_begin(struct ms_host *node, const char *to, bool own)
{
    node->path = ms_reports_fixed_path(to);
    if (!node->path) {
        ms_cli_error("--merge-node '%s': one file for all processes; %%h and %%%% may stand in it", to);
        return MS_EXIT_USAGE;
    }
    return own ? make_directory(node) : MS_EXIT_OK;
}

void ms_host_name(const struct ms_host *node, struct ms_reports *outcome)
{
    for (size_t i = 0; node->directory && i < outcome->count; i++) {
        const json_t *run = json_object_get(outcome->found[i].report.root, "run");
        bool ranked = json_object_get(run, "rank") != NULL;

        if (asprintf(&outcome->found[i].title, "%s %" JSON_INTEGER_FORMAT " on %s",
                     ranked ? "rank" : "process", ms_report_int(run, ranked ? "rank" : "pid"),
                     ms_report_text(run, "host")) < 0)
            outcome->found[i].title = NULL;
    }
}

int ms_host_merge(const struct ms_host *node, const struct ms_reports *outcome, bool force, bool quiet)
{
    struct ms_job job = {.shown = NULL};
    FILE *out = NULL;
    int status = outcome->count ? 0 : -1;

    if (!outcome->count)
        ms_cli_error("--merge-node: there is no report to merge");
    for (size_t i = 0; status == 0 && i < outcome->count; i++)
        if ((status = ms_job_take(&job, &outcome->found[i].report)) < 0)
            ms_cli_error("no memory for %s", outcome->found[i].path);
    if (status == 0)
        status = ms_job_finish(&job);
    if (status == 0)
        status = (out = ms_cli_open_output(node->path, force)) ? 0 : -1;
    if (out && ms_job_write(out, &job) < 0) {
        ms_cli_error("cannot write %s: %s", node->path, strerror(errno));
        ms_cli_discard_output(out);
        status = -1;
    } else if (out) {
        status = ms_cli_close_output(out) == MS_EXIT_OK ? 0 : -1;
    }
    ms_job_close(&job);
    for (size_t i = 0; node->directory && status == 0 && i < outcome->count; i++)
        unlink(outcome->found[i].path);
    if (status == 0 && !quiet)
        ms_cli_note("%zu process%s merged; next: memshim merge %s", outcome->count,
                    outcome->count == 1 ? "" : "es", node->path);
    else if (status < 0 && node->directory && outcome->count)
        ms_cli_note("the reports are in %s", node->directory);
    return status;
}

void ms_host_end(struct ms_host *node)
{
    if (node->directory)
        rmdir(node->directory);
    free(node->path);
    free(node->directory);
    free(node->pattern);
}
