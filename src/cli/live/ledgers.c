/* ledgers.c - finding ledgers and writing their reports; see ledgers.h.
 *
 * Floor 5. */
#include "cli/live/ledgers.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/array.h"
#include "record/file/job_copies.h"
#include "record/file/path.h"
#include "record/file/trace.h"
#include "report/write/report.h"

/* A copy is of a process that ran at that moment, whatever became of it. */
static void classify_copy(struct ms_cli_ledger *ledger)
{
    uint64_t began = ms_process()->start_unix_ns, made = 0;
    struct stat st;

    if (fstat(ledger->fd, &st) == 0)
        made = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    ledger->is_copy = true;
    ledger->alive = MS_ALIVE_UNKNOWN;
    ledger->reason = MS_END_RUNNING;
    ledger->code = -1;
    if (made > began)
        ms_events_freeze(made - began);
}

static bool is_copy(const char *path)
{
    size_t length = strlen(path), end = strlen(MS_JOB_COPY);

    return length > end && !strcmp(path + length - end, MS_JOB_COPY);
}

/* The end of a process, by what its ledger says and by what can be seen. */
static void ledgers_classify(struct ms_cli_ledger *ledger)
{
    enum ms_end_reason said = atomic_load(&ms_process()->end_reason);

    ledger->is_copy = false;
    if (is_copy(ledger->path)) {
        classify_copy(ledger);
        return;
    }
    ledger->code = atomic_load(&ms_process()->end_code);
    ledger->alive = ms_ledger_alive(ledger->fd, ledger->path);
    if (ledger->alive == MS_ALIVE_UNKNOWN && said != MS_END_NONE)
        ledger->alive = MS_ALIVE_NO;
    ledger->reason = ledger->alive != MS_ALIVE_NO ? MS_END_RUNNING
                     : said != MS_END_NONE        ? said
                                                  : MS_END_KILLED;
    if (ledger->reason != said)
        ledger->code = -1;
}

/* The figures that change with every block that comes or goes. */
struct course {
    uint64_t allocated, live_bytes, live_count;
};

static struct course course_of_loaded(void)
{
    struct course course = {0};

    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        const struct ms_account *account = ms_account_of(ms_account_device(i));

        for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++) {
            course.allocated += account->kinds[kind].total_count;
            course.live_bytes += account->kinds[kind].live_bytes;
            course.live_count += account->kinds[kind].live_count;
        }
    }
    return course;
}

/* A file that its process writes is read table by table: what is read twice alike is of one moment. A process
 * that never rests is read as it is. tests/ledger/top.py */
static int load_steady(int fd, char *error, size_t error_bytes)
{
    enum { TRIES = 4 };
    struct course before = course_of_loaded(), course;

    for (int i = 0; i < TRIES; i++) {
        if (ms_ledger_load(fd, true, error, error_bytes) < 0)
            return -1;
        course = course_of_loaded();
        if (!memcmp(&course, &before, sizeof(course)))
            break;
        before = course;
    }
    return 0;
}

/* Returns 0, or -1 with what is the matter in `error`. */
static int ledgers_load(const char *path, struct ms_cli_ledger *ledger_p, char *error, size_t error_bytes)
{
    struct stat st;

    ledger_p->path = path;
    ledger_p->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (ledger_p->fd < 0) {
        snprintf(error, error_bytes, "cannot be read: %s", strerror(errno));
        return -1;
    }
    if (ms_ledger_load(ledger_p->fd, false, error, error_bytes) == 0) {
        ledger_p->own = fstat(ledger_p->fd, &st) == 0 && st.st_uid == geteuid();
        ledgers_classify(ledger_p);
        if (ledger_p->alive == MS_ALIVE_NO || ledger_p->is_copy ||
            load_steady(ledger_p->fd, error, error_bytes) == 0)
            return 0;
    }
    close(ledger_p->fd);
    return -1;
}

int ms_ledgers_open(const char *path, struct ms_cli_ledger *ledger_p)
{
    char error[256];
    struct stat st;

    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        snprintf(error, sizeof(error), "is no regular file");
    else if (ledgers_load(path, ledger_p, error, sizeof(error)) == 0)
        return 0;
    ms_cli_error("%s %s", path, error);
    return -1;
}

int ms_ledgers_open_own(const char *path, struct ms_cli_ledger *ledger_p)
{
    char error[256];
    struct stat st;
    int own = ms_file_open_own(path, &st);

    if (own < 0)
        return -1;
    close(own);
    if (ledgers_load(path, ledger_p, error, sizeof(error)) < 0)
        return -1;
    if (ledger_p->own) /* another may have been put there */
        return 0;
    ms_ledgers_close(ledger_p);
    return -1;
}

void ms_ledgers_close(struct ms_cli_ledger *ledger)
{
    close(ledger->fd);
}

int ms_ledgers_write(const struct ms_cli_ledger *ledger, FILE *out, const char *name)
{
    if (fflush(out) != 0 || ms_report_contents(fileno(out), ledger->reason, ledger->code,
                                               ledger->alive == MS_ALIVE_NO, NULL) < 0) {
        ms_cli_error("cannot write %s: %s", name, strerror(errno));
        ms_cli_discard_output(out);
        return MS_EXIT_USAGE;
    }
    return ms_cli_close_output(out);
}

bool ms_ledgers_complete_trace(const struct ms_cli_ledger *ledger)
{
    char error[PATH_MAX + 256];
    int result = 0;

    if (ledger->alive == MS_ALIVE_NO && ledger->own &&
        (result = ms_trace_complete(error, sizeof(error))) != 0)
        ms_cli_note("process %d: %s", (int)ms_process()->pid, error);
    return result <= 0;
}

void ms_ledgers_remove(const struct ms_cli_ledger *ledger)
{
    struct stat opened, named;

    if (ledger->own && fstat(ledger->fd, &opened) == 0 && lstat(ledger->path, &named) == 0 &&
        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino && unlink(ledger->path) < 0)
        ms_cli_note("cannot remove %s: %s", ledger->path, strerror(errno));
}

/* Ledgers of other users that were left out. */
static struct {
    size_t count;
    char first[PATH_MAX];
} others;

static void note_other(const char *path)
{
    if (!others.count++)
        snprintf(others.first, sizeof(others.first), "%s", path);
}

const char *ms_ledgers_others(void)
{
    static char text[PATH_MAX + 96];

    text[0] = '\0';
    if (others.count == 1)
        snprintf(text, sizeof(text), "; %s is another user's and left out", others.first);
    else if (others.count)
        snprintf(text, sizeof(text), "; %zu ledgers are other users' and left out, as %s", others.count,
                 others.first);
    others.count = 0;
    return text;
}

void ms_ledgers_say_others(void)
{
    const char *text = ms_ledgers_others();

    if (*text)
        ms_cli_note("%s", text + 2);
}

/* Without an entry for the user there is no telling which groups are its own. */
int ms_ledgers_step_down(const char *path)
{
    const struct passwd *user;
    struct stat st;

    if (lstat(path, &st) < 0 || st.st_uid == geteuid() || geteuid() != 0)
        return 0;
    errno = 0;
    user = getpwuid(st.st_uid);
    if (user && initgroups(user->pw_name, user->pw_gid) == 0 &&
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
        setresuid(st.st_uid, st.st_uid, st.st_uid) == 0) {
        ms_cli_note("%s is %s's, and read with the rights of that user", path, user->pw_name);
        return 0;
    }
    ms_cli_error("%s is user %u's, with whose rights alone it would be read: %s", path, (unsigned)st.st_uid,
                 user || errno ? strerror(errno) : "there is no such user here");
    return -1;
}

static size_t visit_matches(const char *directory, const char *name, ms_ledgers_visit_t visit, void *arg)
{
    char *pattern = NULL, *p;
    size_t count = 0, i;
    glob_t matches;
    struct stat st;

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
        for (i = 0; i < matches.gl_pathc; i++) {
            if (lstat(matches.gl_pathv[i], &st) < 0)
                continue;
            if (st.st_uid != geteuid()) {
                note_other(matches.gl_pathv[i]);
            } else if (S_ISREG(st.st_mode)) {
                count++;
                if (visit)
                    visit(arg, matches.gl_pathv[i]);
            }
        }
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

const char *ms_ledgers_places(void)
{
    const char *chosen = ms_option_text(MS_OPT_DIR);

    return *chosen ? chosen : "/dev/shm, $XDG_RUNTIME_DIR or /tmp";
}

struct completing {
    uint64_t run_id;
    const struct ms_child *child;
    struct ms_ledgers_left *left;
    int64_t since_unix_ns;
    struct found *found;
    size_t count, room;
};

/* A ledger of this run, and when its process began. */
struct found {
    char *path;
    uint64_t start_unix_ns;
};

/* The value that MEMSHIM_REPORT had in the process. */
static const char *report_pattern(void)
{
    const char *option;
    uint64_t cursor = 0;

    while ((option = ms_process_next_text("option", &cursor)) != NULL)
        if (!strncmp(option, "REPORT=", 7) && option[7])
            return option + 8;
    return "none";
}

/* The process that waited for a child knows better than the child's ledger how it ended. */
static void judge_child(struct ms_cli_ledger *ledger, const struct ms_child *child)
{
    if (ledger->reason == MS_END_EXEC)
        return;
    if (child->signal) {
        ledger->reason = child->signal == SIGKILL ? MS_END_KILLED : MS_END_SIGNAL;
        ledger->code = child->signal;
    } else {
        ledger->reason = MS_END_EXIT;
        ledger->code = child->status;
    }
}

/* Under the name that the process would have given it, or a number in it. */
static int write_its_report(const struct ms_cli_ledger *ledger)
{
    const char *directory = ms_process_text("cwd");
    char output[PATH_MAX];
    FILE *out;

    if (ms_path_expand(report_pattern(), directory ? directory : "", output, sizeof(output)) != 0) {
        ms_cli_error("the report of process %d: its name is too long", (int)ms_process()->pid);
        return MS_EXIT_USAGE;
    }
    out = ms_cli_open_placed(output, ms_file_mode(), MS_FILE_NUMBERED);
    if (!out || ms_ledgers_write(ledger, out, output) != MS_EXIT_OK)
        return MS_EXIT_USAGE;
    ms_run_list_add(ms_process()->run_id, output);
    return MS_EXIT_OK;
}

static void complete_one(struct completing *completing, struct ms_cli_ledger *ledger)
{
    bool whole;

    if (ledger->alive != MS_ALIVE_NO) {
        completing->left->running++;
        return;
    }
    if (!strcmp(report_pattern(), "none"))
        return;
    whole = ms_ledgers_complete_trace(ledger);
    if (ms_process()->pid == completing->child->pid)
        judge_child(ledger, completing->child);
    if (write_its_report(ledger) == MS_EXIT_OK && whole) {
        ms_ledgers_remove(ledger);
        return;
    }
    completing->left->failed++;
    ms_cli_note("the record is kept: memshim recover %s", ledger->path);
}

/* Others' files are not looked into, and what is no record, or of another run, is nobody's business here: a
 * process beside us may just be making one. */
static bool open_of_run(const struct completing *completing, const char *path, struct ms_cli_ledger *ledger_p)
{
    char error[256];
    struct stat st;
    int own = ms_file_open_own(path, &st);

    if (own < 0)
        return false;
    close(own);
    if (ms_reports_is_older(&st, completing->since_unix_ns) ||
        ledgers_load(path, ledger_p, error, sizeof(error)) < 0)
        return false;
    if (ledger_p->own && ms_process()->run_id == completing->run_id)
        return true;
    ms_ledgers_close(ledger_p);
    return false;
}

static void ledgers_find(void *arg, const char *path)
{
    struct completing *completing = arg;
    struct ms_cli_ledger ledger;
    struct found *rows;
    char *copy;

    if (!open_of_run(completing, path, &ledger))
        return;
    rows = ms_array_grow(completing->found, sizeof(*rows), completing->count, &completing->room, 16);
    copy = rows ? strdup(path) : NULL;
    completing->found = rows ? rows : completing->found;
    if (copy)
        rows[completing->count++] = (struct found){copy, ms_process()->start_unix_ns};
    ms_ledgers_close(&ledger);
}

static int by_start(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return (x->start_unix_ns > y->start_unix_ns) - (x->start_unix_ns < y->start_unix_ns);
}

void ms_ledgers_complete(const struct ms_program_run *run, const struct ms_child *child,
                         struct ms_ledgers_left *left_p)
{
    struct completing completing = {
        .run_id = run->id, .child = child, .left = left_p, .since_unix_ns = run->since_unix_ns};

    *left_p = (struct ms_ledgers_left){0, 0};
    ms_ledgers_anywhere(0, ledgers_find, &completing);
    /* Reports of one name are numbered in the order in which their processes began. */
    if (completing.count)
        qsort(completing.found, completing.count, sizeof(*completing.found), by_start);
    for (size_t i = 0; i < completing.count; i++) {
        struct ms_cli_ledger ledger;

        if (open_of_run(&completing, completing.found[i].path, &ledger)) {
            complete_one(&completing, &ledger);
            ms_ledgers_close(&ledger);
        }
        free(completing.found[i].path);
    }
    free(completing.found);
}
