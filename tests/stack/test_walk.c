/* test_walk.c - our walk finds the frames that libgcc's unwinder finds: without frame pointers, in threads,
 * on coroutine stacks, far down a recursion; and gets through machine code that has no unwind tables. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "unwind/native/unwind.h"
#include "tests/stack/snap.h"
#include "tests/tap.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static struct snap shared;

static void take(void *arg)
{
    snap_take(arg);
}

static void same(const struct snap *snap, unsigned least, const char *what)
{
    int at = snap_difference(snap);
    ok(at < 0 && snap->ours_count >= least, "%s: %u frames, as libgcc has them", what, snap->ours_count);
    if (at >= 0)
        diag("ours %u, libgcc %u frames; frame %d is %#lx and %#lx", snap->ours_count, snap->libgcc_count, at,
             (unsigned long)snap->ours[at], (unsigned long)snap->libgcc[at]);
}

static void test_shapes(void)
{
    for (unsigned depth = 0; depth < 40; depth += 13) {
        frames_call(depth, FRAMES_SHAPES, take, &shared);
        same(&shared, depth, "frames of all shapes");
    }
    /* Again, now with every rule in the cache. */
    frames_call(39, FRAMES_SHAPES, take, &shared);
    same(&shared, 39, "the same frames once more");
}

static void *in_thread(void *arg)
{
    struct snap *snap = arg;
    frames_call(20, FRAMES_SHAPES, take, snap);
    return NULL;
}

static void test_threads(void)
{
    enum { THREADS = 8 };
    static struct snap snaps[THREADS];
    pthread_t threads[THREADS];
    int different = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, in_thread, &snaps[i]);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++)
            different += snap_difference(&snaps[i]) >= 0 || snaps[i].ours_count < 20;
    }
    is_int(different, 0, "threads: as libgcc has them");
}

static MS_NOINLINE unsigned recurse(unsigned left, struct snap *snap)
{
    volatile unsigned here = left;
    if (left == 0)
        snap_take(snap);
    else
        here += recurse(left - 1, snap);
    return here;
}

static void test_recursion(void)
{
    recurse(SANITIZED ? 5000 : 100000, &shared);
    ok(shared.ours_count == SNAP_MAX && snap_difference(&shared) < 0,
       "far down a recursion: the innermost %u frames", shared.ours_count);
    recurse(20, &shared);
    same(&shared, 21, "and back up");
}

#if !SANITIZED
static ucontext_t main_context, coroutine;

static void coroutine_main(void)
{
    frames_call(10, FRAMES_SHAPES, take, &shared);
}

/* Not inlined: getcontext() returns twice as far as the compiler knows, and what a caller counts would be
 * lost. */
static __attribute__((noinline)) void run_coroutine(char *memory, size_t bytes)
{
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = memory;
    coroutine.uc_stack.ss_size = bytes;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, coroutine_main, 0);
    swapcontext(&main_context, &coroutine);
}

/* `guarded`: the page above the stack cannot be read, so that a step too far is a crash. */
static void test_coroutine(bool guarded)
{
    enum { BYTES = 1 << 20 };
    char *memory =
        mmap(NULL, BYTES + MS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded)
        mprotect(memory + BYTES, MS_PAGE_BYTES, PROT_NONE);
    for (int round = 0; round < 3; round++)
        run_coroutine(memory, BYTES);
    ok(shared.ours_count >= 11 && shared.ours_count <= 40, "a coroutine's stack%s: %u frames",
       guarded ? " with nothing above it" : "", shared.ours_count);
    unsigned equal = 0;
    while (equal < shared.ours_count && equal < shared.libgcc_count &&
           shared.ours[equal] == shared.libgcc[equal])
        equal++;
    ok(equal == shared.libgcc_count, "... and libgcc's %u among them", shared.libgcc_count);
    munmap(memory, BYTES + MS_PAGE_BYTES);
}
#else
static void test_coroutine(bool guarded)
{
    (void)guarded;
    skip(2, "a sanitizer does not follow a change of stacks");
}
#endif

#if defined(__x86_64__)
static const unsigned char code_with_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const unsigned char code_without_pointer[] = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd7,
                                                     0x48, 0x83, 0xc4, 0x18, 0xc3};
#elif defined(__aarch64__)
/* stp x29,x30,[sp,-16]!; mov x29,sp; blr x0; ldp x29,x30,[sp],16; ret */
static const unsigned char code_with_pointer[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
                                                  0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
/* str x30,[sp,-16]!; blr x0; ldr x30,[sp],16; ret */
static const unsigned char code_without_pointer[] = {0xfe, 0x0f, 0x1f, 0xf8, 0x00, 0x00, 0x3f, 0xd6,
                                                     0xfe, 0x07, 0x41, 0xf8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static MS_NOINLINE void take_shared(void)
{
    snap_take(&shared);
    __asm__ volatile("" ::: "memory");
}

static MS_NOINLINE void call_made(const unsigned char *code, size_t bytes, uintptr_t *made_p)
{
    void *made = mmap(NULL, MS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, bytes);
    mprotect(made, MS_PAGE_BYTES, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(made, (char *)made + bytes);
    ((void (*)(void (*)(void)))made)(take_shared);
    munmap(made, MS_PAGE_BYTES);
    *made_p = (uintptr_t)made;
}

/* libgcc stops at made code. The stack through the form with a frame pointer is whole; the form without may
 * leave callers out, but what it shows must be true. */
static MS_NOINLINE void test_made_code(void)
{
    static struct snap whole;
    static const struct {
        const unsigned char *code;
        size_t bytes;
    } forms[] = {{code_with_pointer, sizeof code_with_pointer},
                 {code_without_pointer, sizeof code_without_pointer}};
    for (volatile unsigned form = 0; form < MS_ARRAY_LEN(forms);
         form++) { /* one place to call from: not unrolled */
        uintptr_t made;
        whole = shared;
        call_made(forms[form].code, forms[form].bytes, &made);
        ok(shared.ours_count >= 2 && shared.ours[1] - made < MS_PAGE_BYTES, "made code is a frame");
    }
    unsigned i = 2, j = 2;
    while (i < shared.ours_count && j < whole.ours_count)
        i += shared.ours[i] == whole.ours[j++];
    is_u64(i, shared.ours_count, "made code without a frame pointer: the callers that are found are callers");
#ifdef MS_HAVE_LIBUNWIND
    snap_take(&shared);
    ok(whole.ours_count == shared.ours_count + 3 &&
           whole.ours[whole.ours_count - 1] == shared.ours[shared.ours_count - 1],
       "made code with a frame pointer: all of them are");
#else
    skip(1, "libunwind is not built in");
#endif
}

static MS_NOINLINE void test_pointers(void)
{
    uintptr_t frames[SNAP_MAX];
    errno = EXDEV;
    unsigned count =
        ms_stack_walk(MS_WALK_FP, __builtin_frame_address(0), __builtin_return_address(0), frames, SNAP_MAX);
    is_int(errno, EXDEV, "errno is kept");
    snap_take(&shared);
    bool equal = count >= 2 && count <= shared.ours_count;
    for (unsigned i = 0; i < 2 && equal; i++)
        equal = frames[i] == shared.ours[i + 1];
    ok(equal, "by frame pointers: the same callers");
    is_u64(
        ms_stack_walk(MS_WALK_OFF, __builtin_frame_address(0), __builtin_return_address(0), frames, SNAP_MAX),
        0, "off: none");
    is_u64(ms_stack_walk(MS_WALK_UNWIND, __builtin_frame_address(0), __builtin_return_address(0), frames, 1),
           1, "no more frames than asked for");
}

int main(void)
{
    plan(0);
    test_shapes();
    test_threads();
    test_recursion();
    test_coroutine(false);
    test_coroutine(true);
    test_made_code();
    test_pointers();
    return done();
}
