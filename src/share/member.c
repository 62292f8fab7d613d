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
enum { DESCRIPTOR_LEAST = 900, LOCK_NAPS_MOST = 200, PROGRAM_BYTES = 512, WHY_BYTES = 400, ENTRIES_MOST = 4 };

struct member {
    struct ms_admission admission;
    _Atomic bool is_there; /* else the process is alone */
    char path[MS_PAGE_PATH];
    int fd;
    struct stat file;
    uint64_t token;
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

/* In a user namespace that has no number for root, its files look like nobody's (user_namespaces(7)). The
 * initial one has a fixed number in every Linux (PROC_USER_INIT_INO, include/linux/proc_ns.h). */
static bool is_roots(uid_t owner)
{
    enum { NOBODY = 65534 };
    const ino_t initial = 0xEFFFFFFDU;
    struct stat namespace;
    return owner == 0 ||
           (owner == NOBODY && stat("/proc/self/ns/user", &namespace) == 0 && namespace.st_ino != initial);
}

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
    else if (of_group &&
             (status.st_mode & S_IWOTH || (!is_roots(status.st_uid) && status.st_uid != geteuid())))
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
        snprintf(path, MS_PAGE_PATH, "%.400s/" MS_SHARE_PREFIX "%s", directory, id);
    else
        snprintf(path, MS_PAGE_PATH, "%.400s/" MS_SHARE_PREFIX "%u-%s", directory, (unsigned)geteuid(), id);
}

static struct ms_share_page *open_in(struct member *member, const char *directory, char *why,
                                     size_t why_bytes)
{
    char *path = member->path;
    bool of_group = member->wish.directory != NULL;
    struct ms_page_wish wish = {.path = path, .is_shared = of_group, .total_bytes = member->wish.total_bytes};
    if (!is_place(directory, of_group, why, why_bytes))
        return NULL;
    memcpy(wish.uuid, member->wish.uuid, sizeof wish.uuid);
    page_path(path, directory, wish.uuid, of_group);
    return ms_page_open(&wish, &member->fd, &member->file, why, why_bytes);
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
    char program[PROGRAM_BYTES];
    row->pid = (uint64_t)ms_process()->pid;
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

static bool page_enter(struct member *member, char *why, size_t why_bytes)
{
    struct ms_admission *admission = &member->admission;
    admission->page = page_find(member, why, why_bytes);
    if (!admission->page)
        return false;
    move_up(member);
    *why = '\0';
    bool claimed = row_claim(member, why, why_bytes);
    /* Asked behind the lock of a row, since memshim clean removes a page under the locks of all. */
    bool is_left = ms_page_is_at(member->path, &member->file);
    if (claimed && is_left)
        return true;
    if (!is_left)
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
    ms_admission_begin(admission, member->wish.total_bytes);
    ms_admission_tell_free(admission->page, member->wish.free_bytes);
    enum ms_share_joined joined = !member->wish.guarantee_bytes || guarantee(member, why, why_bytes)
                                      ? MS_SHARE_JOINED
                                      : MS_SHARE_UNGUARANTEED;
    atomic_store_explicit(&member->is_there, true, memory_order_release);
    return joined;
}

/* --- a place that was lost --- */

/* True if the descriptor is still the page's. */
static bool file_is_open(const struct member *member)
{
    struct stat now;
    return fstat(member->fd, &now) == 0 && now.st_dev == member->file.st_dev &&
           now.st_ino == member->file.st_ino;
}

/* The page itself is mapped still; the file by its name must be the same. */
static bool file_open_again(struct member *member)
{
    member->fd = open(member->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file_is_open(member)) {
        move_up(member);
        return true;
    }
    if (member->fd >= 0)
        close(member->fd);
    return false;
}

/* Others may have found the row left, and cleared it; then all is told anew. */
static bool row_is_held(struct member *member)
{
    struct ms_admission *admission = &member->admission;
    const struct ms_share_row *own = &admission->page->rows[admission->row];
    return ms_page_lock(member->fd, admission->row, 1, true) && atomic_load(&own->is_taken) &&
           atomic_load(&own->token) == member->token;
}

/* The place is not had again, or nothing is kept there any more. */
static void say_lost(const struct member *member, const char *what, const char *why)
{
    int device = member->wish.device;
    if (member->wish.guarantee_bytes)
        ms_diagnostic(MS_LOG_WARN, "share",
                      "the place on the page of %s %d was lost (its descriptor was closed), %s: %s",
                      ms_device_api(device), ms_device_index(device), what, why);
}

static void row_take_again(struct member *member, uint64_t used_bytes)
{
    struct ms_admission *admission = &member->admission;
    char why[WHY_BYTES] = "its file cannot be opened again";
    if (file_is_open(member) && row_is_held(member)) /* another thread has taken it */
        return;
    if ((!file_is_open(member) && !file_open_again(member)) || !row_claim(member, why, sizeof why)) {
        atomic_store(&member->is_there, false);
        say_lost(member, "and is not had again", why);
        return;
    }
    atomic_store(&admission->page->rows[admission->row].most_bytes, member->wish.most_bytes);
    ms_admission_note(admission, used_bytes);
    if (member->wish.guarantee_bytes && !guarantee(member, why, sizeof why))
        say_lost(member, "and nothing is kept for this process any more", why);
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
    int saved_errno = errno;
    ms_lock(&join_lock);
    member->wish = *wish;
    enum ms_share_joined joined = join(member, why, why_bytes);
    ms_unlock(&join_lock);
    errno = saved_errno;
    return joined;
}

struct ms_admission *ms_share_of(int device)
{
    struct member *member = device >= 0 && device < MS_DEVICES_MAX ? &members[device] : NULL;
    return member && atomic_load_explicit(&member->is_there, memory_order_acquire) ? &member->admission
                                                                                   : NULL;
}

/* The descriptor is the parent's as well where both have one table of them, and is left open. */
static void member_reset(void)
{
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        struct member *member = &members[i];
        if (atomic_load(&member->is_there))
            munmap(member->admission.page, sizeof *member->admission.page);
        atomic_store(&member->is_there, false);
        ms_lock_reset(&member->admission.lock);
    }
    ms_lock_reset(&join_lock);
}
MS_AT_FORK(MS_FORK_SERVICE, member_reset);
