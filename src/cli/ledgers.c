/* ledgers.c - finding ledgers and writing their reports; see ledgers.h.
 *
 * Floor 5. */
#include "cli/ledgers.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/cli.h"
#include "ledger/path.h"
#include "ledger/trace.h"
#include "report/report.h"

/* What the ledger says of its end, and what can be seen. */
static void judge(struct ms_cli_ledger *ledger)
{
    enum ms_end_reason said = atomic_load(&ms_process()->end_reason);

    ledger->exit_code = atomic_load(&ms_process()->exit_code);
    ledger->alive = ms_ledger_alive(ledger->fd, ledger->path);
    if (ledger->alive == MS_ALIVE_UNKNOWN && said != MS_END_NONE)
        ledger->alive = MS_ALIVE_NO;
    ledger->reason = ledger->alive != MS_ALIVE_NO ? MS_END_RUNNING
                     : said != MS_END_NONE        ? said
                                                  : MS_END_KILLED;
    if (ledger->reason != MS_END_EXIT)
        ledger->exit_code = -1;
}

int ms_ledgers_open(const char *path, struct ms_cli_ledger *ledger_p)
{
    char error[256];

    ledger_p->path = path;
    ledger_p->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (ledger_p->fd < 0) {
        ms_cli_error("cannot read %s: %s", path, strerror(errno));
        return -1;
    }
    if (ms_ledger_load(ledger_p->fd, false, error, sizeof(error)) == 0) {
        judge(ledger_p);
        if (ledger_p->alive == MS_ALIVE_NO || ms_ledger_load(ledger_p->fd, true, error, sizeof(error)) == 0)
            return 0;
    }
    ms_cli_error("%s %s", path, error);
    close(ledger_p->fd);
    return -1;
}

void ms_ledgers_close(struct ms_cli_ledger *ledger)
{
    close(ledger->fd);
}

int ms_ledgers_write(const struct ms_cli_ledger *ledger, const char *output, bool force)
{
    FILE *out = ms_cli_open_output(output, force);

    if (!out)
        return MS_EXIT_USAGE;
    if (fflush(out) != 0 || ms_report_contents(fileno(out), ledger->reason, ledger->exit_code,
                                               ledger->alive == MS_ALIVE_NO, NULL) < 0) {
        ms_cli_error("cannot write %s: %s", output, strerror(errno));
        ms_cli_discard_output(out);
        return MS_EXIT_USAGE;
    }
    return ms_cli_close_output(out);
}

void ms_ledgers_complete_trace(const struct ms_cli_ledger *ledger)
{
    char error[PATH_MAX + 256];

    if (ledger->alive == MS_ALIVE_NO && ms_trace_complete(error, sizeof(error)) < 0)
        ms_cli_note("process %d: %s", (int)ms_process()->pid, error);
}

void ms_ledgers_remove(const struct ms_cli_ledger *ledger)
{
    struct stat opened, named;

    if (fstat(ledger->fd, &opened) == 0 && lstat(ledger->path, &named) == 0 &&
        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino && unlink(ledger->path) < 0)
        ms_cli_note("cannot remove %s: %s", ledger->path, strerror(errno));
}

static size_t visit_matches(const char *directory, const char *name, ms_ledgers_visit_t visit, void *arg)
{
    char *pattern = NULL, *p;
    size_t count = 0, i;
    glob_t matches;

    if (asprintf(&pattern, "%*s/%s", (int)(2 * strlen(directory)), "", name) < 0)
        return 0;
    p = pattern;
    for (; *directory; directory++) { /* a directory is no pattern */
        if (strchr("*?[\\", *directory))
            *p++ = '\\';
        *p++ = *directory;
    }
    sprintf(p, "/%s", name);
    if (glob(pattern, 0, NULL, &matches) == 0) {
        for (i = 0; i < matches.gl_pathc; i++)
            visit(arg, matches.gl_pathv[i]);
        count = matches.gl_pathc;
        globfree(&matches);
    }
    free(pattern);
    return count;
}

size_t ms_ledgers_in(const char *directory, ms_ledgers_visit_t visit, void *arg)
{
    return visit_matches(directory, "memshim-*.ledger", visit, arg);
}

size_t ms_ledgers_anywhere(pid_t pid, ms_ledgers_visit_t visit, void *arg)
{
    const char *places[] = {"/dev/shm", getenv("XDG_RUNTIME_DIR"), "/tmp"};
    const char *chosen = ms_option_text(MS_OPT_DIR);
    char name[64];
    size_t count = 0, i;

    snprintf(name, sizeof(name), pid ? "memshim-%d-*.ledger" : "memshim-*.ledger", (int)pid);
    if (*chosen)
        return visit_matches(chosen, name, visit, arg);
    for (i = 0; i < MS_ARRAY_LEN(places); i++)
        if (places[i] && *places[i] == '/')
            count += visit_matches(places[i], name, visit, arg);
    return count;
}

struct completing {
    const char *pattern;
    const struct ms_child *child;
    int64_t since_unix_ns;
};

/* A process of this run writes its report where this run says, and began after it. */
static bool is_of_run(const struct completing *completing)
{
    const char *option;
    uint64_t cursor = 0;

    if ((int64_t)ms_process()->start_unix_ns < completing->since_unix_ns)
        return false;
    while ((option = ms_process_next_text("option", &cursor)) != NULL)
        if (!strncmp(option, "REPORT=", 7))
            return option[7] && !strcmp(option + 8, completing->pattern);
    return false;
}

/* What the one who waited for it knows better. */
static void judge_child(struct ms_cli_ledger *ledger, const struct ms_child *child)
{
    if (ledger->reason == MS_END_EXEC)
        return;
    if (child->signal) {
        ledger->reason = child->signal == SIGKILL ? MS_END_KILLED : MS_END_SIGNAL;
        ledger->exit_code = -1;
    } else {
        ledger->reason = MS_END_EXIT;
        ledger->exit_code = child->status;
    }
}

/* Left by something that ended before: whatever it is, it is not looked into. Times of files may be a tick coarser than the clock. */
static bool is_older(const struct stat *st, int64_t unix_ns)
{
    const int64_t tick_ns = 100000000;

    return st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec < unix_ns - tick_ns;
}

static void complete(void *arg, const char *path)
{
    const struct completing *completing = arg;
    struct ms_cli_ledger ledger;
    char output[PATH_MAX];
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        is_older(&st, completing->since_unix_ns) || ms_ledgers_open(path, &ledger) < 0)
        return;
    if (ledger.alive == MS_ALIVE_NO && is_of_run(completing) &&
        ms_path_expand(completing->pattern, "", output, sizeof(output)) == 0) {
        ms_ledgers_complete_trace(&ledger);
        if (ms_process()->pid == completing->child->pid)
            judge_child(&ledger, completing->child);
        if (ms_ledgers_write(&ledger, output, false) == MS_EXIT_OK)
            ms_ledgers_remove(&ledger);
        else
            ms_cli_note("the record is kept: memshim recover %s", path);
    }
    ms_ledgers_close(&ledger);
}

void ms_ledgers_complete(const char *pattern, const struct ms_child *child, int64_t since_unix_ns)
{
    struct completing completing = {pattern, child, since_unix_ns};

    ms_ledgers_anywhere(0, complete, &completing);
}
