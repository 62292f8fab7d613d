/* member.c - see member.h.
 *
 * Locks of the kernel's are on bytes of the page's file: one for each row, held for as long as the process
 * lives, and one more, held while a guarantee is checked. They are those of fcntl, which belong to a process:
 * a child of fork does not hold its parent's. */
#include "share/member.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/at_fork.h"
#include "base/clock.h"
#include "base/devices.h"
#include "base/files.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/options/options.h"
#include "record/file/journal.h"
#include "record/file/process.h"
#include "share/page_file.h"

/* Descriptors so high are seldom closed by programs that close a range of them. */
enum {
    DESCRIPTOR_LEAST = 900,
    LOCK_NAPS_MOST = 200,
    PROGRAM_BYTES = 512,
    WHY_BYTES = 400,
    ENTRIES_MOST = 4,
    END_MOST_MS = 100
};

struct member {
    struct ms_admission admission;
    _Atomic(struct ms_share_page *) page; /* NULL: alone */
    char path[MS_PAGE_PATH];
    int fd;
    dev_t file_device;
    ino_t file;
    uint64_t token;
    bool is_asked;
    struct ms_share_wish wish;
};

static struct ms_lock join_lock = MS_LOCK_INIT(MS_RANK_SHARE_JOIN);
static struct member members[MS_DEVICES_MAX];

static struct member *member_of(struct ms_admission *admission)
{
    return (struct member *)(void *)admission; /* its first part */
}

static bool row_has_ended(struct ms_admission *self, unsigned row)
{
    return ms_page_lock(member_of(self)->fd, row, 1, true);
}

static void row_leave(struct ms_admission *self, unsigned row)
{
    ms_page_lock(member_of(self)->fd, row, 1, false);
}

/* --- where the page is --- */

/* A page on a network would be shared by machines that have other devices, and a mapped file there could end
 * the program. */
static bool is_place(const char *directory, bool of_group, char *why, size_t why_bytes)
{
    struct statfs system;
    struct stat status;
    const char *network;
    int error = statfs(directory, &system) != 0 || stat(directory, &status) != 0 ? errno : 0;
    if (error) {
        snprintf(why, why_bytes, "%.300s: %s", directory, ms_error_text(error));
        return false;
    }
    network = ms_journal_network_name((unsigned long)system.f_type);
    if (network)
        snprintf(why, why_bytes, "%.300s is on %s", directory, network);
    else if (of_group && (status.st_mode & S_IWOTH || (status.st_uid != 0 && status.st_uid != geteuid())))
        snprintf(why, why_bytes, "%.300s must be root's, and nobody but its group may write there",
                 directory);
    else
        return true;
    return false;
}

static void page_path(char *path, const char *directory, const uint8_t uuid[16], bool of_group)
{
    char id[33];
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02x", uuid[i]);
    if (of_group)
        snprintf(path, MS_PAGE_PATH, "%.400s/memshim-share-%s", directory, id);
    else
        snprintf(path, MS_PAGE_PATH, "%.400s/memshim-share-%u-%s", directory, (unsigned)geteuid(), id);
}

static struct ms_share_page *open_in(struct member *member, const char *directory, char *why,
                                     size_t why_bytes)
{
    char *path = member->path;
    bool of_group = member->wish.directory != NULL;
    struct ms_page_wish wish = {.path = path, .is_shared = of_group, .total_bytes = member->wish.total_bytes};
    struct stat status;
    if (!is_place(directory, of_group, why, why_bytes))
        return NULL;
    memcpy(wish.uuid, member->wish.uuid, sizeof wish.uuid);
    page_path(path, directory, wish.uuid, of_group);
    struct ms_share_page *page = ms_page_open(&wish, &member->fd, &status, why, why_bytes);
    if (page) {
        member->file_device = status.st_dev;
        member->file = status.st_ino;
    }
    return page;
}

static struct ms_share_page *page_find(struct member *member, char *why, size_t why_bytes)
{
    static char text[PATH_MAX];
    const char *directory;
    struct ms_share_page *page = NULL;
    if (member->wish.directory)
        return open_in(member, member->wish.directory, why, why_bytes);
    for (unsigned i = 0; !page && (directory = ms_journal_directory(i, text, sizeof text)); i++)
        page = open_in(member, directory, why, why_bytes);
    return page;
}

/* --- a row --- */

/* A number that is out of the way of programs; the lock is taken after this, since it would go with the old
 * number. */
static void move_up(struct member *member)
{
    int high = fcntl(member->fd, F_DUPFD_CLOEXEC, DESCRIPTOR_LEAST);
    if (high < 0)
        return;
    close(member->fd);
    member->fd = high;
}

static void row_describe(struct member *member, struct ms_share_row *row)
{
    const struct ms_process *process = ms_process();
    char program[PROGRAM_BYTES];
    row->pid = (uint32_t)process->pid;
    row->start_ticks = process->start_ticks;
    row->pid_space = process->pid_space;
    row->uid = geteuid();
    member->token = ms_clock_ns() ^ (uint64_t)getpid() << 48;
    atomic_store(&row->token, member->token);
    ms_file_executable(program, sizeof program);
    snprintf(row->name, sizeof row->name, "%.*s", (int)sizeof row->name - 1, ms_file_name(program));
}

static bool row_claim(struct member *member, char *why, size_t why_bytes)
{
    for (unsigned i = 0; i < MS_SHARE_ROWS; i++) {
        if (!ms_page_lock(member->fd, i, 1, true))
            continue;
        row_describe(member, &member->admission.page->rows[i]);
        ms_admission_join(&member->admission, i);
        return true;
    }
    snprintf(why, why_bytes, "%d processes are on the page of the device already", MS_SHARE_ROWS);
    return false;
}

/* One process at a time. Nobody is waited for longer than a moment. */
static bool guarantee(struct member *member, char *why, size_t why_bytes)
{
    uint64_t nap = 0, missing = 0;
    bool locked = false, given = false;
    for (int i = 0; i < LOCK_NAPS_MOST && !locked; i++) {
        locked = ms_page_lock(member->fd, MS_SHARE_ROWS, 1, true);
        if (!locked)
            ms_clock_sleep_longer(&nap);
    }
    if (locked) {
        given = ms_admission_guarantee(&member->admission, member->wish.guarantee_bytes, &missing);
        ms_page_lock(member->fd, MS_SHARE_ROWS, 1, false);
    }
    if (!locked)
        snprintf(why, why_bytes, "another process is in the middle of joining, and does not go on");
    else if (!given)
        snprintf(why, why_bytes,
                 "the guarantees of all processes on the device would be %llu bytes more than it has",
                 (unsigned long long)missing);
    return given;
}

/* The file by the page's name is the one that is open. Asked behind the lock of a row, since who removes a
 * page holds all of them. */
static bool file_is_there(const struct member *member)
{
    struct stat status;
    return lstat(member->path, &status) == 0 && status.st_dev == member->file_device &&
           status.st_ino == member->file;
}

static bool page_enter(struct member *member, char *why, size_t why_bytes)
{
    struct ms_admission *admission = &member->admission;
    admission->page = page_find(member, why, why_bytes);
    if (!admission->page)
        return false;
    move_up(member);
    *why = '\0';
    bool claimed = row_claim(member, why, why_bytes);
    if (file_is_there(member) && claimed)
        return true;
    if (!file_is_there(member)) /* it was removed meanwhile (memshim clean) */
        *why = '\0';
    if (claimed)
        ms_admission_clear(admission->page, admission->row);
    munmap(admission->page, sizeof *admission->page);
    close(member->fd);
    return false;
}

/* Under the join's lock. */
static enum ms_share_joined join(struct member *member, char *why, size_t why_bytes)
{
    struct ms_admission *admission = &member->admission;
    bool entered = false;
    admission->has_ended = row_has_ended;
    admission->left = row_leave;
    admission->lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_SHARE);
    *why = '\0';
    for (int i = 0; i < ENTRIES_MOST && !entered && !*why; i++)
        entered = page_enter(member, why, why_bytes);
    if (!entered && !*why)
        snprintf(why, why_bytes, "the page is made and removed all the time");
    if (!entered)
        return MS_SHARE_ALONE;
    atomic_store(&admission->page->rows[admission->row].most_bytes, member->wish.most_bytes);
    ms_admission_note(admission, member->wish.used_bytes);
    bool is_first = ms_admission_begin(admission, member->wish.total_bytes);
    if (member->wish.free_bytes != UINT64_MAX || !is_first)
        ms_admission_tell_free(admission->page, member->wish.free_bytes);
    enum ms_share_joined joined = !member->wish.guarantee_bytes || guarantee(member, why, why_bytes)
                                      ? MS_SHARE_JOINED
                                      : MS_SHARE_UNGUARANTEED;
    atomic_store_explicit(&member->page, admission->page, memory_order_release);
    return joined;
}

/* --- a place that was lost --- */

/* True if the descriptor is still the page's. */
static bool file_is_open(const struct member *member)
{
    struct stat status;
    return fstat(member->fd, &status) == 0 && status.st_dev == member->file_device &&
           status.st_ino == member->file;
}

/* The page itself is mapped still; the file by its name must be the same. */
static bool file_open_again(struct member *member)
{
    static char path[MS_PAGE_PATH + 32];
    struct stat status;
    snprintf(path, sizeof path, "%s", member->path);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &status) != 0 || status.st_dev != member->file_device || status.st_ino != member->file) {
        close(fd);
        return false;
    }
    member->fd = fd;
    move_up(member);
    return true;
}

/* Others may have found the row left, and cleared it; then all is told anew. */
static bool row_is_held(struct member *member)
{
    struct ms_admission *admission = &member->admission;
    const struct ms_share_row *own = &admission->page->rows[admission->row];
    return ms_page_lock(member->fd, admission->row, 1, true) && atomic_load(&own->is_taken) &&
           atomic_load(&own->token) == member->token;
}

static void leave_alone(struct member *member, const char *why)
{
    atomic_store(&member->page, NULL);
    if (member->wish.guarantee_bytes)
        ms_diagnostic(MS_LOG_WARN, "share",
                      "the place on the page of device %d was lost, and is not had again: %s",
                      member->wish.device, why);
}

static void row_take_again(struct member *member, uint64_t used_bytes)
{
    struct ms_admission *admission = &member->admission;
    char why[WHY_BYTES];
    if (!file_is_open(member) && !file_open_again(member)) {
        leave_alone(member, "its file cannot be opened again");
    } else if (!row_is_held(member)) {
        if (!row_claim(member, why, sizeof why)) {
            leave_alone(member, why);
            return;
        }
        atomic_store(&admission->page->rows[admission->row].most_bytes, member->wish.most_bytes);
        ms_admission_note(admission, used_bytes);
        if (member->wish.guarantee_bytes && !guarantee(member, why, sizeof why))
            ms_diagnostic(
                MS_LOG_WARN, "share",
                "the place on the page of device %d was lost (its descriptor was closed), and nothing is "
                "kept for this process any more: %s",
                member->wish.device, why);
    }
}

struct ms_admission *ms_share_held(int device, uint64_t used_bytes)
{
    struct ms_admission *admission = ms_share_of(device);
    struct member *member = admission ? member_of(admission) : NULL;
    int saved_errno = errno;
    if (MS_LIKELY(!member || (file_is_open(member) && row_is_held(member)))) {
        errno = saved_errno;
        return admission;
    }
    ms_lock(&join_lock);
    row_take_again(member, used_bytes);
    ms_unlock(&join_lock);
    errno = saved_errno;
    return ms_share_of(device);
}

/* --- from outside --- */

bool ms_share_group(char *path, size_t bytes)
{
    const char *text = ms_option_text(MS_OPT_SHARE_GROUP);
    snprintf(path, bytes, "%s%s", *text == '/' ? "" : "/run/memshim/", text);
    return *text != '\0';
}

enum ms_share_joined ms_share_join(const struct ms_share_wish *wish, char *why, size_t why_bytes)
{
    struct member *member = &members[wish->device];
    enum ms_share_joined joined = MS_SHARE_ALONE;
    int saved_errno = errno;
    *why = '\0';
    ms_lock(&join_lock);
    if (!member->is_asked) {
        member->is_asked = true;
        member->wish = *wish;
        joined = join(member, why, why_bytes);
    } else if (atomic_load(&member->page)) {
        joined = MS_SHARE_JOINED;
    }
    ms_unlock(&join_lock);
    errno = saved_errno;
    return joined;
}

struct ms_admission *ms_share_of(int device)
{
    struct member *member = device >= 0 && device < MS_DEVICES_MAX ? &members[device] : NULL;
    return member && atomic_load_explicit(&member->page, memory_order_acquire) ? &member->admission : NULL;
}

/* The descriptor is the parent's as well where both have one table of them, and is left open. */
static void member_reset(void)
{
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        struct member *member = &members[i];
        if (atomic_load(&member->page))
            munmap(member->admission.page, sizeof *member->admission.page);
        atomic_store(&member->page, NULL);
        member->is_asked = false;
        ms_lock_reset(&member->admission.lock);
    }
    ms_lock_reset(&join_lock);
}
MS_AT_FORK(MS_FORK_SERVICE, member_reset);
