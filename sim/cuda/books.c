/*
 * The driver's own ledger: see books.h. Counts only when it is asked; between times nothing is kept but what
 * each process uses, in a file that those of one directory share. A process that was killed holds nothing.
 * No lock of its own.
 */
#include "sim/cuda/books.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES_MAX 256
#define ROOM_NAME     "room"

/* The memory that one process takes, of one vendor's devices; or that a copy of a library takes, where a
 * process has several. */
struct row {
    int pid; /* 0: nobody's; taken by an exchange */
    char world[28];
    uint64_t image; /* of the program that the process runs: what one held that it ran before is free */
    uint64_t used[SIM_MAX_DEVICES];
    void (*count)(int ordinal, struct sim_books *); /* for copies in the same process; NULL once unloaded */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct row *rows, *own;
static struct sim_books inherited[SIM_MAX_DEVICES];
static size_t inherited_bytes[SIM_MAX_DEVICES];

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

/* The kernel gives each program that is executed sixteen random bytes; what it forks has the same. */
static uint64_t image(void)
{
    const char *random = (const char *)getauxval(AT_RANDOM);
    uint64_t number = 1;

    if (random)
        memcpy(&number, random, sizeof number);
    return number;
}

/* A row that is nobody's, or was a process's that is no more. */
static bool take(struct row *row)
{
    int pid = __atomic_load_n(&row->pid, __ATOMIC_ACQUIRE);

    if (pid && !is_gone(pid) && !(pid == getpid() && row->image != image()))
        return false;
    return __atomic_compare_exchange_n(&row->pid, &pid, getpid(), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Asked by another copy of the library, without a lock of either. */
static void count_own(int ordinal, struct sim_books *books_p)
{
    sim_memory_read_lock();
    sim_books_look(&sim_devices[ordinal], books_p);
    sim_memory_unlock();
}

__attribute__((destructor)) static void leave_room(void)
{
    if (own && own->pid == getpid())
        __atomic_store_n(&own->count, NULL, __ATOMIC_RELEASE);
}

static void open_room(void)
{
    int saved_errno = errno;

    rows = sim_config.ledger_path ? map_room() : NULL;
    for (int i = 0; rows && i < PROCESSES_MAX; i++) {
        if (own && rows[i].pid != getpid()) /* all that a program before this one held is free */
            continue;
        if (!take(&rows[i]))
            continue;
        memset(rows[i].used, 0, sizeof rows[i].used);
        __atomic_store_n(&rows[i].count, NULL, __ATOMIC_RELEASE);
        rows[i].image = image();
        if (own)
            __atomic_store_n(&rows[i].pid, 0, __ATOMIC_RELEASE);
        else
            own = &rows[i];
    }
    if (own) {
        snprintf(own->world, sizeof own->world, "%s", sim_books_world());
        __atomic_store_n(&own->count, count_own, __ATOMIC_RELEASE);
    } else if (sim_config.ledger_path) {
        fprintf(stderr, "memsim: MEMSIM_LEDGER=%s: no ledger can be kept there\n", sim_config.ledger_path);
    }
    errno = saved_errno;
}

static void count(const struct sim_device *device, struct sim_books *books_p)
{
    *books_p = (struct sim_books){.graphs = device->graphs.reserved};
    sim_heap_count(device, books_p);
    sim_unit_count(device, books_p);
    sim_phys_count(device, books_p);
}

/* A child that was made without fork() goes on with its parent's blocks, which stay the parent's. The memory
 * lock is held. */
static void see_whose(void)
{
    static int seen;

    pthread_once(&once, open_room);
    if (!own || own->pid == getpid() || seen == getpid())
        return;
    seen = getpid();
    for (int i = 0; i < SIM_MAX_DEVICES; i++) {
        count(&sim_devices[i], &inherited[i]);
        inherited_bytes[i] = sim_devices[i].used_bytes;
    }
    own = NULL;
    open_room();
}

size_t sim_books_others(int ordinal)
{
    size_t others = sim_config.others_bytes;

    if (!sim_config.ledger_path)
        return others;
    see_whose();
    for (int i = 0; rows && i < PROCESSES_MAX; i++) {
        int pid = __atomic_load_n(&rows[i].pid, __ATOMIC_ACQUIRE);
        if (pid && &rows[i] != own && !strcmp(rows[i].world, sim_books_world()) && !is_gone(pid))
            others += __atomic_load_n(&rows[i].used[ordinal], __ATOMIC_RELAXED);
    }
    /* what is the parent's counts as used by this process too */
    return others > inherited_bytes[ordinal] ? others - inherited_bytes[ordinal] : 0;
}

void sim_books_use(int ordinal, size_t used_bytes)
{
    if (!sim_config.ledger_path)
        return;
    pthread_once(&once, open_room);
    if (own)
        __atomic_store_n(&own->used[ordinal],
                         used_bytes > inherited_bytes[ordinal] ? used_bytes - inherited_bytes[ordinal] : 0,
                         __ATOMIC_RELAXED);
}

bool sim_books_kept(void)
{
    return sim_config.ledger_path != NULL;
}

/* Memory that was inherited is not this process's. */
static void give_back(const struct sim_books *from, struct sim_books *books)
{
    size_t *const own_ones[] = {&books->asked,  &books->contexts, &books->modules,
                                &books->lazy,   &books->graphs,   &books->rounding,
                                &books->arrays, &books->pools,    &books->leaving};
    const size_t theirs[] = {from->asked,    from->contexts, from->modules, from->lazy,   from->graphs,
                             from->rounding, from->arrays,   from->pools,   from->leaving};

    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        size_t less = theirs[i] < *own_ones[i] ? theirs[i] : *own_ones[i];
        *own_ones[i] -= less;
        books->others += less;
    }
}

void sim_books_look(const struct sim_device *device, struct sim_books *books_p)
{
    size_t others = sim_books_others(device->ordinal);

    count(device, books_p);
    books_p->others = others;
}

static void move(size_t *to, const size_t *from, size_t *others)
{
    *to += *from;
    *others -= *from < *others ? *from : *others;
}

/* Memory that other copies of the library have in this process is no other process's. */
static void take_in_copies(int ordinal, struct sim_books *books)
{
    for (int i = 0; rows && own && i < PROCESSES_MAX; i++) {
        struct sim_books copy = {.asked = 0};
        void (*ask)(int, struct sim_books *) = __atomic_load_n(&rows[i].count, __ATOMIC_ACQUIRE);
        if (&rows[i] == own || rows[i].pid != getpid() || strcmp(rows[i].world, own->world) != 0 || !ask)
            continue;
        ask(ordinal, &copy);
        move(&books->asked, &copy.asked, &books->others);
        move(&books->contexts, &copy.contexts, &books->others);
        move(&books->modules, &copy.modules, &books->others);
        move(&books->lazy, &copy.lazy, &books->others);
        move(&books->graphs, &copy.graphs, &books->others);
        move(&books->rounding, &copy.rounding, &books->others);
        move(&books->arrays, &copy.arrays, &books->others);
        move(&books->pools, &copy.pools, &books->others);
        move(&books->leaving, &copy.leaving, &books->others);
    }
}

void sim_books_write(const struct sim_device *device, struct sim_books *books)
{
    char path[4096], name[32], line[512];
    int saved_errno = errno, length, file;

    give_back(&inherited[device->ordinal], books);
    take_in_copies(device->ordinal, books);
    snprintf(name, sizeof name, "%d.books", (int)getpid());
    if (!path_of(name, path, sizeof path))
        return;
    length = snprintf(line, sizeof line,
                      "%s %d total=%zu asked=%zu contexts=%zu modules=%zu lazy=%zu graphs=%zu rounding=%zu "
                      "arrays=%zu pools=%zu "
                      "leaving=%zu others=%zu\n",
                      sim_books_world(), device->ordinal, sim_config.memory_bytes, books->asked,
                      books->contexts, books->modules, books->lazy, books->graphs, books->rounding,
                      books->arrays, books->pools, books->leaving, books->others);
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (write(file, line, (size_t)length) < 0)
            fprintf(stderr, "memsim: cannot write %s\n", path);
        close(file);
    }
    errno = saved_errno;
}
