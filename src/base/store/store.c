/* store.c - the reserved range, and taking memory for its tables.
 *
 * Floor 0. Everything that changes which memory lies where happens under one lock, with all signals blocked:
 * it may hold a descriptor for some microseconds. No descriptor is kept, for the host may close any (and open
 * a file of its own under the number): the file is opened again by its name to grow, and taken only if it is
 * the same file still. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/thread/cancel.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/signals.h"
#include "base/store/store.h"
#include "base/thread/slow_path.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { STEP_SMALL = 16 * 1024, STEP_LARGE_PAGES = 64 * 1024, STEP_MAX = 4 * 1024 * 1024 };
/* So much of a file system, and no more than half of it, is left to others (tests/containers). */
enum { LEFT_TO_OTHERS = 256 * 1024 * 1024 };

static const struct {
    const char *name;
    uint64_t row_bytes, capacity;
    size_t offset, bytes;
} layout[MS_TABLE_COUNT] = {
#define MS_TABLE(id, name, row_bytes, rows)                                                                  \
    [MS_TABLE_##id] = {name, row_bytes, rows, offsetof(struct ms_store_layout, id),                          \
                       sizeof(((struct ms_store_layout *)0)->id)},
#include "base/store/tables.def"
#undef MS_TABLE
};

char *_Atomic ms_store_base;
_Atomic int ms_store_error;

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_STORE);
struct ms_table_state ms_table_states[MS_TABLE_COUNT];

/* The file, once there is one. */
static struct {
    char path[PATH_MAX]; /* "" for none */
    dev_t device;
    ino_t inode;
} file;

static struct ms_store_header *header(void)
{
    return (struct ms_store_header *)(void *)atomic_load_explicit(&ms_store_base, memory_order_relaxed);
}

/* While a file grows no handler may run: a descriptor is open. */
struct quiet {
    struct ms_signals held;
    int cancel_state;
};

static void be_quiet(struct quiet *quiet)
{
    quiet->cancel_state = ms_cancel_hold();
    ms_signals_hold(&quiet->held, true);
}

static void speak_again(const struct quiet *quiet)
{
    ms_signals_release(&quiet->held);
    ms_cancel_release(quiet->cancel_state);
}

static bool map_anonymous(size_t offset, size_t bytes)
{
    char *place = atomic_load_explicit(&ms_store_base, memory_order_relaxed) + offset;
    if (mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
             -1, 0) == MAP_FAILED)
        return false;
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, place, bytes, "memshim");
    return true;
}

static void store_describe(struct ms_store_header *empty)
{
    memcpy(empty->magic, MS_STORE_MAGIC, sizeof empty->magic);
    empty->version = MS_STORE_VERSION;
    empty->byte_order = MS_STORE_BYTE_ORDER;
    empty->header_bytes = MS_STORE_HEADER_BYTES;
    empty->table_count = MS_TABLE_COUNT;
    empty->extent_max = MS_STORE_EXTENTS_MAX;
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++) {
        strcpy(empty->tables[i].name, layout[i].name);
        empty->tables[i].row_bytes = layout[i].row_bytes;
        empty->tables[i].capacity = layout[i].capacity;
    }
}

int ms_store_open(void)
{
    if (atomic_load_explicit(&ms_store_base, memory_order_relaxed))
        return 0;
    char *range = mmap(NULL, sizeof(struct ms_store_layout), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return -1;
    if (mprotect(range, MS_STORE_HEADER_BYTES, PROT_READ | PROT_WRITE) != 0) {
        munmap(range, sizeof(struct ms_store_layout));
        return -1;
    }
    store_describe((struct ms_store_header *)(void *)range);
    atomic_store_explicit(&ms_store_base, range, memory_order_release);
    return 0;
}

/* The file by its name, if it is the one that was attached. */
static int store_open_again(void)
{
    struct stat status;
    int fd = open(file.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && status.st_dev == file.device && status.st_ino == file.inode)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* True if others still have their part of the file system when the file takes so much more. A container's
 * /dev/shm has 64 MiB for all of its processes, and a library that finds no room there ends its program. */
static bool leaves_room(int fd, uint64_t bytes)
{
    struct statfs system;
    if (fstatfs(fd, &system) != 0 || system.f_blocks == 0)
        return true;
    uint64_t unit = (uint64_t)system.f_bsize, half = (uint64_t)system.f_blocks * unit / 2;
    uint64_t left = half < LEFT_TO_OTHERS ? half : LEFT_TO_OTHERS;
    return (uint64_t)system.f_bavail * unit >= left + bytes;
}

/* Room on the disk behind [offset, offset + bytes) of the file. Returns 0 or an errno. */
static int allocate(int fd, uint64_t offset, uint64_t bytes)
{
    struct rlimit limit;
    if (!leaves_room(fd, bytes))
        return ENOSPC;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        offset + bytes > limit.rlim_cur)
        return EFBIG;
    int error;
    do
        error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    while (error == EINTR);
    return error;
}

static bool map_file(int fd, size_t offset, uint64_t file_offset, size_t bytes)
{
    char *place = atomic_load_explicit(&ms_store_base, memory_order_relaxed) + offset;
    return mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                (off_t)file_offset) != MAP_FAILED;
}

static void note_extent(unsigned table, uint64_t table_offset, uint64_t file_offset, uint64_t bytes)
{
    struct ms_store_header *head = header();
    uint32_t count = atomic_load_explicit(&head->extent_count, memory_order_relaxed);
    head->extents[count] = (struct ms_store_extent){table, 0, table_offset, file_offset, bytes};
    head->file_bytes = file_offset + bytes;
    atomic_store_explicit(&head->extent_count, count + 1, memory_order_release);
}

/* A new extent of the file. Returns 0 or an errno. */
static int grow_file(unsigned table, uint64_t table_offset, uint64_t bytes)
{
    struct ms_store_header *head = header();
    uint64_t file_offset = head->file_bytes;
    if (atomic_load_explicit(&head->extent_count, memory_order_relaxed) >= MS_STORE_EXTENTS_MAX)
        return ENOSPC;
    int fd = store_open_again();
    if (fd < 0)
        return errno;
    int error = allocate(fd, file_offset, bytes);
    if (!error && !map_file(fd, layout[table].offset + table_offset, file_offset, bytes))
        error = errno;
    close(fd);
    if (!error)
        note_extent(table, table_offset, file_offset, bytes);
    return error;
}

/* A quarter more than there is, in whole pages of whatever size this machine has. */
static uint64_t step(uint64_t have, uint64_t wanted, uint64_t room)
{
    uint64_t least = sysconf(_SC_PAGESIZE) <= STEP_SMALL ? STEP_SMALL : STEP_LARGE_PAGES;
    uint64_t bytes = have / 4 / least * least;
    bytes = bytes < least ? least : bytes > STEP_MAX ? STEP_MAX : bytes;
    if (bytes < wanted)
        bytes = (wanted + least - 1) / least * least;
    return bytes < room ? bytes : room;
}

/* Under the lock. */
static bool store_grow(enum ms_table table, uint64_t wanted)
{
    uint64_t have = atomic_load_explicit(&ms_table_states[table].committed, memory_order_relaxed);
    uint64_t bytes = step(have, wanted - have, layout[table].bytes - have);
    if (file.path[0]) {
        struct quiet quiet;
        be_quiet(&quiet);
        int error = grow_file(table, have, bytes), none = 0;
        speak_again(&quiet);
        if (error) {
            atomic_compare_exchange_strong(&ms_store_error, &none, error);
            ms_slow_path_set(MS_SLOW_PATH_RECORD);
            if (!map_anonymous(layout[table].offset + have, bytes))
                return false;
            atomic_fetch_add(&header()->memory_only_bytes, bytes);
        }
    } else if (!map_anonymous(layout[table].offset + have, bytes)) {
        return false;
    }
    atomic_store_explicit(&header()->tables[table].committed_bytes, have + bytes, memory_order_relaxed);
    atomic_store_explicit(&ms_table_states[table].committed, have + bytes, memory_order_release);
    return true;
}

bool ms_store_commit(enum ms_table table, uint64_t bytes)
{
    bool good = true;
    if (bytes > layout[table].bytes)
        return false;
    while (good && atomic_load_explicit(&ms_table_states[table].committed, memory_order_relaxed) < bytes)
        good = store_grow(table, bytes);
    return good;
}

static MS_NOINLINE bool reserve_slowly(enum ms_table table, uint64_t bytes)
{
    int saved_errno = errno;
    ms_lock(&lock);
    bool good = ms_store_open() == 0 && ms_store_commit(table, bytes);
    ms_unlock(&lock);
    errno = saved_errno;
    return good;
}

bool ms_table_reserve(enum ms_table table, uint64_t rows)
{
    if (rows > layout[table].capacity)
        return false;
    uint64_t bytes = rows * layout[table].row_bytes;
    if (MS_LIKELY(bytes <= atomic_load_explicit(&ms_table_states[table].committed, memory_order_acquire)))
        return true;
    return reserve_slowly(table, bytes);
}

uint64_t ms_table_reserved(enum ms_table table)
{
    uint64_t rows = atomic_load_explicit(&ms_table_states[table].committed, memory_order_acquire) /
                    layout[table].row_bytes;
    return rows < layout[table].capacity ? rows : layout[table].capacity;
}

void ms_table_publish(enum ms_table table, uint64_t rows)
{
    atomic_store_explicit(&ms_table_states[table].rows, rows, memory_order_release);
    if (header())
        atomic_store_explicit(&header()->tables[table].rows, rows, memory_order_release);
}

bool ms_table_publish_more(enum ms_table table, uint64_t *was_p, uint64_t rows)
{
    if (!atomic_compare_exchange_strong(&ms_table_states[table].rows, was_p, rows))
        return false;
    uint64_t said = atomic_load(&header()->tables[table].rows);
    while (said < rows && !atomic_compare_exchange_weak(&header()->tables[table].rows, &said, rows))
        ;
    return true;
}

bool ms_table_take(enum ms_table table, uint64_t count, uint64_t *first_p)
{
    uint64_t first = atomic_load_explicit(&ms_table_states[table].rows, memory_order_relaxed);
    do {
        if (!ms_table_reserve(table, first + count))
            return false;
    } while (!atomic_compare_exchange_weak(&ms_table_states[table].rows, &first, first + count));
    atomic_fetch_add_explicit(&header()->tables[table].rows, count, memory_order_relaxed);
    *first_p = first;
    return true;
}

bool ms_table_in_file(enum ms_table table, uint64_t row)
{
    uint64_t begin = row * layout[table].row_bytes, end = begin + layout[table].row_bytes;
    bool in_file = false;
    ms_lock(&lock);
    uint32_t count = header() ? atomic_load_explicit(&header()->extent_count, memory_order_relaxed) : 0;
    for (uint32_t i = 0; file.path[0] && i < count && !in_file; i++) {
        const struct ms_store_extent *extent = &header()->extents[i];
        in_file = extent->table == table && begin >= extent->table_offset &&
                  end <= extent->table_offset + extent->bytes;
    }
    ms_unlock(&lock);
    return in_file;
}

void ms_table_drop(enum ms_table table)
{
    atomic_fetch_add_explicit(&ms_table_states[table].dropped, 1, memory_order_relaxed);
    if (header())
        atomic_fetch_add_explicit(&header()->tables[table].dropped, 1, memory_order_relaxed);
}

void ms_table_set_dropped(enum ms_table table, uint64_t count)
{
    atomic_store_explicit(&ms_table_states[table].dropped, count, memory_order_relaxed);
}

uint64_t ms_table_dropped(enum ms_table table)
{
    return atomic_load_explicit(&ms_table_states[table].dropped, memory_order_relaxed);
}

void ms_store_hold(void)
{
    ms_lock(&lock);
}

void ms_store_release(void)
{
    ms_unlock(&lock);
}

static bool write_all(int fd, const char *bytes, uint64_t count, uint64_t offset)
{
    while (count) {
        ssize_t done = pwrite(fd, bytes, count, (off_t)offset);
        if (done <= 0 && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            offset += (uint64_t)done;
            count -= (uint64_t)done;
        }
    }
    return true;
}

/* Copies what there is into the file, header last, and lists the extents in the header. Returns 0 or an
 * errno. */
static int copy_out(int fd, uint64_t *bytes_p)
{
    char *base = atomic_load_explicit(&ms_store_base, memory_order_relaxed);
    uint64_t at = MS_STORE_HEADER_BYTES;
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++)
        at += atomic_load_explicit(&ms_table_states[i].committed, memory_order_relaxed);
    int error = allocate(fd, 0, at);
    if (error)
        return error;
    at = MS_STORE_HEADER_BYTES;
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++) {
        uint64_t bytes = atomic_load_explicit(&ms_table_states[i].committed, memory_order_relaxed);
        if (bytes && !write_all(fd, base + layout[i].offset, bytes, at))
            return errno;
        if (bytes)
            note_extent(i, 0, at, bytes);
        at += bytes;
    }
    *bytes_p = at;
    return write_all(fd, base, MS_STORE_HEADER_BYTES, 0) ? 0 : errno;
}

/* Puts the file in the place of the memory it was copied from. A failure in the middle (no mappings left)
 * leaves memory where it was. */
static int map_in(int fd)
{
    const struct ms_store_header *head = header();
    uint32_t count = atomic_load_explicit(&head->extent_count, memory_order_relaxed);
    if (!map_file(fd, 0, 0, MS_STORE_HEADER_BYTES))
        return errno;
    for (uint32_t i = 0; i < count; i++) {
        const struct ms_store_extent *extent = &head->extents[i];
        if (!map_file(fd, layout[extent->table].offset, extent->file_offset, extent->bytes))
            return errno;
    }
    return 0;
}

static int attach_locked(int fd, const char *path)
{
    struct stat status;
    uint64_t bytes;
    if (strlen(path) >= sizeof file.path)
        return ENAMETOOLONG;
    if (ms_store_open() != 0 || fstat(fd, &status) != 0)
        return errno;
    int error = copy_out(fd, &bytes);
    if (!error)
        error = map_in(fd);
    if (error) {
        atomic_store(&header()->extent_count, 0);
        header()->file_bytes = 0;
        return error;
    }
    strcpy(file.path, path);
    file.device = status.st_dev;
    file.inode = status.st_ino;
    return 0;
}

int ms_store_attach(int fd, const char *path)
{
    struct quiet quiet;
    ms_lock(&lock);
    be_quiet(&quiet);
    int error = attach_locked(fd, path);
    speak_again(&quiet);
    ms_unlock(&lock);
    return error;
}

uint64_t ms_store_bytes(void)
{
    uint64_t bytes = header() ? MS_STORE_HEADER_BYTES : 0;
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++)
        bytes += atomic_load_explicit(&ms_table_states[i].committed, memory_order_relaxed);
    return bytes;
}

uint64_t ms_store_memory_only(void)
{
    return header() ? atomic_load_explicit(&header()->memory_only_bytes, memory_order_relaxed) : 0;
}

void ms_store_reset(void)
{
    char *range = atomic_load_explicit(&ms_store_base, memory_order_relaxed);
    if (range)
        munmap(range, sizeof(struct ms_store_layout));
    atomic_store_explicit(&ms_store_base, NULL, memory_order_relaxed);
    for (unsigned i = 0; i < MS_TABLE_COUNT; i++) {
        atomic_store_explicit(&ms_table_states[i].rows, 0, memory_order_relaxed);
        atomic_store_explicit(&ms_table_states[i].committed, 0, memory_order_relaxed);
        atomic_store_explicit(&ms_table_states[i].dropped, 0, memory_order_relaxed);
    }
    file.path[0] = '\0';
    atomic_store_explicit(&ms_store_error, 0, memory_order_relaxed);
    ms_lock_reset(&lock);
}
MS_AT_FORK(MS_FORK_STORE, ms_store_reset);
