/* process.c - which process this is; see process.h.
 *
 * Floor 2. Described once, before its file is made, by one thread under the journal's lock or at the end.
 * Files are read with bare descriptors, never stdio, which allocates. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/objects/objects.h"
#include "base/options/options.h"
#include "record/file/process.h"

enum { ARGUMENTS_BYTES = 128 * 1024 };

static struct ms_process aside = {.end_code = -1};
static struct ms_process *_Atomic own;
static char start_directory[PATH_MAX];

struct ms_process *ms_process(void)
{
    struct ms_process *row = atomic_load_explicit(&own, memory_order_acquire);
    return row ? row : &aside;
}

void ms_process_open(void)
{
    if (atomic_load_explicit(&own, memory_order_relaxed) || !ms_table_reserve(MS_TABLE_PROCESS, 1))
        return;
    struct ms_process *row = MS_ROWS(PROCESS, struct ms_process);
    atomic_store_explicit(&row->end_code, -1, memory_order_relaxed);
    ms_table_publish(MS_TABLE_PROCESS, 1);
    atomic_store_explicit(&own, row, memory_order_release);
}

void ms_process_adopt(void)
{
    atomic_store_explicit(&own, MS_ROWS(PROCESS, struct ms_process), memory_order_release);
}

static void process_reset(void)
{
    atomic_store_explicit(&own, NULL, memory_order_relaxed);
    memset((void *)&aside, 0, sizeof aside);
    aside.end_code = -1;
}
MS_AT_FORK(MS_FORK_RECORD, process_reset);

void ms_process_note_directory(void)
{
    int saved_errno = errno;
    if (!getcwd(start_directory, sizeof start_directory))
        start_directory[0] = '\0';
    errno = saved_errno;
}

const char *ms_process_directory(void)
{
    return start_directory;
}

/* One "key=value" more. What finds no room is left out. */
static void put_part(const char *key, const char *name, const char *value)
{
    uint64_t used = ms_table_rows(MS_TABLE_TEXT);
    size_t key_bytes = strlen(key), name_bytes = strlen(name), value_bytes = strlen(value);
    if (!ms_table_reserve(MS_TABLE_TEXT, used + key_bytes + name_bytes + value_bytes + 2))
        return;
    char *text = MS_ROWS(TEXT, char) + used;
    memcpy(text, key, key_bytes);
    text[key_bytes] = '=';
    memcpy(text + key_bytes + 1, name, name_bytes);
    memcpy(text + key_bytes + 1 + name_bytes, value, value_bytes);
    text[key_bytes + 1 + name_bytes + value_bytes] = '\0';
    ms_table_publish(MS_TABLE_TEXT, used + key_bytes + name_bytes + value_bytes + 2);
}

static void process_put(const char *key, const char *value)
{
    put_part(key, "", value);
}

void ms_process_note(const char *key, const char *value)
{
    process_put(key, value);
}

const char *ms_process_next_text(const char *key, uint64_t *cursor_p)
{
    uint64_t bytes = ms_table_rows(MS_TABLE_TEXT);
    size_t key_bytes = strlen(key);
    while (*cursor_p < bytes) {
        const char *text = MS_ROWS(TEXT, char) + *cursor_p;
        *cursor_p += strlen(text) + 1;
        if (strncmp(text, key, key_bytes) == 0 && text[key_bytes] == '=')
            return text + key_bytes + 1;
    }
    return NULL;
}

const char *ms_process_text(const char *key)
{
    uint64_t cursor = 0;
    return ms_process_next_text(key, &cursor);
}

/* The launchers' names for the same thing, in order of preference. */
static const char *const rank_names[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                         "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
static const char *const local_rank_names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                               "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
static const char *const world_size_names[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                               "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"};
static const char *const job_id_names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID"};
static const char *const launch_names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"};

static const char *first_set(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* FNV-1a. */
static uint64_t number_of(uint64_t number, const char *text)
{
    const uint64_t prime = 0x100000001b3u;
    for (; *text; text++)
        number = (number ^ (unsigned char)*text) * prime;
    return number;
}

/* Processes of one job have these in common: what a scheduler or a launcher calls it, where their first one
 * listens (torchrun and its like), or one `memshim run`. */
static uint64_t job_of(uint64_t run_id)
{
    const uint64_t basis = 0xcbf29ce484222325u;
    const char *name = first_set(job_id_names, MS_ARRAY_LEN(job_id_names)), *port = getenv("MASTER_PORT");
    if (!name)
        name = first_set(launch_names, MS_ARRAY_LEN(launch_names));
    if (name)
        return number_of(basis, name);
    if (port && *port && getenv("MASTER_ADDR"))
        return number_of(number_of(number_of(basis, getenv("MASTER_ADDR")), ":"), port);
    return run_id;
}

static bool process_is_number(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
    }
    return length > 0 && length < 10;
}

static void process_put_number(const char *key, const char *const *names, size_t count)
{
    const char *value = first_set(names, count);
    if (value && process_is_number(value))
        process_put(key, value);
}

static ssize_t process_read_file(const char *path, char *text, size_t bytes)
{
    ssize_t length = 0, part = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while ((size_t)length < bytes - 1 && (part = read(fd, text + length, bytes - 1 - (size_t)length)) > 0)
        length += part;
    close(fd);
    text[length] = '\0';
    return length;
}

static void put_arguments(void)
{
    static char text[ARGUMENTS_BYTES];
    ssize_t length = process_read_file("/proc/self/cmdline", text, sizeof text);
    for (const char *argument = text; argument < text + length; argument += strlen(argument) + 1)
        process_put("arg", argument);
}

static void put_options(void)
{
    static const char *const sources[] = {
        [MS_SOURCE_DEFAULT] = "=d", [MS_SOURCE_ENVIRONMENT] = "=e", [MS_SOURCE_FILE] = "=f"};
    for (unsigned id = 0; id < MS_OPT_COUNT; id++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", ms_option_info(id)->name, sources[ms_option_source(id)]);
        put_part("option", name, ms_option_text(id));
    }
}

const char *ms_process_executable(void)
{
    const struct ms_object *first = ms_object(0); /* the loader lists the executable first */
    return first ? first->path : "";
}

/* The n-th field of a line of /proc/PID/stat, 0 if it is not there; the second one is a name in parentheses,
 * which may hold anything. */
static uint64_t stat_field(const char *text, int n)
{
    const char *field = strrchr(text, ')');
    for (int i = 2; i < n && field; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

/* The parent by the same file as the start: a host may be under a filter of system calls that ends a process
 * for getppid, which nothing else in memshim needs. The first thread's file, whose fields these are too: what
 * a process reads of its own stat under qemu is made up, and its start another one than all others read. */
static MS_NOINLINE void note_origin(struct ms_process *row)
{
    char path[48], text[1024] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)row->pid);
    if (process_read_file(path, text, sizeof text) <= 0)
        return;
    row->ppid = (int32_t)stat_field(text, 4);
    row->start_ticks = stat_field(text, 22);
}

static void note_clocks(struct ms_process *row)
{
    struct timespec t;
    uint64_t now_ns = ms_ledger_now();
    clock_gettime(CLOCK_REALTIME, &t);
    row->start_unix_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - now_ns;
    row->start_monotonic_ns = ms_events_started_ns();
}

void ms_process_describe(void)
{
    int saved_errno = errno;
    struct ms_process *row = ms_process();
    char host[256] = "";
    struct stat status;
    if (atomic_load_explicit(&row->described, memory_order_acquire))
        return;
    if (!*start_directory)
        ms_process_note_directory();
    ms_objects_refresh();
    row->pid = (int32_t)getpid();
    row->run_id = (uint64_t)ms_option_int(MS_OPT_RUN);
    row->job = job_of(row->run_id);
    note_origin(row);
    row->pid_space = stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
    row->timeline_buckets = ms_history_buckets();
    note_clocks(row);
    gethostname(host, sizeof host - 1);
    process_put("exe", ms_process_executable());
    process_put("cwd", start_directory);
    process_put("host", host);
    process_put_number("rank", rank_names, MS_ARRAY_LEN(rank_names));
    process_put_number("local_rank", local_rank_names, MS_ARRAY_LEN(local_rank_names));
    process_put_number("world_size", world_size_names, MS_ARRAY_LEN(world_size_names));
    if (first_set(job_id_names, MS_ARRAY_LEN(job_id_names)))
        process_put("job_id", first_set(job_id_names, MS_ARRAY_LEN(job_id_names)));
    put_arguments();
    put_options();
    atomic_store_explicit(&row->described, 1, memory_order_release);
    errno = saved_errno;
}
