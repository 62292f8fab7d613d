/* test_recall.c - a stack that is taken with the help of the latest one is the stack that a full walk finds:
 * whatever was called, returned and called again in between. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include "base/store/store.h"
#include "unwind/stack.h"
#include "unwind/native/unwind.h"
#include "tests/tap.h"

enum { STEPS = 4000, DEEPEST = 90, COROUTINE_BYTES = 1 << 18 };

static _Thread_local unsigned seed = 1;
static atomic_uint taken, wrong;

static unsigned roll(unsigned sides)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % sides;
}

static _Thread_local volatile sig_atomic_t is_inside;

/* Both ways from one place. */
static MS_NOINLINE void compare(void)
{
    is_inside = 1;
    uintptr_t frames[MS_STACK_DEPTH_MAX];
    const void *frame = __builtin_frame_address(0), *caller = __builtin_return_address(0);
    ms_stack_id ours = ms_stack_capture(frame, caller);
    unsigned count = ms_stack_walk(MS_WALK_UNWIND, frame, caller, frames, 64);
    taken++;
    if (!ours || ours != ms_stack_intern(frames, count))
        wrong++;
    is_inside = 0;
    __asm__ volatile("" ::: "memory");
}

static inline void use(char *room)
{
    __asm__ volatile("" ::"r"(room) : "memory");
}

/* Functions of one shape at different addresses, so that frames lie where others lay; and of other shapes. */
static void wander(unsigned depth);
#define SHAPE(name, before)                                                                                  \
    static MS_NOINLINE void name(unsigned depth)                                                             \
    {                                                                                                        \
        before;                                                                                              \
        do {                                                                                                 \
            if (roll(3) == 0)                                                                                \
                compare();                                                                                   \
            else if (depth)                                                                                  \
                wander(depth - 1);                                                                           \
            else                                                                                             \
                compare();                                                                                   \
        } while (roll(3) == 0);                                                                              \
        __asm__ volatile("" ::: "memory");                                                                   \
    }
SHAPE(same_a, (void)0)
SHAPE(same_b, (void)0)
SHAPE(same_c, (void)0)
SHAPE(large, char room[200]; use(room))
SHAPE(varying, char *room = __builtin_alloca(16 + roll(8) * 16); use(room))
SHAPE(realigned, char room[64] __attribute__((aligned(64))); use(room))

static MS_NOINLINE void wander(unsigned depth)
{
    static void (*const shapes[])(unsigned) = {same_a, same_b, same_c, same_a,
                                               same_b, same_c, large,  varying};
    if (roll(200) == 0)
        realigned(depth);
    else
        shapes[roll(MS_ARRAY_LEN(shapes))](depth);
    __asm__ volatile("" ::: "memory");
}

static void *wander_long(void *number)
{
    seed = (unsigned)(uintptr_t)number;
    for (int i = 0; i < STEPS; i++)
        wander(roll(12) ? roll(10) : roll(DEEPEST));
    return NULL;
}

static void expect(const char *what)
{
    unsigned missed = atomic_exchange(&wrong, 0);
    ok(atomic_exchange(&taken, 0) > 0 && missed == 0, "%s (%u differ)", what, missed);
}

static ucontext_t outside, inside;

static void in_coroutine(void)
{
    for (int i = 0; i < 50; i++) {
        wander(roll(10));
        swapcontext(&inside, &outside);
    }
}

/* The thread's own stack and another in turn, and another at the same place after that. */
static void test_coroutines(void)
{
    static char stack[COROUTINE_BYTES];
    for (volatile int round = 0; round < 3; round++) {
        memset(stack, round, sizeof stack);
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = sizeof stack;
        inside.uc_link = &outside;
        makecontext(&inside, in_coroutine, 0);
        for (volatile int i = 0; i < 50; i++) {
            wander(5);
            swapcontext(&outside, &inside);
        }
    }
    expect("coroutines");
}

static void on_signal(int number)
{
    (void)number;
    unsigned kept = seed;
    if (!is_inside)
        compare();
    seed = kept;
}

/* Handlers take stacks anywhere but in the middle of taking one, where a hook would not let them. */
static void test_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    struct itimerval every = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGPROF, &action, &before);
    setitimer(ITIMER_PROF, &every, NULL);
    wander_long((void *)77);
    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGPROF, &before, NULL);
    expect("signal handlers");
}

/* Calls compare_here and is interrupted right behind the call, so that the signal finds the registers which
 * the call found. */
void call_and_trap(void);
#ifdef __x86_64__
enum { TRAP_BYTES = 2 };
__asm__(".text\n"
        ".type call_and_trap, @function\n"
        "call_and_trap:\n"
        "    .cfi_startproc\n"
        "    sub $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call compare_here\n"
        "    ud2\n"
        "    add $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_and_trap, . - call_and_trap\n");
#else
enum { TRAP_BYTES = 4 };
__asm__(".text\n"
        ".type call_and_trap, %function\n"
        "call_and_trap:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, -16]!\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset 29, -16\n"
        "    .cfi_offset 30, -8\n"
        "    bl compare_here\n"
        "    .inst 0\n"
        "    ldp x29, x30, [sp], 16\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_and_trap, . - call_and_trap\n");
#endif

__attribute__((visibility("hidden"), used)) MS_NOINLINE void compare_here(void);
void compare_here(void)
{
    compare();
    __asm__ volatile("" ::: "memory");
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    mcontext_t *registers = &((ucontext_t *)context)->uc_mcontext;
    (void)number, (void)info;
    compare();
#ifdef __x86_64__
    registers->gregs[REG_RIP] += TRAP_BYTES;
#else
    registers->pc += TRAP_BYTES;
#endif
}

/* The address behind a call stands for the call in one stack, and for itself in the other. */
static void test_interrupted_behind_a_call(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGILL, &action, &before);
    for (int i = 0; i < 3; i++)
        call_and_trap();
    sigaction(SIGILL, &before, NULL);
    expect("a signal right behind a call that was remembered");
}

static MS_NOINLINE ms_stack_id from_one_place(unsigned depth)
{
    ms_stack_id id = depth ? from_one_place(depth - 1)
                           : ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
    __asm__ volatile("" : "+r"(id));
    return id;
}

/* Depths of a stack, by how many nodes it has. */
static unsigned length(ms_stack_id id)
{
    unsigned count = 0;
    uintptr_t frame;
    uint32_t generation;
    for (; id && ms_stack_node(id, &id, &frame, &generation) == 0; count++)
        ;
    return count;
}

static void test_limits(void)
{
    ms_stack_configure(MS_WALK_UNWIND, 5);
    unsigned five = length(from_one_place(20)), again = length(from_one_place(20));
    ms_stack_configure(MS_WALK_UNWIND, 9);
    unsigned nine = length(from_one_place(20));
    ms_stack_configure(MS_WALK_UNWIND, 200);
    unsigned all = length(from_one_place(100));
    ms_stack_configure(MS_WALK_UNWIND, 64);
    unsigned cut = length(from_one_place(100)), less = length(from_one_place(3));
    ok(five == 5 && again == 5 && nine == 9, "a stack has as many frames as are wanted: %u, %u, %u", five,
       again, nine);
    ok(all > 100 && cut == 64 && less < 20, "deeper than can be remembered, and then not: %u, %u, %u", all,
       cut, less);
}

int main(void)
{
    pthread_t threads[4];
    plan(0);
    if (!ms_table_reserve(MS_TABLE_NODES, 1))
        bail("no memory");
    ms_stack_configure(MS_WALK_UNWIND, 64);
    wander_long((void *)1);
    expect("functions that call each other at random");
    for (uintptr_t i = 0; i < MS_ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, wander_long, (void *)(i + 2));
    for (uintptr_t i = 0; i < MS_ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    expect("threads");
    test_coroutines();
    test_signals();
    test_interrupted_behind_a_call();
    test_limits();
    return done();
}
