/* test_spare.c - stacks of our own: what runs on them, what does not come there, and how much of one is
 * used. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options/options.h"
#include "base/thread/aux_stack.h"
#include "unwind/stack.h"
#include "tests/tap.h"

enum { PAINT = 0xa5, THREADS = 8, ROUNDS = 2000 };

static char *spare; /* the one that this thread has */

static bool lies_in_spare(const void *p)
{
    return (const char *)p >= spare && (const char *)p < spare + MS_AUX_STACK_BYTES;
}

struct visit {
    uintptr_t sp;
    bool in_spare, nested_in_spare, blocked;
    sigset_t mask;
};

static void nested(void *arg)
{
    struct visit *visit = arg;
    visit->nested_in_spare = lies_in_spare(__builtin_frame_address(0));
}

static _Atomic int handled;
static void handle(int number)
{
    (void)number;
    handled++;
}

static void visit_spare(void *arg)
{
    struct visit *visit = arg;
    visit->in_spare = lies_in_spare(__builtin_frame_address(0));
    visit->sp = (uintptr_t)__builtin_frame_address(0);
    pthread_sigmask(SIG_SETMASK, NULL, &visit->mask);
    raise(SIGUSR1);
    visit->blocked = handled == 0;
    visit->nested_in_spare = false;
    ms_aux_stack_call(nested, visit);
    errno = ENOSPC;
}

static void test_call(void)
{
    struct visit visit;
    sigset_t before = {0}, after = {0};
    spare = ms_aux_stack_take();
    ms_aux_stack_give(spare);
    signal(SIGUSR1, handle);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    errno = EBADF;
    ok(ms_aux_stack_call(visit_spare, &visit), "a function is called");
    is_int(errno, EBADF, "errno stays");
    ok(visit.in_spare, "on the spare stack");
    ok(visit.sp % 16 == 0, "whose pointer is aligned as it must be");
    ok(visit.nested_in_spare, "a call from there stays there");
    ok(visit.blocked, "no signal is handled there");
    is_int(handled, 1, "but right behind it");
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ok(memcmp(&before, &after, sizeof before) == 0, "and the mask is what it was");
}

static void test_buffers(void)
{
    void *one = ms_aux_stack_take(), *two = ms_aux_stack_take(), *again;
    ok(one && two && one != two, "two buffers at once are two");
    ok((uintptr_t)one % 64 == 0, "aligned");
    memset(one, 1, MS_AUX_STACK_BUFFER_BYTES);
    memset(two, 2, MS_AUX_STACK_BUFFER_BYTES);
    ms_aux_stack_give(two);
    ms_aux_stack_give(one);
    again = ms_aux_stack_take();
    is_ptr(again, one, "a thread has the same one again");
    ms_aux_stacks_reset();
    is_ptr(ms_aux_stack_take(), one, "in a fork child those that were taken are free");
    ms_aux_stack_give(one);
    ms_aux_stack_give(NULL);
}

/* Stops before and behind. */
static void give_between_stops(void *buffer)
{
    raise(SIGSTOP);
    ms_aux_stack_give(buffer);
    raise(SIGSTOP);
}

static void give_another(void *arg)
{
    (void)arg;
    give_between_stops(ms_aux_stack_take());
}

/* The buffer that was taken first is given back last; or one that was taken on a stack of ours. */
static void give_as_told(bool on_it)
{
    void *outer = ms_aux_stack_take(), *inner = ms_aux_stack_take();
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(1);
    ms_aux_stack_give(inner);
    if (on_it)
        ms_aux_stack_call(give_another, NULL);
    else
        give_between_stops(outer);
    _exit(0);
}

static void test_giving(bool on_it)
{
    int status = 0;
    long steps = 0;
    pid_t child = fork();
    if (child == 0)
        give_as_told(on_it);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) {
        skip(1, "there is no ptrace here");
        return;
    }
    do
        steps++;
    while (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
           WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("# %ld steps\n", steps);
    ok(steps < 2000, "a buffer %s is given back without a look at all that there may be",
       on_it ? "of a call" : "that was taken first");
}

static void use_much(void *arg)
{
    volatile char much[MS_AUX_STACK_BYTES + 1];
    (void)arg;
    for (size_t i = sizeof much; i-- > 0;)
        much[i] = 1;
}

static void test_guard(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        ms_aux_stack_call(use_much, NULL);
        _exit(0);
    }
    waitpid(child, &status, 0);
#ifdef __SANITIZE_ADDRESS__
    ok(status != 0, "whoever needs more meets the guard page");
#else
    ok(WIFSIGNALED(status) || WEXITSTATUS(status) != 0, "whoever needs more meets the guard page");
#endif
}

struct work {
    unsigned seed;
    bool wrong;
};

static void check_alone(void *arg)
{
    struct work *work = arg;
    unsigned mine[64];
    for (unsigned i = 0; i < 64; i++)
        mine[i] = work->seed + i;
    for (unsigned i = 0; i < 64; i++)
        work->wrong |= *(volatile unsigned *)&mine[i] != work->seed + i;
}

static void *call_often(void *arg)
{
    struct work *work = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned *buffer = ms_aux_stack_take();
        work->seed += 7;
        *buffer = work->seed;
        if (!ms_aux_stack_call(check_alone, work) || *buffer != work->seed)
            work->wrong = true;
        ms_aux_stack_give(buffer);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    struct work work[THREADS];
    bool wrong = false;
    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (struct work){i * 1000000, false};
        pthread_create(&threads[i], NULL, call_often, &work[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong |= work[i].wrong;
    }
    ok(!wrong, "threads do not meet on one stack");
}

/* --- a child of fork, while another thread is on one of the stacks --- */

static atomic_int on_it;

static void stay_on_it(void *arg)
{
    char frame[512];
    memset(frame, 1, sizeof(frame));
    __asm__ volatile("" : : "r"(frame) : "memory");
    atomic_store(&on_it, 1);
    while (atomic_load(&on_it) == 1)
        usleep(1000);
    *(char *)arg = frame[5];
}

static void *stay(void *arg)
{
    ms_aux_stack_call(stay_on_it, arg);
    return NULL;
}

/* As libraries do that no sanitizer has seen. */
__attribute__((noinline, no_sanitize("address"))) static void use_plainly(void *arg)
{
    char plain[4096];
    memset(plain, 1, sizeof(plain));
    __asm__ volatile("" : : "r"(plain) : "memory");
    *(bool *)arg &= plain[100] == 1;
}

static void test_fork(void)
{
    bool right = true;
    pthread_t thread;
    int status = -1;
    char byte = 0;

    pthread_create(&thread, NULL, stay, &byte);
    while (!atomic_load(&on_it))
        usleep(1000);
    pid_t child = fork();
    if (child == 0) {
        ms_aux_stacks_reset();
        for (int i = 0; i < 8 && right; i++) {
            right = ms_aux_stack_call(use_plainly, &right) && right;
            ms_aux_stack_take();
        }
        _exit(!right);
    }
    atomic_store(&on_it, 2);
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    ok(status == 0 && byte == 1, "a child has the stacks on which threads of its parent were");
}

/* --- how much is used: all of the first stacks is painted, and what lost its paint was used --- */

static char *painted[4];

static void paint(void)
{
    for (unsigned i = 0; i < 4; i++)
        painted[i] = ms_aux_stack_take();
    for (unsigned i = 4; i-- > 0;) {
        memset(painted[i], PAINT, MS_AUX_STACK_BYTES);
        ms_aux_stack_give(painted[i]);
    }
}

/* The most that was used of any from its upper end down; buffers lie at the lower end. */
static size_t used(void)
{
    size_t most = 0;
    for (unsigned i = 0; i < 4; i++) {
        size_t from = MS_AUX_STACK_BUFFER_BYTES;
        while (from < MS_AUX_STACK_BYTES && (unsigned char)painted[i][from] == PAINT)
            from++;
        most = MS_AUX_STACK_BYTES - from > most ? MS_AUX_STACK_BYTES - from : most;
    }
    return most;
}

static int compare(const void *a, const void *b)
{
    (void)a, (void)b;
    ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
    return 0;
}

static void in_signal(int number)
{
    (void)number;
    ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
}

static void test_learning(void)
{
    int numbers[4] = {4, 3, 2, 1};
    paint();
    qsort(numbers, 4, sizeof numbers[0], compare);
    signal(SIGUSR2, in_signal);
    raise(SIGUSR2);
    printf("# learning uses %zu bytes\n", used());
    ok(used() <= MS_AUX_STACK_BYTES / 4, "learning needs a quarter of a spare stack at most");
}

static bool was_refused;
static void complain(void *arg, const char *line)
{
    (void)arg, (void)line;
    was_refused = true;
}

/* How much the C library's compiler of expressions takes for this one. */
static size_t used_for(const char *expression)
{
    static char text[8192];
    char *environment[] = {text, NULL};
    snprintf(text, sizeof text, "MEMSHIM_INCLUDE=%s", expression);
    was_refused = false;
    paint();
    ms_options_load(environment, complain, NULL);
    return used();
}

/* As long, as deep and as often repeated as options.c lets through: each shape with the largest number that
 * it takes. */
static void test_regex(void)
{
    static const char *const shapes[] = {
        "a{%u}", "x{0,%u}", "(x?){0,%u}", "x?????{0,%u}", "(x|y|){1,%u}", "((((x?)?)?)?){0,%u}", "(a|b){%u}"};
    static char nested[1024], branches[4000];
    size_t most, now;
    for (unsigned i = 0; i < 60; i++)
        strcat(nested, "(a|b");
    for (unsigned i = 0; i < 60; i++)
        strcat(nested, ")");
    for (unsigned i = 0; i < sizeof branches - 1; i++)
        branches[i] = i % 2 ? '|' : 'a';
    most = used_for(nested);
    now = used_for(branches);
    most = now > most ? now : most;
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char expression[64];
        unsigned number = 4100;
        do {
            number -= number / 10;
            snprintf(expression, sizeof expression, shapes[i], number);
            now = used_for(expression);
        } while (was_refused && number > 20);
        printf("# %s: %zu bytes\n", expression, now);
        most = now > most ? now : most;
    }
    ok(most > 4096 && most <= MS_AUX_STACK_BYTES / 2, "a regular expression half of one: %zu bytes", most);
}

static void nothing(void *arg)
{
    (void)arg;
}

int main(void)
{
    if (!ms_aux_stack_call(nothing, NULL))
        skip_all("this machine has no way to switch stacks");
    plan(0);
    ms_stack_configure(MS_WALK_UNWIND, 64);
    test_call();
    test_buffers();
    test_giving(false);
    test_giving(true);
    test_guard();
    test_threads();
    test_fork();
    test_learning();
    test_regex();
    return done();
}
