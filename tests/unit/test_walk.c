/* test_walk.c - the walk finds the true return addresses, stays inside what is mapped, and ends.
 *
 * The truth is what each function of the chain wrote down about itself: its own return address. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/compiler.h"
#include "unwind/stack.h"
#include "tests/tap.h"

enum { STACK_BYTES = 256 * 1024, CHAIN_MAX = 2000 };

static uintptr_t truth[CHAIN_MAX]; /* [n] is the return address of the chain's n-th function, innermost 0 */
static uintptr_t frames[MS_STACK_DEPTH_MAX];
static unsigned count, want_max = MS_STACK_DEPTH_MAX;
static enum ms_walk mode;
static uintptr_t wrong_caller;

/* As a hook does. */
static MS_NOINLINE void hook(void)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    truth[0] = caller;
    count = ms_stack_walk(mode, __builtin_frame_address(0), (void *)(wrong_caller ? wrong_caller : caller),
                          frames, want_max);
    __asm__ volatile("" ::: "memory");
}

static MS_NOINLINE void chain(int n, void (*innermost)(void))
{
    truth[n] = (uintptr_t)__builtin_return_address(0);
    if (n > 1)
        chain(n - 1, innermost);
    else
        innermost();
    __asm__ volatile("" ::: "memory"); /* not a tail call */
}

/* How many of the first `n` frames are the chain's. */
static unsigned agreeing(unsigned n)
{
    unsigned same = 0;
    while (same < n && same < count && frames[same] == truth[same])
        same++;
    return same;
}

static void test_chain(const char *name)
{
    chain(20, hook);
    is_u64(agreeing(21), 21, "%s: every frame is the true one", name);
    ok(count > 21 && count < 60, "%s: and the walk goes on to the end (%u frames)", name, count);
    want_max = 4;
    chain(20, hook);
    ok(count == 4 && agreeing(4) == 4, "%s: no more frames than asked for", name);
    want_max = 0;
    chain(2, hook);
    is_u64(count, 0, "%s: none if none are asked for", name);
    want_max = MS_STACK_DEPTH_MAX;
    chain(1500, hook);
    ok(count == MS_STACK_DEPTH_MAX && agreeing(MS_STACK_DEPTH_MAX) == MS_STACK_DEPTH_MAX,
       "%s: deep recursion is cut", name);
    errno = 55;
    chain(3, hook);
    is_int(errno, 55, "%s: errno is left alone", name);
}

static void *in_thread(void *arg)
{
    (void)arg;
    chain(20, hook);
    return NULL;
}

static void test_thread(const char *name)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    ok(agreeing(21) == 21 && count < 40, "%s: another thread's stack ends where it began (%u frames)", name,
       count);
}

static void on_signal(int number)
{
    (void)number;
    hook();
    __asm__ volatile("" ::: "memory");
}

static uintptr_t raiser;

static MS_NOINLINE void raise_signal(void)
{
    raiser = (uintptr_t)__builtin_return_address(0);
    raise(SIGUSR1);
    __asm__ volatile("" ::: "memory");
}

static void test_signal(const char *name, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    chain(20, raise_signal);
    unsigned place = 0;
    while (place < count && frames[place] != raiser)
        place++;
    ok(count > 0 && frames[0] == truth[0], "%s: in a signal handler%s the first frame is the caller", name,
       flags & SA_ONSTACK ? " on its own stack" : "");
    if (mode != MS_WALK_UNWIND)
        return;
    unsigned same =
        0; /* truth[0] is the handler's here; the chain's innermost function was called from truth[1] */
    while (same < 20 && place + same + 1 < count && frames[place + same + 1] == truth[same + 1])
        same++;
    ok(place < count && same == 20, "%s: and the interrupted frames follow", name);
}

static ucontext_t main_context, coroutine;
static uintptr_t coroutine_frame_pointer; /* 0: leave it */

#ifdef __x86_64__
/* Calls `function` with this value in the frame pointer's register, as code without frame pointers may. */
void call_with_frame_pointer(uintptr_t value, void (*function)(void));
__asm__(".text\n"
        ".type call_with_frame_pointer, @function\n"
        "call_with_frame_pointer:\n"
        "  .cfi_startproc\n"
        "  push %rbp\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  .cfi_rel_offset %rbp, 0\n"
        "  mov %rdi, %rbp\n"
        "  call *%rsi\n"
        "  pop %rbp\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size call_with_frame_pointer, . - call_with_frame_pointer\n");
#else
static void call_with_frame_pointer(uintptr_t value, void (*function)(void))
{
    (void)value;
    function();
}
#endif

static void coroutine_body(void)
{
    if (coroutine_frame_pointer)
        call_with_frame_pointer(coroutine_frame_pointer, hook);
    else
        chain(20, hook);
}

/* On a stack of its own, between two pages that cannot be read. */
static void run_coroutine(uintptr_t frame_pointer_above_top)
{
    char *memory = mmap(NULL, STACK_BYTES + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + 4096, STACK_BYTES, PROT_READ | PROT_WRITE);
    char *top = memory + 4096 + STACK_BYTES;
    coroutine_frame_pointer = frame_pointer_above_top ? (uintptr_t)top + frame_pointer_above_top - 4096 : 0;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = memory + 4096;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, coroutine_body, 0);
    swapcontext(&main_context, &coroutine);
    munmap(memory, STACK_BYTES + 2 * 4096);
}

static void test_coroutine(const char *name)
{
    run_coroutine(0);
    ok(agreeing(21) == 21 && count < 40, "%s: a coroutine's frames are found, and end (%u frames)", name,
       count);
}

/* Values that a frame pointer register may hold; offsets are from 4096 below the top of a coroutine's
 * stack. */
static void test_wild_frame_pointers(void)
{
    static const uintptr_t offsets[] = {4096, 4096 + 8, 4096 + 4088, 4096 - 8, 4096 - 16, 4000, 4096 + 3};
    mode = MS_WALK_FP;
    for (unsigned i = 0; i < MS_ARRAY_LEN(offsets); i++) {
        run_coroutine(offsets[i]);
        ok(count >= 1 && frames[0] == truth[0], "frame pointer %+d from the top of its stack does no harm",
           (int)offsets[i] - 4096);
    }
    static const uintptr_t values[] = {
        1, 8, 0x10, UINTPTR_MAX, UINTPTR_MAX - 7, UINT64_C(0x800000000000), UINT64_C(0xffff800000000000)};
    for (unsigned i = 0; i < MS_ARRAY_LEN(values); i++) {
        call_with_frame_pointer(values[i], hook);
        ok(count >= 1 && frames[0] == truth[0], "frame pointer %#lx does no harm", (unsigned long)values[i]);
    }
    mode = MS_WALK_UNWIND;
    call_with_frame_pointer(1, hook);
    ok(count > 3 && frames[0] == truth[0], "the tables do not need it");
}

static void test_unknown_caller(void)
{
    mode = MS_WALK_UNWIND;
    wrong_caller = 0x1234;
    chain(3, hook);
    ok(count == 1 && frames[0] == 0x1234, "a caller that the tables do not lead to is the only frame");
    wrong_caller = 0;
    mode = MS_WALK_OFF;
    chain(3, hook);
    is_u64(count, 0, "off is off");
    ms_stack_configure(MS_WALK_OFF, 64);
    is_u64(ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0)), 0,
           "and captures nothing");
    ms_stack_configure(MS_WALK_UNWIND, 0);
    ms_stack_id id = ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0)), parent = 99;
    uint32_t generation;
    uintptr_t frame = 0;
    ok(ms_stack_node(id, &parent, &frame, &generation) == 0 && parent == 0 &&
           frame == (uintptr_t)__builtin_return_address(0),
       "a depth of 0 is 1: the caller");
}

int main(void)
{
    static char signal_stack[64 * 1024];
    stack_t alternate = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    static const struct {
        enum ms_walk mode;
        const char *name;
    } walks[] = {{MS_WALK_UNWIND, "tables"}, {MS_WALK_FP, "frame pointers"}};
    plan(0);
    sigaltstack(&alternate, NULL);
    for (unsigned i = 0; i < MS_ARRAY_LEN(walks); i++) {
        mode = walks[i].mode;
        test_chain(walks[i].name);
        test_thread(walks[i].name);
        test_signal(walks[i].name, 0);
        test_signal(walks[i].name, SA_ONSTACK);
        test_coroutine(walks[i].name);
    }
    test_wild_frame_pointers();
    test_unknown_caller();
    return done();
}
