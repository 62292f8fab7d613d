/* json_run.c - run: which process this was, when, and its place in a parallel job.
 *
 * Floor 4. Files are read with bare descriptors, never stdio, which allocates. */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "report/json.h"

enum { ARGUMENTS_BYTES = 128 * 1024 };

/* The launchers' names for the same thing, in order of preference. */
static const char *const rank_names[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                         "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
static const char *const local_rank_names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                               "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
static const char *const world_size_names[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                               "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"};
static const char *const job_id_names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID"};

static const char *first_set(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

static bool is_number(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
    }
    return length > 0 && length < 10;
}

const char *ms_report_rank(void)
{
    const char *rank = first_set(rank_names, MS_ARRAY_LEN(rank_names));
    return rank && is_number(rank) ? rank : NULL;
}

static void set_number(json_t *json, const char *key, const char *const *names, size_t count)
{
    const char *value = first_set(names, count);
    if (value && is_number(value))
        json_object_set_new(json, key, json_integer(strtol(value, NULL, 10)));
}

static json_t *arguments(void)
{
    static char text[ARGUMENTS_BYTES];
    json_t *json = json_array();
    ssize_t length = 0, part;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (part = read(fd, text + length, sizeof text - 1 - (size_t)length)) > 0)
        length += part;
    if (fd >= 0)
        close(fd);
    text[length] = '\0';
    for (const char *argument = text; argument < text + length; argument += strlen(argument) + 1)
        json_array_append_new(json, ms_out_string(argument));
    return json;
}

static json_t *host_name(void)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return ms_out_string(host);
}

static const char *reason_name(enum ms_end_reason reason)
{
    static const char *const names[] = {
        [MS_END_EXIT] = "exit", [MS_END_SIGNAL] = "signal", [MS_END_EXEC] = "exec",
        [MS_END_OOM] = "oom",   [MS_END_KILLED] = "killed", [MS_END_RUNNING] = "running",
    };
    return names[reason];
}

static uint64_t unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ms_json_run(struct ms_out *out, const struct ms_report_input *input)
{
    uint64_t end_ns = unix_ns();
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:i, s:i}", "argv", arguments(), "exe",
                  ms_out_string(ms_report_executable()), "cwd", ms_out_string(input->start_directory), "host",
                  host_name(), "pid", (int)getpid(), "ppid", (int)getppid());
    set_number(json, "rank", rank_names, MS_ARRAY_LEN(rank_names));
    set_number(json, "local_rank", local_rank_names, MS_ARRAY_LEN(local_rank_names));
    set_number(json, "world_size", world_size_names, MS_ARRAY_LEN(world_size_names));
    const char *job_id = first_set(job_id_names, MS_ARRAY_LEN(job_id_names));
    if (job_id)
        json_object_set_new(json, "job_id", ms_out_string(job_id));
    json_object_set_new(json, "start_unix_ns", json_integer((json_int_t)(end_ns - ms_ledger_now())));
    json_object_set_new(json, "end_unix_ns", json_integer((json_int_t)end_ns));
    json_object_set_new(json, "end_reason", json_string(reason_name(input->reason)));
    if (input->exit_code >= 0)
        json_object_set_new(json, "exit_code", json_integer(input->exit_code));
    json_object_set_new(json, "complete", json_boolean(input->snapshot->consistent));
    json_object_set_new(json, "symbolized", json_false());
    ms_out_key(out, "run");
    ms_out_value(out, json);
}
