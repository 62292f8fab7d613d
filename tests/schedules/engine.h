/* engine.h - several tasks of which one runs at a time, and who decides at every step which goes on.
 *
 * A task stands for a thread: it has a stack and thread-local variables of its own. All run in the one thread
 * of the process, so nothing happens at the same time, and a schedule is told by the places at which one task
 * gave way to another. A task may give way at a *point*: before an atomic operation (atomics.c), at a lock, a
 * nap or a fence of all threads (world.c), and before a call of the vendor's. Time is the engine's.
 *
 * What the tasks share is put back before each schedule (freeze.c), so schedules do not know of each other,
 * and the same choices make the same run. */
#ifndef MS_TESTS_SCHEDULES_ENGINE_H
#define MS_TESTS_SCHEDULES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TASKS = 8, CHOICES = 8192 };

/** One task gives way to another: at its `step`-th point, counted by itself. From TASKS on `to` says that it
 * goes on, and which of several things happens there (engine_choose). */
struct choice {
    uint32_t step;
    uint8_t from, to;
};

enum rule {
    RULE_RANDOM, /* at one point of eight anybody */
    RULE_PCT,    /* by random priorities, of which some change at random points */
    RULE_PLAN,   /* as `plan` has it; nobody else gives way who could go on */
};

struct schedule {
    enum rule rule;
    uint64_t seed;
    unsigned changes;  /* PCT: at how many points */
    uint64_t expected; /* PCT: among how many */
    const struct choice *plan;
    unsigned plan_count;
    bool prints;
    bool weak;    /* loads may see older stores (weak.h) */
    bool ordered; /* time stands while anybody can go on, and it is noted what depends on what (order.h) */
    /* Of a plan: called where somebody is chosen; whether the schedule is to end there. `ready` is a bit for
     * each who could be, `stays` whether who runs is among them, `is_planned` whether choices are to come. */
    bool (*visit)(const struct choice *choice, unsigned ready, bool stays, bool is_planned);
};

/** Of one run. `choices` are all places at which a task gave way. */
struct outcome {
    uint64_t steps;
    uint64_t trace; /* a hash of whose step each was, and where */
    uint64_t task_steps[TASKS];
    unsigned
        unmet; /* choices of the plan that could not be made: the task was not there, or the other waited */
    bool failed, cut; /* `cut`: visit() has ended it */
    char why[256];
    unsigned choice_count;
    struct choice choices[CHOICES];
};

/** Whether the rule of the schedule that runs wants to hear of plain accesses; put back after each. */
extern bool engine_hears;

/** Once, with everything set up that all schedules begin with. */
void engine_freeze(void);
/** start() adds the tasks, check() looks at what is left when all have ended. */
void engine_run(const struct schedule *schedule, void (*start)(void), void (*check)(void),
                struct outcome *outcome_p);

/** In start(): one more task, with the thread-local variables of who has prepared the program; or of a thread
 * that has done nothing yet. */
void engine_task(void (*function)(void *), void *argument);
void engine_new_thread(void (*function)(void *), void *argument);
/** In a task: the others end here, as in the child of a fork. */
void engine_end_others(void);
/** A task may give way here; `pc` is where, for who reads. */
void engine_point(const void *pc);
/** The task can go on when the word at `address` is not `value` any more, and after `ns` at the latest; NULL:
 * then only. */
void engine_wait(const void *address, uint32_t value, uint64_t ns, const void *pc);
/** Which of `count` things happens at the latest point, 0 for what mostly does. */
unsigned engine_choose(unsigned count);
/** Whether nobody but the task that runs has this memory: its stack, its thread-local variables. */
bool engine_is_private(const volatile void *at);
/** Something is wrong: the schedule ends here. Does not return in a task. */
void engine_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** In a child of fork() made by a task: nothing is a point any more, and nobody else goes on. */
void engine_leave(void);
/** The task that runs, -1 for none: then nothing is a point. */
int engine_current(void);
/** Nanoseconds; goes on by itself with every step. */
uint64_t engine_clock(void);
/** The same as the processor counts it. Where time stands, steps of the task's own count alone, so that they
 * depend on nobody's. */
uint64_t engine_ticks(void);
uint64_t engine_random(void);

/* freeze.c */
void freeze_begin(void);
void freeze_take(void);
void freeze_put_back(void);
/** The page, if schedules share it, can be written to from now on, and is put back; for handlers of SIGSEGV.
 * False: it is another's. */
bool freeze_open(void *page);
/** A hash of all that differs from what was frozen. */
uint64_t freeze_hash(void);
/** In a child of fork(): everything can be written to, and nothing is put back any more. */
void freeze_end(void);
/* A stretch of memory. */
struct span {
    char *at;
    size_t bytes;
};
/** Memory that goes with the schedule, zeroed. */
void *freeze_alloc(size_t bytes, size_t align);
/** The thread-local variables of this program, as they were when frozen, and as a new thread has them. */
struct span freeze_tls(void);
const char *freeze_first_tls(void);
const char *freeze_new_tls(void);

#endif
