/* captures.c - the captures that are open, by the streams at which they began; see captures.h.
 *
 * A capture spreads over other streams, which capture too and end nothing; and what the driver says of a
 * stream may be an error. So it is counted by what the program called. Owns rows of the arena, which are used
 * again and never leave the list, so that who reads it needs no lock; and the count of all
 * (vendor/context_scope.h), which is written here alone. */
#include "base/arena.h"
#include "base/at_fork.h"
#include "base/thread/guard.h"
#include "pool/clock/captures.h"

#define PER_THREAD 2u /* the greatest handle that is another stream in each context, or thread */

struct origin {
    struct origin *_Atomic next;
    _Atomic uint64_t context; /* 0: nobody's; written last, and taken back first */
    uint64_t stream;
    uint32_t thread;
};

static struct origin *_Atomic origins;
static _Atomic bool unlisted; /* there was no memory for a row */

static struct origin *next_of(const struct origin *origin)
{
    return atomic_load_explicit(origin ? &origin->next : &origins, memory_order_acquire);
}

static uint64_t captures_context_of(const struct origin *origin)
{
    return atomic_load_explicit(&origin->context, memory_order_relaxed);
}

static bool is_its(const struct origin *origin, uint64_t stream, uint64_t context)
{
    return captures_context_of(origin) && origin->stream == stream &&
           (stream > PER_THREAD ||
            (captures_context_of(origin) == context && origin->thread == ms_thread_id()));
}

static struct origin *captures_find(uint64_t stream, uint64_t context)
{
    struct origin *origin = next_of(NULL);
    while (origin && !is_its(origin, stream, context))
        origin = next_of(origin);
    return origin;
}

static struct origin *captures_unused(void)
{
    struct origin *origin = next_of(NULL);
    while (origin && captures_context_of(origin))
        origin = next_of(origin);
    if (!origin && (origin = ms_arena_alloc(sizeof(*origin))) != NULL) {
        atomic_store_explicit(&origin->next, next_of(NULL), memory_order_relaxed);
        atomic_store_explicit(&origins, origin, memory_order_release);
    }
    return origin;
}

static void captures_count(int change)
{
    int open = atomic_load_explicit(&ms_open_captures, memory_order_relaxed) + change;
    atomic_store_explicit(&ms_open_captures, open, memory_order_release);
}

static void captures_begin(uint64_t stream, uint64_t context)
{
    struct origin *origin = captures_unused();
    if (origin) {
        origin->stream = stream;
        origin->thread = ms_thread_id();
        atomic_store_explicit(&origin->context, context, memory_order_release);
    } else
        atomic_store_explicit(&unlisted, true, memory_order_relaxed);
    captures_count(1);
}

static void captures_end(struct origin *origin)
{
    atomic_store_explicit(&origin->context, 0, memory_order_relaxed);
    captures_count(-1);
}

bool ms_capture_is_open(uint64_t stream, uint64_t context)
{
    return captures_find(stream, context) != NULL;
}

void ms_capture_set(uint64_t stream, uint64_t context, bool open)
{
    struct origin *origin = captures_find(stream, context);
    if (origin && !open)
        captures_end(origin);
    else if (!origin && open)
        captures_begin(stream, context);
}

void ms_captures_context_died(uint64_t context)
{
    for (struct origin *origin = next_of(NULL); origin && context; origin = next_of(origin)) {
        if (captures_context_of(origin) == context)
            captures_end(origin);
    }
}

/* --- captures that any event may harm ------------------------------------------------------------------- */

static _Atomic uint32_t inside; /* threads that are in a call about an event */
static bool announced;          /* streams' lock held */

/* Whoever comes in looks for captures behind having said so, and whoever begins one looks for them behind
 * having announced it: one of the two sees the other. */
bool ms_captures_let(const struct ms_gpu *gpu)
{
    if (MS_LIKELY(!gpu->captures_are_frail))
        return true;
    atomic_fetch_add_explicit(&inside, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    if (MS_LIKELY(!ms_captures_may_be_open()))
        return true;
    ms_captures_let_end(gpu);
    return false;
}

void ms_captures_let_end(const struct ms_gpu *gpu)
{
    if (MS_UNLIKELY(gpu->captures_are_frail))
        atomic_fetch_sub_explicit(&inside, 1, memory_order_release);
}

bool ms_captures_announce(void)
{
    if (!announced)
        captures_count(1);
    announced = true;
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&inside, memory_order_acquire) == 0;
}

void ms_captures_answered(void)
{
    if (announced)
        captures_count(-1);
    announced = false;
}

bool ms_captures_in_slowly(uint64_t context)
{
    const struct origin *origin = next_of(NULL);
    while (origin && context && captures_context_of(origin) != context)
        origin = next_of(origin);
    return origin || !context || atomic_load_explicit(&unlisted, memory_order_relaxed);
}

void ms_captures_reset(void)
{
    atomic_store_explicit(&origins, NULL, memory_order_relaxed);
    atomic_store_explicit(&ms_open_captures, 0, memory_order_relaxed);
    atomic_store_explicit(&unlisted, false, memory_order_relaxed);
    atomic_store_explicit(&inside, 0, memory_order_relaxed);
    announced = false;
}
MS_AT_FORK(MS_FORK_POOL, ms_captures_reset);
