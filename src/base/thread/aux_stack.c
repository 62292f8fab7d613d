/* aux_stack.c - auxiliary stacks: taking one, and calling a function on it. See aux_stack.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/at_fork.h"
#include "base/compiler.h"
#include "base/thread/aux_stack.h"

/* More threads than any machine runs at once are inside memshim's slow paths at once only where the scheduler
 * took them off there. */
enum { SPARES = 1024 };

struct spare {
    _Atomic(char *) memory; /* NULL: not there yet */
    atomic_bool busy;
};

static struct spare spares[SPARES];
static MS_TLS uint16_t latest; /* which this thread took or gave back: its lines are near */
static MS_TLS bool is_on_spare;

/* The frames of threads that are gone are nobody's: AddressSanitizer would still hold what lies around their
 * variables against whoever is there next. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHES_FRAMES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHES_FRAMES 1
#endif
#endif
#ifdef WATCHES_FRAMES
#include <sanitizer/asan_interface.h>
static void forget_frames(char *memory)
{
    if (memory)
        ASAN_UNPOISON_MEMORY_REGION(memory, MS_AUX_STACK_BYTES);
}
#else
static void forget_frames(char *memory)
{
    (void)memory;
}
#endif

/* The bytes above the page that cannot be touched. */
static char *map_stack(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, page + MS_AUX_STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    if (mprotect(memory, page, PROT_NONE) != 0) {
        munmap(memory, page + MS_AUX_STACK_BYTES);
        return NULL;
    }
    return memory + page;
}

static struct spare *aux_stack_take(void)
{
    for (unsigned i = 0; i < SPARES; i++) {
        struct spare *spare = &spares[(latest + i) % SPARES];
        if (atomic_load_explicit(&spare->busy, memory_order_relaxed) ||
            atomic_exchange_explicit(&spare->busy, true, memory_order_acquire))
            continue;
        if (!atomic_load_explicit(&spare->memory, memory_order_relaxed))
            atomic_store_explicit(&spare->memory, map_stack(), memory_order_relaxed);
        if (atomic_load_explicit(&spare->memory, memory_order_relaxed)) {
            latest = (uint16_t)(spare - spares);
            return spare;
        }
        atomic_store_explicit(&spare->busy, false, memory_order_release);
        return NULL;
    }
    return NULL;
}

/* The stack that is given back last was taken first: so a thread has the same ones again. */
static void aux_stack_give(struct spare *spare)
{
    latest = (uint16_t)(spare - spares);
    atomic_store_explicit(&spare->busy, false, memory_order_release);
}

/* ms_aux_stack_switch(function, argument, top): function(argument) with the stack pointer at `top`. The frame
 * pointer leads back, for debuggers and unwinders as for itself. */
#if defined(__x86_64__)
#define CAN_SWITCH 1
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden ms_aux_stack_switch\n"
        ".type ms_aux_stack_switch, @function\n"
        ".globl ms_aux_stack_switch\n"
        "ms_aux_stack_switch:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "movq %rdx, %rsp\n"
        "movq %rdi, %rax\n"
        "movq %rsi, %rdi\n"
        "callq *%rax\n"
        "movq %rbp, %rsp\n"
        "popq %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "retq\n"
        ".cfi_endproc\n"
        ".size ms_aux_stack_switch, . - ms_aux_stack_switch\n");
#elif defined(__aarch64__)
#define CAN_SWITCH 1
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden ms_aux_stack_switch\n"
        ".type ms_aux_stack_switch, %function\n"
        ".globl ms_aux_stack_switch\n"
        "ms_aux_stack_switch:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset x29, -16\n"
        ".cfi_offset x30, -8\n"
        "mov x29, sp\n"
        ".cfi_def_cfa_register x29\n"
        "mov sp, x2\n"
        "mov x9, x0\n"
        "mov x0, x1\n"
        "blr x9\n"
        "mov sp, x29\n"
        ".cfi_def_cfa_register sp\n"
        "ldp x29, x30, [sp], #16\n"
        ".cfi_restore x30\n"
        ".cfi_restore x29\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ms_aux_stack_switch, . - ms_aux_stack_switch\n");
#else
#define CAN_SWITCH 0
#endif

#if CAN_SWITCH
void ms_aux_stack_switch(void (*function)(void *), void *argument, void *top);
#else
static void ms_aux_stack_switch(void (*function)(void *), void *argument, void *top)
{
    (void)function, (void)argument, (void)top;
}
#endif

/* The signals first: a handler must find neither half of the switch. */
static MS_NOINLINE void call_on(struct spare *spare, void (*function)(void *), void *argument)
{
    int saved_errno = errno;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    is_on_spare = true;
    ms_aux_stack_switch(function, argument,
                        atomic_load_explicit(&spare->memory, memory_order_relaxed) + MS_AUX_STACK_BYTES);
    is_on_spare = false;
    aux_stack_give(spare);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
}

bool ms_aux_stack_call(void (*function)(void *), void *argument)
{
    struct spare *spare;

    if (is_on_spare) {
        function(argument);
        return true;
    }
    if (!CAN_SWITCH || !(spare = aux_stack_take()))
        return false;
    call_on(spare, function, argument);
    return true;
}

void ms_aux_stack_call_anyway(void (*function)(void *), void *argument)
{
    if (!ms_aux_stack_call(function, argument))
        function(argument);
}

void *ms_aux_stack_take(void)
{
    int saved_errno = errno;
    struct spare *spare = aux_stack_take();

    errno = saved_errno;
    return spare ? atomic_load_explicit(&spare->memory, memory_order_relaxed) : NULL;
}

/* It is the latest, or one before: what was taken while this was busy has been given back. */
void ms_aux_stack_give(void *buffer)
{
    for (unsigned i = 0; buffer && i < SPARES; i++) {
        struct spare *spare = &spares[(latest + SPARES - i) % SPARES];
        if (atomic_load_explicit(&spare->memory, memory_order_relaxed) == buffer) {
            aux_stack_give(spare);
            return;
        }
    }
}

void ms_aux_stacks_reset(void)
{
    for (unsigned i = 0; i < SPARES; i++) {
        forget_frames(atomic_load_explicit(&spares[i].memory, memory_order_relaxed));
        atomic_store_explicit(&spares[i].busy, false, memory_order_relaxed);
    }
    is_on_spare = false;
}
MS_AT_FORK(MS_FORK_BASE, ms_aux_stacks_reset);
