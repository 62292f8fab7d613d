/* test_signals.c - stacks taken in signal handlers, where the interrupted instruction may be any: in a
 * prologue, in the C library, in the kernel's vdso. Frame by frame as libgcc's unwinder has them. */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/stack/snap.h"
#include "tests/tap.h"

static struct snap in_handler;
static atomic_int taken; /* the thread that interrupts waits for it */
static volatile sig_atomic_t different, shortest = SNAP_MAX;
static struct snap first_difference;

static struct snap around;                 /* the stack of do_something */
static volatile sig_atomic_t around_known; /* ... which is running */
static void do_something(void *arg);

/* On aarch64 linkers write no tables for the stubs by which an object calls others' functions: libgcc's walk
 * ends there, and ours goes on. It must come to the function that was running, and to all outside it. */
static bool goes_on(const struct snap *snap)
{
    unsigned ends = snap->libgcc_count, outside = around.libgcc_count - 1;
    if (ends == 0 || _Unwind_FindEnclosingFunction((void *)(snap->libgcc[ends - 1] - 1)))
        return false;
    if (!around_known)
        return true;
    if (snap->ours_count < ends + 1 + outside)
        return false;
    const uintptr_t *last = snap->ours + snap->ours_count - outside;
    return memcmp(last, around.libgcc + 1, outside * sizeof *last) == 0 &&
           _Unwind_FindEnclosingFunction((void *)(last[-1] - 1)) == (void *)do_something;
}

static void handler(int signal)
{
    (void)signal;
    snap_take(&in_handler);
    if ((int)in_handler.ours_count < shortest)
        shortest = (int)in_handler.ours_count;
    int at = snap_difference(&in_handler);
    bool is_other = at >= 0 && ((unsigned)at < in_handler.libgcc_count || !goes_on(&in_handler));
    if (is_other && different++ == 0)
        first_difference = in_handler;
    taken++;
}

static void install(int signal, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
    taken = 0;
    different = 0;
    shortest = SNAP_MAX;
}

static void report(void)
{
    int at = snap_difference(&first_difference);
    if (!different)
        return;
    diag("%d of %d differ; ours %u, libgcc %u frames; frame %d is %#lx and %#lx", (int)different, (int)taken,
         first_difference.ours_count, first_difference.libgcc_count, at,
         (unsigned long)first_difference.ours[at], (unsigned long)first_difference.libgcc[at]);
    for (int i = 0; i <= at + 1 && i < SNAP_MAX; i++)
        diag("frame %d: %#lx %#lx", i, (unsigned long)first_difference.ours[i],
             (unsigned long)first_difference.libgcc[i]);
}

static void raise_it(void *arg)
{
    (void)arg;
    raise(SIGUSR1);
}

static void test_raised(void)
{
    install(SIGUSR1, 0);
    frames_call(10, FRAMES_SHAPES, raise_it, NULL);
    ok(taken == 1 && different == 0 && shortest >= 20, "a handler: %d frames", (int)shortest);
    report();
}

static void test_alternate(void)
{
    enum { BYTES = 256 << 10 };
    stack_t stack = {.ss_sp = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     .ss_size = BYTES};
    stack_t off = {.ss_flags = SS_DISABLE};
    install(SIGUSR1, SA_ONSTACK);
    sigaltstack(&stack, NULL);
    for (int i = 0; i < 3; i++)
        frames_call(10, FRAMES_SHAPES, raise_it, NULL);
    ok(taken == 3 && different == 0 && shortest >= 20, "a handler on a stack of its own: %d frames",
       (int)shortest);
    report();
    sigaltstack(&off, NULL);
    munmap(stack.ss_sp, BYTES);
}

static volatile double sum;
static volatile char text[200];

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* No handler takes a stack while one is being taken: memshim's own do not either (base/thread/guard.h), and
 * the walk may hold a lock, which such a handler would wait for. */
static void know_around(void)
{
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    snap_take(&around);
    around_known = 1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void do_something(void *arg)
{
    struct timespec now;
    int values[64];
    char line[100];
    (void)arg;
    know_around();
    for (int i = 0; i < 64; i++)
        values[i] = i * 7919 % 64;
    qsort(values, 64, sizeof *values, compare);
    for (int i = 0; i < 20; i++)
        clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(line, sizeof line, "%g %d %s", (double)now.tv_nsec * 1.5, values[5], "text");
    sum += strtod(line, NULL);
    memset((void *)text, values[3], sizeof text);
    around_known = 0;
}

static pthread_t main_thread;

/* One signal after the other, at intervals that have nothing to do with what is interrupted. */
static void *interrupt(void *arg)
{
    const int wanted = *(int *)arg;
    unsigned seed = 1;
    for (int sent = 0; sent < wanted;) {
        seed = seed * 1103515245 + 12345;
        for (volatile unsigned spin = (seed >> 16) % 3000; spin; spin--)
            ;
        if (taken < sent)
            continue;
        pthread_kill(main_thread, SIGUSR2);
        sent++;
    }
    return NULL;
}

/* Whatever is running is interrupted. Both unwinders read the same tables, and so must agree even where the
 * tables are wrong. */
static void test_anywhere(int wanted)
{
    pthread_t thread;
    install(SIGUSR2, SA_RESTART);
    main_thread = pthread_self();
#if !defined(__x86_64__)
    /* Out of the loader, where it binds a function at its first call, libgcc goes astray here. */
    frames_call(0, FRAMES_SOUND, do_something, NULL);
#endif
    pthread_create(&thread, NULL, interrupt, &wanted);
    for (unsigned depth = 0; taken < wanted; depth++)
        frames_call(depth % 17, FRAMES_SOUND, do_something, NULL);
    pthread_join(thread, NULL);
    is_int(different, 0, "interrupted anywhere %d times: as libgcc has them", (int)taken);
    report();
}

#if defined(__x86_64__)
static uintptr_t leaf_address;

/* A function that traps at its first instruction: its own frame is not set up yet. */
__asm__(".text\n.type trap_at_once,@function\ntrap_at_once:\n.cfi_startproc\nint3\nret\n.cfi_endproc\n"
        ".size trap_at_once,.-trap_at_once\n");
void trap_at_once(void);

static void test_first_instruction(void)
{
    install(SIGTRAP, 0);
    leaf_address = (uintptr_t)trap_at_once;
    trap_at_once();
    bool found = false;
    for (unsigned i = 0; i < in_handler.ours_count; i++)
        found |= in_handler.ours[i] == leaf_address + 2; /* after the trap, and as stack.h has it */
    ok(taken == 1 && different == 0 && found, "interrupted in a function without a frame");
    report();
}
#else
static void test_first_instruction(void)
{
    skip(1, "written for x86-64");
}
#endif

int main(int argc, char **argv)
{
    plan(4);
    test_raised();
    test_alternate();
    test_first_instruction();
    test_anywhere(argc > 1 ? atoi(argv[1]) : 3000);
    return done();
}
