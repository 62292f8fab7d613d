/* programs_litmus.c - the small programs by which memory models are told apart: `weak-*` show under rule
 * `weak` what they fail by, and under no other; `litmus-*` never do. */
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "programs.h"

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define SEQ_CST memory_order_seq_cst
/* Orders are constants where they are used: the compiler leaves one alone that is not. */
#define STORE(place, value, order) atomic_store_explicit(&(place), (value), order)
#define LOAD(place, order)         atomic_load_explicit(&(place), order)

static _Atomic int x, y;
static int plain, seen[4];

static void nothing(void)
{
}

#define TASK(name, body)                                                                                     \
    static void name(void *arg)                                                                              \
    {                                                                                                        \
        (void)arg;                                                                                           \
        body                                                                                                 \
    }
#define START(name, ...)                                                                                     \
    static void name(void)                                                                                   \
    {                                                                                                        \
        void (*tasks[])(void *) = {__VA_ARGS__};                                                             \
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)                                            \
            engine_task(tasks[i], NULL);                                                                     \
    }

/* Message passing: who sees the flag sees what was stored before it. */
static void look_for_message(int flag, int message)
{
    if (flag && !message)
        engine_fail("the flag is seen, and the message is not");
}

TASK(send_released, STORE(x, 1, RELAXED); STORE(y, 1, RELEASE);)
TASK(send_relaxed, STORE(x, 1, RELAXED); STORE(y, 1, RELAXED);)
TASK(send_fenced, STORE(x, 1, RELAXED); atomic_thread_fence(RELEASE); STORE(y, 1, RELAXED);)
TASK(receive_acquired, int flag = LOAD(y, ACQUIRE); look_for_message(flag, LOAD(x, RELAXED));)
TASK(receive_relaxed, int flag = LOAD(y, RELAXED); look_for_message(flag, LOAD(x, RELAXED));)
TASK(receive_fenced, int flag = LOAD(y, RELAXED); atomic_thread_fence(ACQUIRE);
     look_for_message(flag, LOAD(x, RELAXED));)
START(start_message, send_released, receive_acquired)
START(start_message_fenced, send_fenced, receive_fenced)
START(start_message_sent_relaxed, send_relaxed, receive_acquired)
START(start_message_read_relaxed, send_released, receive_relaxed)

/* The same with a message that is no atomic. */
TASK(send_plain, plain = 1; STORE(y, 1, RELEASE);)
TASK(send_plain_relaxed, plain = 1; STORE(y, 1, RELAXED);)
TASK(receive_plain, if (LOAD(y, ACQUIRE)) look_for_message(1, plain);)
START(start_plain, send_plain, receive_plain)
START(start_race, send_plain_relaxed, receive_plain)

/* A release sequence goes on by read-modify-write operations of others, and by nothing else. */
TASK(add_relaxed, if (LOAD(y, RELAXED) == 1) atomic_fetch_add_explicit(&y, 1, RELAXED);)
TASK(store_relaxed, if (LOAD(y, RELAXED) == 1) STORE(y, 2, RELAXED);)
TASK(receive_second, int flag = LOAD(y, ACQUIRE); look_for_message(flag == 2, LOAD(x, RELAXED));)
START(start_sequence, send_released, add_relaxed, receive_second)
START(start_sequence_broken, send_released, store_relaxed, receive_second)

/* Store buffering: each says that it is there and looks for the other. */
TASK(enter_first, STORE(x, 1, SEQ_CST); seen[0] = LOAD(y, SEQ_CST);)
TASK(enter_second, STORE(y, 1, SEQ_CST); seen[1] = LOAD(x, SEQ_CST);)
TASK(enter_first_released, STORE(x, 1, RELEASE); seen[0] = LOAD(y, ACQUIRE);)
TASK(enter_second_released, STORE(y, 1, RELEASE); seen[1] = LOAD(x, ACQUIRE);)
TASK(enter_first_fenced, STORE(x, 1, RELAXED); atomic_thread_fence(SEQ_CST); seen[0] = LOAD(y, RELAXED);)
TASK(enter_second_fenced, STORE(y, 1, RELAXED); atomic_thread_fence(SEQ_CST); seen[1] = LOAD(x, RELAXED);)
TASK(enter_first_compiled, STORE(x, 1, RELAXED); atomic_signal_fence(SEQ_CST); seen[0] = LOAD(y, RELAXED);)
TASK(enter_second_for_all, STORE(y, 1, RELAXED);
     syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); seen[1] = LOAD(x, RELAXED);)
START(start_entered, enter_first, enter_second)
START(start_entered_fenced, enter_first_fenced, enter_second_fenced)
START(start_entered_membarrier, enter_first_compiled, enter_second_for_all)
START(start_entered_released, enter_first_released, enter_second_released)
START(start_entered_half, enter_first_compiled, enter_second_fenced)

static void check_entered(void)
{
    if (!seen[0] && !seen[1])
        engine_fail("neither sees the other");
}

/* Independent reads of independent writes: whether two agree on which store came first. */
TASK(write_x, STORE(x, 1, SEQ_CST);)
TASK(write_y, STORE(y, 1, SEQ_CST);)
TASK(read_x_y, seen[0] = LOAD(x, SEQ_CST); seen[1] = LOAD(y, SEQ_CST);)
TASK(read_y_x, seen[2] = LOAD(y, SEQ_CST); seen[3] = LOAD(x, SEQ_CST);)
TASK(write_x_released, STORE(x, 1, RELEASE);)
TASK(write_y_released, STORE(y, 1, RELEASE);)
TASK(read_x_y_acquired, seen[0] = LOAD(x, ACQUIRE); seen[1] = LOAD(y, ACQUIRE);)
TASK(read_y_x_acquired, seen[2] = LOAD(y, ACQUIRE); seen[3] = LOAD(x, ACQUIRE);)
START(start_independent, write_x, write_y, read_x_y, read_y_x)
START(start_independent_released, write_x_released, write_y_released, read_x_y_acquired, read_y_x_acquired)

static void check_independent(void)
{
    if (seen[0] && !seen[1] && seen[2] && !seen[3])
        engine_fail("two do not agree on what came first");
}

/* Coherence: of one place nobody sees an older store after a newer one, its own or one it was told of. */
TASK(write_twice, STORE(x, 1, RELAXED); STORE(x, 2, RELAXED);
     if (LOAD(x, RELAXED) != 2) engine_fail("its own store is not seen");)
TASK(read_twice, int first = LOAD(x, RELAXED);
     if (LOAD(x, RELAXED) < first) engine_fail("an older store is seen after a newer one");)
TASK(read_and_tell, int first = LOAD(x, RELAXED); plain = first; STORE(y, 1, RELEASE);)
TASK(be_told, if (LOAD(y, ACQUIRE) && LOAD(x, RELAXED) < plain)
                  engine_fail("what one has seen is hidden from whom it told of that");)
START(start_coherence, write_twice, read_twice)
START(start_coherence_told, write_twice, read_and_tell, be_told)

TASK(add_one, atomic_fetch_add_explicit(&x, 1, RELAXED);)
START(start_additions, add_one, add_one, add_one)

static void check_additions(void)
{
    if (LOAD(x, RELAXED) != 3)
        engine_fail("an addition is lost");
}

/* Two looks, and then many: what is seen by the first two is to show, also where who stores was only seen to
 * race with one of the many (every.c leaves those out from some on). */
enum { LOOKS_MANY = 24 };

static void ask_for_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    STORE(y, 0, RELAXED);
}

static void look_long(void (*meanwhile)(void))
{
    seen[0] = LOAD(x, RELAXED);
    seen[1] = LOAD(x, RELAXED);
    for (unsigned i = 0; i < LOOKS_MANY && !LOAD(x, RELAXED); i++)
        meanwhile();
}

TASK(look_and_spin, look_long(nothing);)
TASK(look_by_the_clock, look_long(ask_for_time);)
TASK(store_one, STORE(x, 1, RELAXED);)
START(start_spun, look_and_spin, store_one)
START(start_spun_by_the_clock, look_by_the_clock, store_one)

#define ROW(name, text, start, check, wrong)                                                                 \
    {                                                                                                        \
        name, text, nothing, start, check, wrong                                                             \
    }

const struct program litmus_programs[] = {
    ROW("litmus-message", "message passing, released and acquired", start_message, nothing, RIGHT),
    ROW("litmus-message-fenced", "... by fences", start_message_fenced, nothing, RIGHT),
    ROW("litmus-message-plain", "... of what is no atomic", start_plain, nothing, RIGHT),
    ROW("litmus-sequence", "... through an addition of another's", start_sequence, nothing, RIGHT),
    ROW("litmus-entered", "store buffering, sequentially consistent", start_entered, check_entered, RIGHT),
    ROW("litmus-entered-fenced", "... by fences", start_entered_fenced, check_entered, RIGHT),
    ROW("litmus-entered-membarrier", "... by a fence in all threads on one side", start_entered_membarrier,
        check_entered, RIGHT),
    ROW("litmus-independent", "independent reads of independent writes, sequentially consistent",
        start_independent, check_independent, RIGHT),
    ROW("litmus-coherence", "two reads of one place", start_coherence, nothing, RIGHT),
    ROW("litmus-coherence-told", "... in two tasks", start_coherence_told, nothing, RIGHT),
    ROW("litmus-additions", "additions are not lost", start_additions, check_additions, RIGHT),
    ROW("litmus-spun", "two looks and a spin beside a store", start_spun, nothing, RIGHT),
    ROW("litmus-spun-timed", "... and a spin by the clock", start_spun_by_the_clock, nothing, RIGHT),
    ROW("weak-message", "message passing, sent relaxed", start_message_sent_relaxed, nothing, WRONG_WEAK),
    ROW("weak-message-read", "... and read relaxed", start_message_read_relaxed, nothing, WRONG_WEAK),
    ROW("weak-message-plain", "... of what is no atomic: a data race", start_race, nothing, WRONG_WEAK),
    ROW("weak-sequence", "... through a store of another's", start_sequence_broken, nothing, WRONG_WEAK),
    ROW("weak-entered", "store buffering, released and acquired", start_entered_released, check_entered,
        WRONG_WEAK),
    ROW("weak-entered-half", "... with a fence on one side", start_entered_half, check_entered, WRONG_WEAK),
    ROW("weak-independent", "independent reads of independent writes, released and acquired",
        start_independent_released, check_independent, WRONG_WEAK),
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
