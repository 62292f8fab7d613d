/* test_processes.c - up to sixteen processes take and give back memory of one device, at random, and are
 * killed: what they have is never more than there is, nothing is refused that is kept for who asks, and what
 * a killed one had is there for others. TEST_OPERATIONS is how many calls there are altogether. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/share/share.h"

enum { MOST = 16, LARGEST = 200, HELD = 12 };

/* The vendor, in memory of all processes: it knows what each has, and takes it back when one ends. */
static struct device {
    pthread_mutex_t lock;
    uint64_t has[MOST];
    _Atomic unsigned ready, operations, exceeded, refused_within, granted, refused;
} * device;

static const char *directory;
static unsigned seed = 1;

static void device_lock(void)
{
    if (pthread_mutex_lock(&device->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&device->lock);
}

static void device_give(unsigned i, int64_t bytes)
{
    uint64_t sum = 0;
    device_lock();
    device->has[i] += (uint64_t)bytes;
    for (unsigned k = 0; k < MOST; k++)
        sum += device->has[k];
    if (sum > TOTAL)
        atomic_fetch_add(&device->exceeded, 1);
    pthread_mutex_unlock(&device->lock);
}

static uint64_t take(unsigned i, uint64_t used, uint64_t guarantee, uint64_t bytes)
{
    struct ms_admission *self = ms_share_held(0, used);
    uint64_t missing;
    if (!self)
        _exit(2);
    if (ms_admission_take(self, bytes, &missing)) {
        device_give(i, (int64_t)bytes);
        atomic_fetch_add(&device->granted, 1);
        return bytes;
    }
    atomic_fetch_add(&device->refused, 1);
    if (used + bytes <= guarantee)
        atomic_fetch_add(&device->refused_within, 1);
    return 0;
}

/* Until it is killed, or all have made their operations. Who came late finds others beyond what is kept for
 * it, and may be refused; a guarantee that was refused is none. */
static void live(unsigned i, uint64_t guarantee, bool is_first, unsigned operations)
{
    uint64_t held[HELD] = {0}, used = 0;
    char why[400];
    struct ms_share_wish wish = share_wish(directory, guarantee);
    if (ms_share_join(&wish, why, sizeof why) != MS_SHARE_JOINED && is_first)
        _exit(1);
    if (is_first) {
        atomic_fetch_add(&device->ready, 1);
        while (atomic_load(&device->ready) < MOST + 1 && getppid() != 1)
            usleep(100);
    }
    srandom(seed * 100 + i);
    while (atomic_fetch_add(&device->operations, 1) < operations) {
        unsigned at = (unsigned)random() % HELD;
        if (held[at]) {
            device_give(i, -(int64_t)held[at]);
            ms_admission_give(ms_share_of(0), held[at]);
            used -= held[at];
            held[at] = 0;
        } else {
            held[at] = take(i, used, is_first ? guarantee : 0, 1 + (uint64_t)random() % LARGEST);
            used += held[at];
        }
    }
    device_lock();
    device->has[i] = 0;
    pthread_mutex_unlock(&device->lock);
    _exit(0);
}

static pid_t start(unsigned i, uint64_t guarantee, bool is_first, unsigned operations)
{
    pid_t child = fork();
    if (child == 0)
        live(i, guarantee, is_first, operations);
    return child;
}

/* The vendor has back what it had before others can be told that it has ended. */
static void kill_one(pid_t child, unsigned i)
{
    device_lock();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    device->has[i] = 0;
    pthread_mutex_unlock(&device->lock);
}

static unsigned ended_well(pid_t *children, unsigned count)
{
    unsigned well = 0;
    for (unsigned i = 0; i < count; i++) {
        int status;
        if (waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            well++;
    }
    return well;
}

/* All that anybody had is there again. */
static bool all_is_back(void)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        struct ms_share_wish wish = share_wish(directory, 0);
        char why[400];
        uint64_t missing;
        bool joined = ms_share_join(&wish, why, sizeof why) == MS_SHARE_JOINED;
        _exit(!joined || !ms_admission_take(ms_share_of(0), TOTAL, &missing) ||
              ms_admission_room(ms_share_of(0)) != 0);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run(unsigned count, unsigned kills, unsigned operations)
{
    pid_t children[MOST];
    uint64_t guarantee = TOTAL / 2 / count;
    memset((char *)device + sizeof device->lock, 0, sizeof *device - sizeof device->lock);
    for (unsigned i = 0; i < count; i++)
        children[i] = start(i, i % 2 ? guarantee : 0, true, operations);
    while (atomic_load(&device->ready) < count && waitpid(-1, NULL, WNOHANG) <= 0)
        usleep(100);
    atomic_store(&device->ready, MOST + 1);
    for (unsigned k = 0; k < kills && atomic_load(&device->operations) < operations; k++) {
        unsigned i = (unsigned)random() % count;
        usleep((unsigned)random() % 3000);
        kill_one(children[i], i);
        children[i] = start(i, i % 2 ? guarantee : 0, false, operations);
    }
    ok(ended_well(children, count) == count, "%u processes, %u kills: all come to their end", count, kills);
    ok(!device->exceeded, "what they have together is never more than there is (%u granted, %u refused)",
       device->granted, device->refused);
    ok(kills || !device->refused_within, "nothing is refused that is kept for who asks");
    ok(device->granted && device->refused, "there is memory for some, and not for all");
    ok(all_is_back(), "what they had is there for others, as well as what the killed ones had");
}

/* A child of fork is a process of its own, and takes nothing of what its parent has. */
static void check_fork(void)
{
    struct ms_share_wish wish = share_wish(directory, 400);
    char why[400];
    uint64_t missing;
    int status;
    pid_t child;
    ok(ms_share_join(&wish, why, sizeof why) == MS_SHARE_JOINED, "a process joins");
    ok(ms_admission_take(ms_share_of(0), 300, &missing), "and takes what is kept for it");
    child = fork();
    if (child == 0) {
        ms_at_fork_run(MS_FORK_SERVICE);
        bool begins = !ms_share_of(0) && ms_share_join(&wish, why, sizeof why) == MS_SHARE_JOINED;
        begins = begins && ms_admission_room(ms_share_of(0)) == 600 &&
                 !ms_admission_take(ms_share_of(0), 601, &missing);
        _exit(!begins || !ms_admission_take(ms_share_of(0), 600, &missing));
    }
    ok(waitpid(child, &status, 0) == child && status == 0,
       "a child of fork begins with nothing, beside its parent");
    ok(!ms_admission_take(ms_share_of(0), 701, &missing) && missing == 1,
       "one more than there is is refused");
    ok(ms_admission_take(ms_share_of(0), 700, &missing), "what the child had is there when it has ended");
    ms_admission_give(ms_share_of(0), 700);
}

/* A program that closes all descriptors it did not open has left its place, and takes it again. */
static void check_closed(void)
{
    uint64_t missing;
    int status;
    pid_t child;
    for (int fd = 3; fd < 2000; fd++)
        close(fd);
    child = fork(); /* which finds the row left */
    if (child == 0) {
        struct ms_share_wish wish = share_wish(directory, 0);
        char why[400];
        ms_at_fork_run(MS_FORK_SERVICE);
        _exit(ms_share_join(&wish, why, sizeof why) != MS_SHARE_JOINED ||
              !ms_admission_take(ms_share_of(0), TOTAL, &missing));
    }
    ok(waitpid(child, &status, 0) == child && status == 0, "a place whose lock was closed is another's");
    ok(ms_share_held(0, 300) && ms_share_of(0)->page->rows[ms_share_of(0)->row].used_bytes == 300,
       "until the process takes more: then it is told anew what it has");
    ok(ms_share_of(0)->page->rows[ms_share_of(0)->row].guarantee_bytes == 400, "and what is kept for it");
}

int main(void)
{
    const char *wanted = getenv("TEST_OPERATIONS"), *first = getenv("TEST_SEED");
    unsigned operations = wanted ? (unsigned)atoi(wanted) : 100000;
    pthread_mutexattr_t robust;
    seed = first ? (unsigned)atoi(first) : (unsigned)getpid();
    plan(0);
    diag("TEST_SEED=%u", seed);
    srandom(seed);
    device = mmap(NULL, sizeof *device, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&device->lock, &robust);
    directory = share_directory("processes");
    run(2, 0, operations / 5);
    run(3, 0, operations / 5);
    run(16, 0, operations / 5);
    run(4, 100, operations / 5);
    run(16, 100, operations / 5);
    check_fork();
    check_closed();
    return done();
}
