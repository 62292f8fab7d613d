/* merge_tree.c - files merged by a tree: 64 at a time, in several processes; see job.h.
 *
 * Floor 5. A level's results lie in a directory of our own, which goes at the end. A process that merges 64
 * files needs the memory of one report and of 64 processes' rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job/job.h"

enum { FAN_IN = 64 };

struct tree {
    char directory[4096];
    char **paths; /* of the level in hand */
    size_t count;
    unsigned level;
    long processes;
};

static char *result_path(const struct tree *tree, unsigned level, size_t group)
{
    char *path = NULL;

    return asprintf(&path, "%s/%u-%zu.json", tree->directory, level, group) < 0 ? NULL : path;
}

/* In a process of its own: an exit status. */
static int merge_group(const struct tree *tree, size_t group, const char *to)
{
    struct ms_job job = {.shown = NULL};
    size_t first = group * FAN_IN, i = first;
    FILE *out;

    while (i < tree->count && i < first + FAN_IN && ms_job_take_file(&job, tree->paths[i]) == 0)
        i++;
    if (i < tree->count && i < first + FAN_IN)
        return MS_EXIT_USAGE;
    if (ms_job_finish(&job) < 0)
        return MS_EXIT_USAGE;
    out = fopen(to, "we");
    if (!out || ms_job_write(out, &job) < 0 || fclose(out) != 0) {
        ms_cli_error("cannot write %s: %s", to, strerror(errno));
        return MS_EXIT_USAGE;
    }
    return MS_EXIT_OK;
}

/* One of ours that has ended; -1 if it did not end well. */
static int wait_one(void)
{
    int status;
    pid_t pid;

    do
        pid = wait(&status);
    while (pid < 0 && errno == EINTR);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == MS_EXIT_OK ? 0 : -1;
}

static int merge_tree_start(const struct tree *tree, size_t group, const char *to)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(merge_group(tree, group, to));
    if (pid < 0)
        ms_cli_error("cannot start a process: %s", strerror(errno));
    return pid < 0 ? -1 : 0;
}

static int merge_level(struct tree *tree, char **results, size_t groups)
{
    size_t group = 0;
    long running = 0;
    int status = 0;

    fflush(NULL);
    while (running || (group < groups && status == 0)) {
        if (status == 0 && group < groups && running < tree->processes) {
            status = merge_tree_start(tree, group, results[group]);
            running += status == 0;
            group++;
            continue;
        }
        if (wait_one() < 0)
            status = -1;
        running--;
    }
    return status;
}

static void drop_level(struct tree *tree, char **results, size_t groups)
{
    for (size_t i = 0; tree->level && i < tree->count; i++) {
        unlink(tree->paths[i]);
        free(tree->paths[i]);
    }
    if (tree->level)
        free(tree->paths);
    tree->paths = results;
    tree->count = groups;
    tree->level++;
}

/* The next level's files, or -1. */
static int go_up(struct tree *tree)
{
    size_t groups = (tree->count + FAN_IN - 1) / FAN_IN;
    char **results = calloc(groups + 1, sizeof(*results));
    int status = results ? 0 : -1;

    for (size_t i = 0; status == 0 && i < groups; i++)
        status = (results[i] = result_path(tree, tree->level, i)) ? 0 : -1;
    if (status < 0)
        ms_cli_error("no memory for %zu files", tree->count);
    else
        status = merge_level(tree, results, groups);
    if (results)
        drop_level(tree, results, groups);
    return status;
}

static int merge_tree_begin(struct tree *tree)
{
    const char *place = getenv("TMPDIR");

    snprintf(tree->directory, sizeof(tree->directory), "%.4000s/memshim-merge.XXXXXX",
             place && *place ? place : "/tmp");
    if (mkdtemp(tree->directory))
        return 0;
    ms_cli_error("cannot make %s: %s", tree->directory, strerror(errno));
    return -1;
}

int ms_merge_tree(struct ms_job *job, char **paths, size_t count, long processes)
{
    struct tree tree = {.paths = paths, .count = count, .processes = processes};
    int status = 0;

    if (count > FAN_IN && merge_tree_begin(&tree) < 0)
        return -1;
    while (status == 0 && tree.count > FAN_IN)
        status = go_up(&tree);
    for (size_t i = 0; status == 0 && i < tree.count; i++)
        status = ms_job_take_file(job, tree.paths[i]);
    if (count > FAN_IN) {
        drop_level(&tree, NULL, 0);
        rmdir(tree.directory);
    }
    return status;
}
