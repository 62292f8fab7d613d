/* replay_run.c - see replay_run.h.
 *
 * Floor 5. */
#include "cli/tune/replay_run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run/preload.h"
#include "cli/tune/replay_form.h"

extern char **environ;

const char ms_replay_costs_of[] = "an idle NVIDIA H100 80GB HBM3";

enum { JOBS_MAX = 64, TOLD_BYTES = 8192 };

enum cost_kind { KIND_CALL = 1, KIND_WAIT = 2, KIND_BOTH = 3, KIND_OTHER = 0 };

static const struct {
    enum cost_kind kind;
    uint64_t call, move, gib;
} costs[] = {
#define MS_COST(function, what, call, move, gib) {KIND_##what, call, move, gib},
#include "cli/tune/costs.def"
#undef MS_COST
};

/* One child, and what it has said so far. */
struct job {
    pid_t pid;
    int fd;
    size_t index, length;
    char told[TOLD_BYTES];
};

static int write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes) {
        ssize_t done = write(fd, at, bytes < 1u << 30 ? bytes : 1u << 30);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        at += done;
        bytes -= (size_t)done;
    }
    return 0;
}

int ms_replay_open(const struct ms_course *course, struct ms_replay *replay)
{
    static struct ms_replay_head head;

    head.event_count = course->count;
    head.block_count = course->block_count;
    head.device_count = (uint32_t)course->device_count;
    memcpy(head.streams, course->streams, sizeof(head.streams));
    *replay = (struct ms_replay){memfd_create("course", 0), course->count, (unsigned)course->device_count};
    if (replay->fd >= 0 && write_all(replay->fd, &head, sizeof(head)) == 0 &&
        write_all(replay->fd, course->events, course->count * sizeof(*course->events)) == 0)
        return 0;
    ms_cli_error("a copy of the trace cannot be kept in memory: %s", strerror(errno));
    ms_replay_close(replay);
    return -1;
}

void ms_replay_close(struct ms_replay *replay)
{
    if (replay->fd >= 0)
        close(replay->fd);
    replay->fd = -1;
}

/* Variables that are set for the caller's own programs are none of the replayer's. */
static void clear_variables(void)
{
    for (char **variable = environ; *variable;) {
        char name[128];
        size_t length = strcspn(*variable, "=");

        if (length < sizeof(name) && (!strncmp(*variable, "MEMSHIM_", 8) ||
                                      !strncmp(*variable, "MEMSIM_", 7) || !strncmp(*variable, "CUDA_", 5))) {
            snprintf(name, sizeof(name), "%.*s", (int)length, *variable);
            unsetenv(name);
        } else {
            variable++;
        }
    }
}

static int set_settings(const char *settings)
{
    char *copy = strdup(settings), *rest = copy, *word;
    int status = copy ? 0 : -1;

    while (!status && (word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');

        if (value) {
            *value++ = '\0';
            status = setenv(word, value, 1);
        }
    }
    free(copy);
    return status;
}

static int set_environment(const struct ms_replay_order *order, const char *program)
{
    char bytes[32], devices[16];

    clear_variables();
    snprintf(bytes, sizeof(bytes), "%" PRIu64, order->device_bytes);
    snprintf(devices, sizeof(devices), "%u", order->replay->devices);
    /* A replay's warnings are about a device that was made small, or settings that are only tried. */
    if (setenv("MEMSHIM_LOG", "error", 1) < 0 || setenv("MEMSIM_MEMORY", bytes, 1) < 0 ||
        setenv("MEMSIM_DEVICES", devices, 1) < 0 || setenv("MEMSIM_COUNT", "1", 1) < 0 ||
        setenv("MEMSHIM_REPORT", "none", 1) < 0 || setenv("MEMSHIM_YIELD", "off", 1) < 0 ||
        setenv("MEMSHIM_STACKS", "off", 1) < 0 || setenv("MEMSHIM_PYTHON", "off", 1) < 0 ||
        setenv("LD_LIBRARY_PATH", ms_preload_sim_dir(), 1) < 0 || set_settings(order->settings) < 0)
        return -1;
    return ms_preload_set(false, program, true);
}

/* In the child. */
static _Noreturn void become_replayer(const struct ms_replay_order *order, const char *program, int out)
{
    char fd[16], first[24], last[24], warm[24];
    char *argv[] = {(char *)program, fd, first, last, warm, NULL};

    snprintf(fd, sizeof(fd), "%d", order->replay->fd);
    snprintf(first, sizeof(first), "%zu", order->first);
    snprintf(last, sizeof(last), "%zu", order->last);
    snprintf(warm, sizeof(warm), "%zu", order->warm);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(out, STDOUT_FILENO) >= 0 && set_environment(order, program) == 0)
        execv(program, argv);
    ms_cli_error("%s cannot be run: %s", program, strerror(errno));
    _exit(127);
}

static int begin(struct job *job, const struct ms_replay_order *order, size_t index)
{
    static char program[PATH_MAX + 32];
    const char *directory = ms_preload_sim_dir();
    int ends[2];

    if (!directory || !ms_preload_library()) {
        ms_cli_error("the simulated GPU is needed, and is not installed with this command");
        return -1;
    }
    snprintf(program, sizeof(program), "%s/memshim-replayer", directory);
    if (pipe(ends) < 0 || (job->pid = fork()) < 0) {
        ms_cli_error("a replay cannot be begun: %s", strerror(errno));
        return -1;
    }
    if (!job->pid)
        become_replayer(order, program, ends[1]);
    close(ends[1]);
    job->fd = ends[0];
    job->index = index;
    job->length = 0;
    return 0;
}

uint64_t ms_replay_cost(const char *function, uint64_t calls, uint64_t bytes)
{
    static const char *const names[] = {
#define MS_COST(function, what, call, move, gib) #function,
#include "cli/tune/costs.def"
#undef MS_COST
    };

    for (size_t row = 0; row < MS_ARRAY_LEN(names); row++)
        if (!strcmp(names[row], function))
            return calls * (costs[row].call + costs[row].move) +
                   (uint64_t)((double)bytes * (double)costs[row].gib / (double)(1u << 30));
    return 0;
}

static void add_calls(struct ms_replay_sums *sums, size_t row, const struct ms_replay_calls *calls)
{
    sums->calls += costs[row].kind & KIND_CALL ? calls->calls : 0;
    sums->waits += costs[row].kind & KIND_WAIT ? calls->calls : 0;
    sums->ns += calls->calls * costs[row].call + calls->moves * costs[row].move +
                (uint64_t)((double)calls->bytes * (double)costs[row].gib / (double)(1u << 30));
}

/* "name value" lines; false if they are not whole. */
static bool read_told(char *told, struct ms_replay_result *result)
{
    struct ms_replay_calls calls;
    char *line, *rest = told;
    size_t row, value, whole = 0;

    memset(result, 0, sizeof(*result));
    while ((line = strsep(&rest, "\n"))) {
        if (sscanf(line, "call %zu %" SCNu64 " %" SCNu64 " %" SCNu64, &row, &calls.calls, &calls.moves,
                   &calls.bytes) == 4 &&
            row < MS_COST_ROWS)
            add_calls(&result->sums, row, &calls);
        else if (sscanf(line, "steady %zu %" SCNu64 " %" SCNu64 " %" SCNu64, &row, &calls.calls, &calls.moves,
                        &calls.bytes) == 4 &&
                 row < MS_COST_ROWS)
            add_calls(&result->steady, row, &calls);
        else if (sscanf(line, "completed %zu", &value) == 1 && ++whole)
            result->completed = value != 0;
        else if (sscanf(line, "refused %zu", &result->refused) == 1 ||
                 sscanf(line, "peak %" SCNu64, &result->peak) == 1 ||
                 sscanf(line, "peak_device %u", &result->device) == 1)
            whole++;
    }
    return whole == 4;
}

/* Reads what a child has said; 1: it is over, and `result` is filled in; -1 after an error line. */
static int look_at(struct job *job, struct ms_replay_result *result)
{
    ssize_t got = read(job->fd, job->told + job->length, sizeof(job->told) - 1 - job->length);
    int status;

    if (got > 0)
        job->length += (size_t)got;
    if (got > 0 || (got < 0 && errno == EINTR))
        return 0;
    job->told[job->length] = '\0';
    close(job->fd);
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
        ;
    job->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && read_told(job->told, result))
        return 1;
    ms_cli_error("a replay ended by %s %d", WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return -1;
}

static void end_all(struct job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (jobs[i].pid > 0) {
            kill(jobs[i].pid, SIGKILL);
            while (waitpid(jobs[i].pid, NULL, 0) < 0 && errno == EINTR)
                ;
            close(jobs[i].fd);
        }
}

static size_t processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : count > JOBS_MAX ? JOBS_MAX : (size_t)count;
}

/* Waits until one of those that run has something to say; those that do not run are passed over. */
static void await(const struct job *jobs, size_t count, struct pollfd *polls)
{
    for (size_t i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = jobs[i].pid > 0 ? jobs[i].fd : -1, .events = POLLIN};
    if (poll(polls, (nfds_t)count, -1) < 0)
        memset(polls, 0, count * sizeof(*polls));
}

int ms_replay_all(const struct ms_replay_order *orders, struct ms_replay_result *results, size_t count,
                  ms_replay_done_func_t done, void *arg)
{
    static struct job jobs[JOBS_MAX];
    struct pollfd polls[JOBS_MAX];
    size_t room = processors(), begun = 0, ended = 0;
    int status = 0;

    memset(jobs, 0, sizeof(jobs));
    while (status >= 0 && ended < count) {
        for (size_t i = 0; i < room && begun < count && status >= 0; i++)
            if (!jobs[i].pid && (status = begin(&jobs[i], &orders[begun], begun)) == 0)
                begun++;
        if (status >= 0)
            await(jobs, room, polls);
        for (size_t i = 0; i < room && status >= 0; i++)
            if (jobs[i].pid && polls[i].revents &&
                (status = look_at(&jobs[i], &results[jobs[i].index])) > 0) {
                ended++;
                if (done)
                    done(arg, jobs[i].index);
            }
    }
    end_all(jobs, room);
    return status < 0 ? -1 : 0;
}
