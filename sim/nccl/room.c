/*
 * The memory that the ranks of a communicator share, threads of one process or processes: a file in /dev/shm
 * that every rank maps for itself. Its name is the unique id. The first to come sizes it, under the file's
 * lock; rank 0 removes the name when all have come, and whoever made the name at its end. Ranks wait on one
 * bell (a futex) and look again now and then, so that a process that died is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/nccl/nccl.h"

enum { ROOM_MAGIC = 0x6e63636c, NAMES = 64, LOOK_MS = 50 };

/* Names made here that may still have a file. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char names[NAMES][SIM_NAME_BYTES];
static pid_t names_of;
static unsigned name_count;

__attribute__((destructor)) static void remove_names(void)
{
    for (unsigned i = 0; names_of == getpid() && i < name_count && i < NAMES; i++)
        unlink(names[i]);
}

ncclResult_t sim_room_name(char name[SIM_NAME_BYTES])
{
    unsigned long long random;
    int file;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return sim_fail(ncclSystemError, "getrandom: %s", strerror(errno));
    snprintf(name, SIM_NAME_BYTES, "/dev/shm/memsim-nccl-%d-%016llx", (int)getpid(), random);
    file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return sim_fail(ncclSystemError, "%s: %s", name, strerror(errno));
    close(file);
    pthread_mutex_lock(&lock);
    if (names_of != getpid())
        name_count = 0;
    names_of = getpid();
    memcpy(names[name_count++ % NAMES], name, SIM_NAME_BYTES);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

void sim_room_unlink(const char *name)
{
    unlink(name);
}

static size_t windows_bytes(int ranks)
{
    return (size_t)ranks * SIM_WINDOW_BYTES;
}

static size_t room_bytes(int ranks)
{
    return sizeof(struct sim_room) + windows_bytes(ranks) +
           (size_t)ranks * (size_t)ranks * sizeof(struct sim_mail);
}

char *sim_room_window(struct sim_room *room, int rank)
{
    return room->windows + windows_bytes(rank);
}

struct sim_mail *sim_room_mail(struct sim_room *room, int from, int to)
{
    struct sim_mail *mails = (struct sim_mail *)(void *)(room->windows + windows_bytes((int)room->ranks));

    return &mails[(size_t)from * room->ranks + (size_t)to];
}

/* The file has its size and its number of ranks when the lock is let go. */
static ncclResult_t size_room(int file, int ranks)
{
    const struct sim_room fresh = {.magic = ROOM_MAGIC, .ranks = (uint32_t)ranks};
    struct sim_room seen;
    struct stat about;

    if (flock(file, LOCK_EX) < 0 || fstat(file, &about) < 0)
        return sim_fail(ncclSystemError, "the ranks' shared memory: %s", strerror(errno));
    if (about.st_size == 0) {
        if (ftruncate(file, (off_t)room_bytes(ranks)) < 0 || pwrite(file, &fresh, sizeof(uint32_t[2]), 0) < 0)
            return sim_fail(ncclSystemError, "the ranks' shared memory: %s", strerror(errno));
    } else if (pread(file, &seen, sizeof(uint32_t[2]), 0) < 0 || seen.magic != ROOM_MAGIC ||
               seen.ranks != (uint32_t)ranks) {
        return sim_fail(ncclInvalidArgument, "the ranks of a communicator do not agree on how many they are");
    }
    flock(file, LOCK_UN);
    return ncclSuccess;
}

static ncclResult_t take_seat(struct sim_room *room, int rank)
{
    uint32_t free_seat = 0;

    if (!atomic_compare_exchange_strong(&room->seats[rank].taken, &free_seat, 1))
        return sim_fail(ncclInvalidUsage, "rank %d is there already", rank);
    room->seats[rank].pid = (int32_t)getpid();
    return ncclSuccess;
}

ncclResult_t sim_room_enter(const char *name, int ranks, int rank, struct sim_room **room_p)
{
    int file = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct sim_room *room = MAP_FAILED;
    ncclResult_t result;

    if (file < 0)
        return sim_fail(ncclSystemError, "%s: %s", name, strerror(errno));
    result = size_room(file, ranks);
    if (result == ncclSuccess) {
        room = mmap(NULL, room_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (room == MAP_FAILED)
            result = sim_fail(ncclSystemError, "the ranks' shared memory: %s", strerror(errno));
    }
    close(file);
    if (result == ncclSuccess && (result = take_seat(room, rank)) != ncclSuccess)
        munmap(room, room_bytes(ranks));
    if (result == ncclSuccess)
        *room_p = room;
    return result;
}

void sim_room_ring(struct sim_room *room)
{
    atomic_fetch_add(&room->bell, 1);
    syscall(SYS_futex, &room->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sim_room_leave(struct sim_room *room, int rank)
{
    atomic_store(&room->seats[rank].left, 1);
    sim_room_ring(room);
    munmap(room, room_bytes((int)room->ranks));
}

/* A rank that has gone, in whichever way: who waits for it waits in vain. One that has not come yet is waited
 * for. */
static int missing_rank(const struct sim_room *room, int rank, bool (*needs)(void *arg, int rank), void *arg)
{
    for (int i = 0; i < (int)room->ranks; i++) {
        const struct sim_seat *seat = &room->seats[i];

        if (i == rank || !atomic_load(&seat->taken) || !seat->pid || !needs(arg, i))
            continue;
        if (atomic_load(&seat->left) || (kill(seat->pid, 0) < 0 && errno == ESRCH))
            return i;
    }
    return -1;
}

ncclResult_t sim_room_wait(struct sim_room *room, int rank, bool (*done)(void *arg),
                           bool (*needs)(void *arg, int rank), void *arg)
{
    const struct timespec while_ms = {0, LOOK_MS * 1000000L};
    int saved_errno = errno, missing = -1;

    for (;;) {
        uint32_t bell = atomic_load(&room->bell);

        if (done(arg))
            break;
        if (missing >= 0)
            return sim_fail(ncclRemoteError, "rank %d waits for rank %d, which has gone", rank, missing);
        if (atomic_load(&room->aborted))
            return sim_fail(ncclRemoteError, "the communicator was aborted");
        /* Looked at again once more after it was seen to be missing: it may have done its part and gone. */
        if (syscall(SYS_futex, &room->bell, FUTEX_WAIT, bell, &while_ms, NULL, 0) < 0 && errno == ETIMEDOUT)
            missing = missing_rank(room, rank, needs, arg);
    }
    errno = saved_errno;
    return ncclSuccess;
}

struct meeting {
    struct sim_room *room;
    enum sim_meeting meeting;
    uint32_t step;
};

static bool has_not_come(void *arg, int rank)
{
    const struct meeting *m = arg;

    return (int32_t)(atomic_load(&m->room->seats[rank].step[m->meeting]) - m->step) < 0;
}

static bool all_came(void *arg)
{
    const struct meeting *m = arg;

    for (int i = 0; i < (int)m->room->ranks; i++)
        if (has_not_come(arg, i))
            return false;
    return true;
}

uint32_t sim_room_post(struct sim_room *room, int rank, enum sim_meeting meeting)
{
    uint32_t step = atomic_fetch_add(&room->seats[rank].step[meeting], 1) + 1;

    sim_room_ring(room);
    return step;
}

ncclResult_t sim_room_await(struct sim_room *room, int rank, enum sim_meeting meeting, uint32_t step)
{
    struct meeting m = {room, meeting, step};

    return sim_room_wait(room, rank, all_came, has_not_come, &m);
}

ncclResult_t sim_room_meet(struct sim_room *room, int rank, enum sim_meeting meeting)
{
    return sim_room_await(room, rank, meeting, sim_room_post(room, rank, meeting));
}
