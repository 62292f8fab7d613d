/* stale.c - see stale.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/options/options.h"
#include "base/run_list.h"
#include "record/file/job_copies.h"
#include "record/file/stale.h"
#include "record/ipc/ipc_exports.h"

enum { STALE_MAX = 1024, ENTRIES_MAX = 16384, PART_OF_SYSTEM = 10, NS = 1000000000 };
#define DAY_NS (86400 * (uint64_t)NS)

/* As getdents64 has it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static struct ms_stale found[STALE_MAX];
static unsigned count;
static uint64_t all_bytes; /* of this user's ledgers, of the living too */

static uint64_t now_unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* The state and the start of a process's first thread; 0 if they cannot be read. */
static char read_stat(int pid, uint64_t *start_p)
{
    static char text[1024];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *name_end = strrchr(text, ')'), *field = name_end;
    for (int i = 2; i < 22 && field; i++)
        field = strchr(field + 1, ' ');
    *start_p = field ? strtoull(field, NULL, 10) : 0;
    return field && name_end[1] == ' ' ? name_end[2] : 0;
}

/* Certainly so. Whose first thread has ended may have others. */
bool ms_stale_has_ended(const struct ms_process *process)
{
    struct stat space;
    uint64_t start;
    if (process->pid <= 0 || stat("/proc/self/ns/pid", &space) != 0 ||
        (uint64_t)space.st_ino != process->pid_space)
        return false;
    if (syscall(SYS_tgkill, process->pid, process->pid, 0) != 0 && errno == ESRCH)
        return true;
    return read_stat(process->pid, &start) != 0 && start && process->start_ticks &&
           start != process->start_ticks;
}

/* When something happened in it last. A file that is mapped need not show that by its time. */
static uint64_t last_unix_ns(const struct ms_process *process, const struct stat *status)
{
    uint64_t last = (uint64_t)status->st_mtim.tv_sec * NS + (uint64_t)status->st_mtim.tv_nsec;
    uint64_t ran = atomic_load(&process->latest_ns), end = atomic_load(&process->end_ns);
    ran = process->start_unix_ns + (end > ran ? end : ran);
    return ran > last ? ran : last;
}

static bool is_ledger(const char *name)
{
    size_t length = strlen(name);
    return length < MS_JOURNAL_NAME_BYTES && length > strlen("memshim-.ledger") &&
           !memcmp(name, "memshim-", strlen("memshim-")) &&
           !strcmp(name + length - strlen(".ledger"), ".ledger");
}

/* True if it was written to since: its process is younger still, and nothing has to be opened. */
static bool stale_is_young(int directory_fd, const char *name, uint64_t since_ns)
{
    struct stat status;
    if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_uid != geteuid())
        return true;
    all_bytes += (uint64_t)status.st_blocks * 512;
    return (uint64_t)status.st_mtim.tv_sec * NS + (uint64_t)status.st_mtim.tv_nsec > since_ns;
}

static void stale_look_at(int directory_fd, const char *name, uint64_t now_ns)
{
    static struct ms_process process; /* as all here for one caller at a time, whose stack may be small */
    struct stat status;
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (count < STALE_MAX && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == geteuid() && ms_ledger_file_process(fd, &process) && ms_stale_has_ended(&process)) {
        struct ms_stale *stale = &found[count++];
        uint64_t last_ns = last_unix_ns(&process, &status);
        strcpy(stale->name, name);
        stale->pid = process.pid;
        stale->bytes = (uint64_t)status.st_blocks * 512;
        stale->age_ns = last_ns < now_ns ? now_ns - last_ns : 0;
        stale->goes = process.run_id && stale->age_ns < DAY_NS && ms_run_list_is_there(process.run_id);
        if (stale->goes) /* it is being waited for */
            count--;
    }
    close(fd);
}

/* A directory; `memshim run` reads it when all of the run has ended. */
static void stale_look_at_copies(int directory_fd, const char *name, uint64_t now_ns)
{
    struct ms_job_copies_sum sum;
    if (count == STALE_MAX || !ms_job_copies_sum(directory_fd, name, &sum) ||
        (sum.run_id && ms_run_list_is_there(sum.run_id)))
        return;
    struct ms_stale *stale = &found[count++];
    *stale = (struct ms_stale){.bytes = sum.bytes, .age_ns = sum.unix_ns < now_ns ? now_ns - sum.unix_ns : 0};
    strcpy(stale->name, name);
}

void ms_stale_names(int directory_fd, void *buffer, size_t bytes, ms_stale_name_t visit, void *arg)
{
    unsigned seen = 0;
    long got;
    lseek(directory_fd, 0, SEEK_SET);
    while (seen < ENTRIES_MAX && (got = syscall(SYS_getdents64, directory_fd, buffer, bytes)) > 0) {
        for (long at = 0; at < got; seen++) {
            const struct entry *entry = (const struct entry *)(const void *)((char *)buffer + at);
            visit(arg, directory_fd, entry->name);
            at += entry->bytes;
        }
    }
}

struct collecting {
    uint64_t now_ns, since_ns;
};

static void stale_visit(void *arg, int directory_fd, const char *name)
{
    const struct collecting *collecting = arg;
    if (is_ledger(name) && !stale_is_young(directory_fd, name, collecting->since_ns))
        stale_look_at(directory_fd, name, collecting->now_ns);
    else if (ms_job_copies_is_name(name) && !stale_is_young(directory_fd, name, collecting->since_ns))
        stale_look_at_copies(directory_fd, name, collecting->now_ns);
}

static void stale_collect(int directory_fd, uint64_t now_ns, uint64_t since_ns)
{
    static _Alignas(struct entry) char buffer[16384];
    struct collecting collecting = {now_ns, since_ns};
    count = 0;
    all_bytes = 0;
    ms_stale_names(directory_fd, buffer, sizeof buffer, stale_visit, &collecting);
}

/* The oldest first. */
static void stale_sort(void)
{
    for (unsigned i = 1; i < count; i++) {
        struct ms_stale stale = found[i];
        unsigned k = i;
        for (; k > 0 && found[k - 1].age_ns < stale.age_ns; k--)
            found[k] = found[k - 1];
        found[k] = stale;
    }
}

static uint64_t part_of_system(int directory_fd)
{
    struct statfs system;
    if (fstatfs(directory_fd, &system) != 0 || !system.f_blocks)
        return UINT64_MAX;
    return (uint64_t)system.f_blocks * (uint64_t)system.f_bsize / PART_OF_SYSTEM;
}

static void stale_choose(uint64_t keep_ns, uint64_t most)
{
    uint64_t sum = 0;
    for (unsigned i = count; i-- > 0;) {
        sum += found[i].bytes;
        found[i].goes = sum > most || found[i].age_ns >= keep_ns;
    }
}

void ms_stale_clean(int directory_fd, bool dry, void (*visit)(void *arg, const struct ms_stale *stale),
                    void *arg)
{
    int saved_errno = errno;
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        uint64_t keep_ns = (uint64_t)ms_option_int(MS_OPT_DIR_KEEP) * NS, most = part_of_system(fd);
        uint64_t now_ns = now_unix_ns(), all = UINT64_MAX;
        stale_collect(fd, now_ns, visit || !keep_ns ? all : now_ns > keep_ns ? now_ns - keep_ns : 0);
        if (!visit && all_bytes > most)
            stale_collect(fd, now_ns, all);
        stale_sort();
        stale_choose(keep_ns, most);
        for (unsigned i = 0; i < count; i++) {
            if (found[i].goes && !dry && !found[i].pid)
                ms_job_copies_remove(fd, found[i].name);
            else if (found[i].goes && !dry)
                unlinkat(fd, found[i].name, 0);
            if (visit)
                visit(arg, &found[i]);
        }
        close(fd);
    }
    errno = saved_errno;
}
