/* calls.h - what a program asks of the pool, as text: a word for each call, and what must hold meanwhile.
 *
 * Over the driver of tests/pool/fake.h, with one device and two contexts that share it. A word is a letter
 * and perhaps a digit, which is one of eight blocks that all tasks share, each of its own size (calls.c):
 *
 *   t take   g give   d give what others give as well   p pin   u unpin what this task pinned
 *   l look up what a task that was not told of it took
 *   i work is issued   f it is done   h the oldest of it is   s wait for it
 *   c begin a capture   e end it   G a graph of it lives
 *   a take memory of another kind, for which there must be room   b take much, which nobody frees
 *   x give back what is idle   m make room   q ask for figures   o stop the pool, and compare its figures
 *   r another device may reach the memory   w rest   2 go on in the other context   k which dies
 *   F fork: the other tasks are not there in the child, which begins anew
 *
 * Where there are hits, the record is there too (recorded.h), and must always say what the pool says. */
#ifndef MS_TESTS_SCHEDULES_CALLS_H
#define MS_TESTS_SCHEDULES_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum { CALLS_TASKS = 3 };

/** A driver with so much memory, and a pool in which these calls were made. */
void calls_prepare(uint64_t capacity, bool vmm, const char *text);
/** In start(): a task that makes these calls, kept until the schedule ends. */
void calls_task(const char *text);
/** A pool with a record beside it, in which these calls were made, by a thread to which a thread cache and a
 * shard have come: its task is a calls_task, those of others are new. */
void calls_prepare_hits(uint64_t capacity, const char *text);
void calls_new_thread(const char *text);
/** programs_hits.c: whether a magazine of the calling thread has a block for so many bytes. Only then pool
 * and record change at once. */
bool hits_have_ready(uint64_t bytes);
void calls_check(void);
/** In a task: stops the pool, whose figures and pieces must say the same of that moment. */
void calls_stop(void);

/* A program in words: what is there before, and its tasks, "" for those that are not there. */
#define CALLS_PROGRAM(name, capacity, vmm, before, first, second, third)                                     \
    static void prepare_##name(void)                                                                         \
    {                                                                                                        \
        calls_prepare((uint64_t)(capacity) << 20, vmm, before);                                              \
    }                                                                                                        \
    static void start_##name(void)                                                                           \
    {                                                                                                        \
        const char *const tasks[] = {first, second, third};                                                  \
        for (unsigned i = 0; i < CALLS_TASKS && *tasks[i]; i++)                                              \
            calls_task(tasks[i]);                                                                            \
    }

#define CALLS_ROW(symbol, name, text)                                                                        \
    {                                                                                                        \
        name, text, prepare_##symbol, start_##symbol, calls_check, RIGHT                                     \
    }

#endif
