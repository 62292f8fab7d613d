/* journal.c - the file of the record; see journal.h.
 *
 * Floor 2. Made at the first event that is recorded, under a lock of its own, with nothing else held. A
 * directory that other users can write to may hold anything under our name: the file is only ever created
 * (O_EXCL), never opened, and no link is followed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread/cancel.h"
#include "base/clock.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/options/options.h"
#include "base/thread/slow_path.h"
#include "record/file/journal.h"
#include "record/file/stale.h"
#include "record/file/trace.h"
#include "record/live/uses.h"

enum { REASON_BYTES = 400 };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_JOURNAL);
static _Atomic bool opened;
static _Atomic int error_said;
static char path[PATH_MAX];

const char *ms_journal_path(void)
{
    return path;
}

const char *ms_journal_network_name(unsigned long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } networks[] = {
        {0x6969, "NFS"},          {0x517b, "SMB"},       {0xff534d42, "CIFS"},   {0xfe534d42, "SMB"},
        {0x01021997, "9p"},       {0x65735546, "FUSE"},  {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
        {0x00c36400, "Ceph"},     {0x5346414f, "AFS"},   {0x6b414653, "AFS"},    {0x73757245, "Coda"},
        {0x7461636f, "OCFS2"},    {0x01161970, "GFS2"},  {0x19830326, "BeeGFS"}, {0xaad7aaea, "PanFS"},
        {0x20030528, "OrangeFS"}, {0x564c, "NCP"},       {0x786f4256, "vboxsf"}, {0xbacbacbc, "vmhgfs"},
        {0x7c7c6673, "prl_fs"},   {0x013111a8, "IBRIX"}, {0x61636673, "ACFS"},   {0xbeefdead, "StorNext"},
        {0x00c0ffee, "hostfs"},   {0x45584653, "exaFS"},
    };
    for (unsigned i = 0; i < MS_ARRAY_LEN(networks); i++) {
        if (networks[i].type == (type & 0xffffffff))
            return networks[i].name;
    }
    return NULL;
}

void ms_journal_name(char *name, size_t bytes, int pid, uint64_t start_ticks, int number)
{
    char suffix[16] = "";
    if (number > 1)
        snprintf(suffix, sizeof suffix, ".%d", number);
    snprintf(name, bytes, "memshim-%d-%llu%s.ledger", pid, (unsigned long long)start_ticks, suffix);
}

/* A new file in the directory; its name ends up in `path`. The process had a record already if it was started
 * by exec: then the name gets a number. Returns a descriptor, or -1 with errno. */
static int create_in(int directory_fd, const char *directory)
{
    const struct ms_process *process = ms_process();
    char name[MS_JOURNAL_NAME_BYTES];
    for (int i = 1; i <= MS_JOURNAL_NAMES; i++) {
        ms_journal_name(name, sizeof name, (int)process->pid, process->start_ticks, i);
        if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Attaches a new file in `directory`. False with the reason in words. */
static bool place_in(const char *directory, char *why, size_t why_bytes)
{
    struct statfs system;
    int fd = -1, error = 0;
    int directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *network = NULL;
    if (directory_fd < 0 || fstatfs(directory_fd, &system) != 0)
        error = errno;
    else if (!(network = ms_journal_network_name((unsigned long)system.f_type)))
        error = (fd = create_in(directory_fd, directory)) < 0 ? errno : ms_store_attach(fd, path);
    if (fd >= 0 && error)
        unlink(path);
    else if (fd >= 0)
        ms_stale_clean(directory_fd, false, NULL, NULL);
    if (fd >= 0)
        close(fd);
    if (directory_fd >= 0)
        close(directory_fd);
    if (!error && !network)
        return true;
    path[0] = '\0';
    if (network)
        snprintf(why, why_bytes, "%.300s is on %s, and a mapped file there could end the program", directory,
                 network);
    else
        snprintf(why, why_bytes, "%.300s: %s", directory, ms_error_text(error));
    return false;
}

/* A file's name must mean the same wherever the program goes. */
static const char *absolute(const char *directory, char *text, size_t bytes)
{
    if (*directory == '/')
        return directory;
    if ((size_t)snprintf(text, bytes, "%s/%s", ms_process_directory(), directory) >= bytes)
        return directory;
    return text;
}

const char *ms_journal_directory(unsigned i, char *text, size_t bytes)
{
    const char *chosen = ms_option_text(MS_OPT_DIR), *runtime = getenv("XDG_RUNTIME_DIR");
    const char *usual[] = {"/dev/shm", runtime && *runtime == '/' ? runtime : "/tmp", "/tmp"};
    unsigned count = MS_ARRAY_LEN(usual) - (usual[1] != runtime);
    if (*chosen)
        return i == 0 ? absolute(chosen, text, bytes) : NULL;
    return i < count ? usual[i] : NULL;
}

static bool journal_place(char *why, size_t why_bytes)
{
    static char text[PATH_MAX];
    const char *directory;
    char reason[REASON_BYTES];
    for (unsigned i = 0; (directory = ms_journal_directory(i, text, sizeof text)); i++) {
        if (place_in(directory, reason, sizeof reason))
            return true;
        if (i == 0)
            snprintf(why, why_bytes, "%.*s", (int)why_bytes - 1, reason);
    }
    return false;
}

static void open_file(void)
{
    char why[REASON_BYTES];
    ms_clock_start();
    ms_process_open();
    ms_process_describe();
    if (!journal_place(why, sizeof why))
        ms_diagnostic(MS_LOG_WARN, "ledger", "no file: %s; if the process is killed its record is lost", why);
    ms_trace_start();
    ms_uses_open();
}

/* Said when nothing is locked, and once. */
static void say_error(int error)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&error_said, &none, error) && *path) /* else the report has it all */
        ms_diagnostic(MS_LOG_WARN, "ledger",
                      "%s cannot grow: %s; the record goes on in memory, if the process is killed what came "
                      "later is lost",
                      path, ms_error_text(error));
}

static bool has_aborted(void)
{
    return atomic_load_explicit(&ms_process()->end_reason, memory_order_relaxed) == MS_END_SIGNAL;
}

MS_NOINLINE void ms_ledger_touch_slowly(void)
{
    int error = atomic_load_explicit(&ms_store_error, memory_order_relaxed);
    int saved_errno = errno, cancel_state = ms_cancel_hold();
    ms_lock(&lock);
    if (!atomic_load_explicit(&opened, memory_order_relaxed)) {
        open_file();
        atomic_store_explicit(&opened, true, memory_order_release);
    }
    ms_unlock(&lock);
    ms_events_touch();
    if (error)
        say_error(error);
    /* Before the look: who aborts just now stores the reason first and then that there is something to do. */
    ms_slow_path_clear(MS_SLOW_PATH_RECORD);
    if (atomic_load(&ms_store_error) != atomic_load(&error_said))
        ms_slow_path_set(MS_SLOW_PATH_RECORD); /* for who comes next */
    /* A handler of SIGABRT jumped out of it: the process lives. (Handlers of quick_exit use the GPU as well,
     * but do end.) */
    if (has_aborted())
        ms_journal_end_taken_back();
    ms_cancel_release(cancel_state);
    errno = saved_errno;
}

void ms_journal_end(enum ms_end_reason reason, int code)
{
    struct ms_process *process = ms_process();
    if (!atomic_load_explicit(&process->described, memory_order_acquire) ||
        process->pid != (int32_t)syscall(SYS_getpid))
        return;
    atomic_store_explicit(&process->end_code, code, memory_order_relaxed);
    atomic_store_explicit(&process->end_ns, ms_ledger_now(), memory_order_relaxed);
    atomic_store(&process->end_reason, reason);
    ms_slow_path_set(MS_SLOW_PATH_RECORD);
}

void ms_journal_end_taken_back(void)
{
    struct ms_process *process = ms_process();
    if (!atomic_load_explicit(&process->described, memory_order_acquire) ||
        process->pid != (int32_t)syscall(SYS_getpid))
        return;
    atomic_store_explicit(&process->end_reason, MS_END_NONE, memory_order_relaxed);
    atomic_store_explicit(&process->end_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&process->end_code, -1, memory_order_release);
}

void ms_journal_remove(void)
{
    int saved_errno = errno;
    if (*path)
        unlink(path);
    path[0] = '\0';
    errno = saved_errno;
}

static void journal_reset(void)
{
    atomic_store_explicit(&opened, false, memory_order_relaxed);
    ms_slow_path_set(MS_SLOW_PATH_RECORD);
    atomic_store_explicit(&error_said, 0, memory_order_relaxed);
    path[0] = '\0';
    ms_lock_reset(&lock);
}
MS_AT_FORK(MS_FORK_RECORD, journal_reset);
