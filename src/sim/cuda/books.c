/*
 * The driver's own ledger: see books.h. Counts only when it is asked; between times nothing is kept but what
 * each process uses, in a file that those of one directory share. A process that was killed holds nothing.
 * No lock of its own.
 */
#include "books.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES_MAX 256
#define ROOM_NAME     "room"

/* What one process takes, of one vendor's devices. */
struct row {
    int pid; /* 0: nobody's; taken by an exchange */
    char world[28];
    uint64_t used[SIM_MAX_DEVICES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct row *rows, *own;

static bool path_of(const char *name, char *path, size_t room)
{
    return snprintf(path, room, "%s/%s", sim_config.ledger_path, name) < (int)room;
}

static struct row *map_room(void)
{
    char path[4096];
    int file = path_of(ROOM_NAME, path, sizeof path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    void *map = MAP_FAILED;

    if (file >= 0 && ftruncate(file, PROCESSES_MAX * sizeof *rows) == 0)
        map = mmap(NULL, PROCESSES_MAX * sizeof *rows, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return map == MAP_FAILED ? NULL : map;
}

static bool is_gone(int pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* A row that is nobody's, or was a process's that is no more. */
static bool take(struct row *row)
{
    int pid = __atomic_load_n(&row->pid, __ATOMIC_ACQUIRE);

    if (pid && !is_gone(pid))
        return false;
    return __atomic_compare_exchange_n(&row->pid, &pid, getpid(), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void open_room(void)
{
    int saved_errno = errno;

    rows = sim_config.ledger_path ? map_room() : NULL;
    for (int i = 0; rows && !own && i < PROCESSES_MAX; i++)
        if (take(&rows[i]))
            own = &rows[i];
    if (own) {
        memset(own->used, 0, sizeof own->used);
        snprintf(own->world, sizeof own->world, "%s", sim_books_world());
    } else if (sim_config.ledger_path) {
        fprintf(stderr, "memsim: MEMSIM_LEDGER=%s: no ledger can be kept there\n", sim_config.ledger_path);
    }
    errno = saved_errno;
}

size_t sim_books_others(int ordinal)
{
    size_t others = sim_config.others_bytes;

    if (!sim_config.ledger_path)
        return others;
    pthread_once(&once, open_room);
    for (int i = 0; rows && i < PROCESSES_MAX; i++) {
        int pid = __atomic_load_n(&rows[i].pid, __ATOMIC_ACQUIRE);
        if (pid && &rows[i] != own && !strcmp(rows[i].world, sim_books_world()) && !is_gone(pid))
            others += __atomic_load_n(&rows[i].used[ordinal], __ATOMIC_RELAXED);
    }
    return others;
}

void sim_books_use(int ordinal, size_t used_bytes)
{
    if (!sim_config.ledger_path)
        return;
    pthread_once(&once, open_room);
    if (own)
        __atomic_store_n(&own->used[ordinal], used_bytes, __ATOMIC_RELAXED);
}

bool sim_books_kept(void)
{
    return sim_config.ledger_path != NULL;
}

void sim_books_look(const struct sim_device *device, struct sim_books *books_p)
{
    *books_p =
        (struct sim_books){.others = sim_books_others(device->ordinal), .graphs = device->graphs.reserved};
    sim_heap_count(device, books_p);
    sim_unit_count(device, books_p);
    sim_phys_count(device, books_p);
}

void sim_books_write(const struct sim_device *device, const struct sim_books *books)
{
    char path[4096], name[32], line[512];
    int saved_errno = errno, length, file;

    snprintf(name, sizeof name, "%d.books", (int)getpid());
    if (!path_of(name, path, sizeof path))
        return;
    length = snprintf(
        line, sizeof line,
        "%s %d total=%zu asked=%zu contexts=%zu modules=%zu lazy=%zu graphs=%zu rounding=%zu pools=%zu "
        "leaving=%zu others=%zu\n",
        sim_books_world(), device->ordinal, sim_config.memory_bytes, books->asked, books->contexts,
        books->modules, books->lazy, books->graphs, books->rounding, books->pools, books->leaving,
        books->others);
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (write(file, line, (size_t)length) < 0)
            fprintf(stderr, "memsim: cannot write %s\n", path);
        close(file);
    }
    errno = saved_errno;
}
