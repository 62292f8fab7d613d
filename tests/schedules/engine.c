/* engine.c - tasks, and who goes on; see engine.h.
 *
 * A switch swaps the machine's context and the thread-local variables of this program. Nothing of the engine
 * lies in variables that are put back, but the address of what it keeps. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "engine.h"
#include "real.h"
#include "weak.h"

/* STEPS_MOST: a schedule that goes on for so long is one in which nobody gets anywhere (the longest program
 * makes some ten thousand). STEP_NS: what a step takes by the engine's clock. */
enum { STACK_BYTES = 256 << 10, TLS_BYTES = 4096, STEPS_MOST = 50000, STEP_NS = 10 };

struct task {
    ucontext_t context;
    char *stack;
    char tls[TLS_BYTES];
    void (*function)(void *);
    void *argument;
    const uint32_t *waits;
    uint32_t waits_value;
    uint64_t until; /* by the clock; 0: it does not wait */
    uint32_t steps;
    unsigned priority;
    bool ended;
};

static struct engine {
    struct task tasks[TASKS];
    ucontext_t home;
    char home_tls[TLS_BYTES];
    int count, current;
    uint64_t clock, random;
    uint64_t changes_at[8];
    unsigned planned; /* choices of the plan that were made */
    struct schedule schedule;
    struct outcome *outcome;
} * engine;

int engine_current(void)
{
    return engine ? engine->current : -1;
}

uint64_t engine_clock(void)
{
    return engine->clock += STEP_NS;
}

/* splitmix64 */
uint64_t engine_random(void)
{
    uint64_t z = engine->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void swap(int next)
{
    struct span tls = freeze_tls();
    int from = engine->current;
    struct task *old = from < 0 ? NULL : &engine->tasks[from], *new = next < 0 ? NULL : &engine->tasks[next];
    if (next == from)
        return;
    memcpy(old ? old->tls : engine->home_tls, tls.at, tls.bytes);
    memcpy(tls.at, new ? new->tls : engine->home_tls, tls.bytes);
    engine->current = next;
    int saved_errno = errno; /* the C library's, and so the thread's that all run in */
    swapcontext(old ? &old->context : &engine->home, new ? &new->context : &engine->home);
    errno = saved_errno;
}

void engine_fail(const char *format, ...)
{
    va_list ap;
    struct outcome *outcome = engine->outcome;
    if (!outcome->failed) {
        outcome->failed = true;
        va_start(ap, format);
        vsnprintf(outcome->why, sizeof outcome->why, format, ap);
        va_end(ap);
    }
    if (engine->current >= 0)
        swap(-1);
}

static bool is_ready(struct task *task)
{
    if (task->ended)
        return false;
    if (task->until && ((task->waits && *(const volatile uint32_t *)task->waits != task->waits_value) ||
                        task->until <= engine->clock))
        task->until = 0;
    return !task->until;
}

/* All who could go on; where nobody could, time passes until somebody can. */
static unsigned find_ready(int *ready)
{
    unsigned count = 0;
    for (;;) {
        uint64_t next = UINT64_MAX;
        for (int i = 0; i < engine->count; i++) {
            struct task *task = &engine->tasks[i];
            if (is_ready(task))
                ready[count++] = i;
            else if (!task->ended && task->until < next)
                next = task->until;
        }
        if (count || next == UINT64_MAX)
            return count;
        engine->clock = next;
    }
}

static bool has(const int *ready, unsigned count, int task)
{
    for (unsigned i = 0; i < count; i++) {
        if (ready[i] == task)
            return true;
    }
    return false;
}

static int choose_random(const int *ready, unsigned count)
{
    if (has(ready, count, engine->current) && engine_random() % 8)
        return engine->current;
    return ready[engine_random() % count];
}

/* Burckhardt and others, "A randomized scheduler with probabilistic guarantees of finding bugs" (2010). */
static int choose_by_priority(const int *ready, unsigned count)
{
    int best = ready[0];
    for (unsigned i = 0; i < engine->schedule.changes && engine->current >= 0; i++) {
        if (engine->changes_at[i] == engine->outcome->steps)
            engine->tasks[engine->current].priority = engine->schedule.changes - i;
    }
    for (unsigned i = 1; i < count; i++) {
        if (engine->tasks[ready[i]].priority > engine->tasks[best].priority)
            best = ready[i];
    }
    return best;
}

static int choose_by_plan(const int *ready, unsigned count)
{
    const struct choice *plan = engine->schedule.plan;
    int current = engine->current;
    uint32_t step = current < 0 ? 0 : engine->tasks[current].steps;
    for (unsigned i = 0; i < engine->schedule.plan_count; i++) {
        if (plan[i].from != (current < 0 ? TASKS : current) || plan[i].step != step)
            continue;
        if (has(ready, count, plan[i].to)) {
            engine->planned++;
            return plan[i].to;
        }
    }
    return has(ready, count, current) ? current : ready[0];
}

static void note_choice(unsigned to)
{
    struct outcome *outcome = engine->outcome;
    int current = engine->current;
    if (outcome->choice_count < CHOICES)
        outcome->choices[outcome->choice_count++] =
            (struct choice){current < 0 ? 0 : engine->tasks[current].steps,
                            (uint8_t)(current < 0 ? TASKS : current), (uint8_t)to};
}

static unsigned planned_thing(unsigned count)
{
    uint32_t step = engine->tasks[engine->current].steps;
    for (unsigned i = 0; i < engine->schedule.plan_count; i++) {
        const struct choice *choice = &engine->schedule.plan[i];
        if (choice->from == engine->current && choice->step == step && choice->to >= TASKS &&
            choice->to < TASKS + count) {
            engine->planned++;
            return choice->to - TASKS;
        }
    }
    return 0;
}

/* At random, one time of four it is not what mostly happens. */
unsigned engine_choose(unsigned count)
{
    unsigned thing = 0;
    if (count < 2 || engine_current() < 0)
        return 0;
    if (engine->schedule.rule == RULE_PLAN)
        thing = planned_thing(count);
    else if (engine_random() % 4 == 0)
        thing = 1 + (unsigned)(engine_random() % (count - 1));
    if (thing)
        note_choice(TASKS + thing);
    return thing;
}

bool engine_is_private(const volatile void *at)
{
    struct span tls = freeze_tls();
    size_t in_stack = (size_t)((uintptr_t)at - (uintptr_t)engine->tasks[engine->current].stack);
    return in_stack < STACK_BYTES || (size_t)((uintptr_t)at - (uintptr_t)tls.at) < tls.bytes ||
           at == (const volatile void *)&errno;
}

static int choose(void)
{
    int ready[TASKS], next;
    unsigned count = find_ready(ready);
    if (!count) {
        for (int i = 0; i < engine->count; i++) {
            if (!engine->tasks[i].ended)
                engine_fail("nobody can go on");
        }
        return -1;
    }
    switch (engine->schedule.rule) {
    case RULE_RANDOM:
        next = choose_random(ready, count);
        break;
    case RULE_PCT:
        next = choose_by_priority(ready, count);
        break;
    default:
        next = choose_by_plan(ready, count);
    }
    if (next != engine->current)
        note_choice((unsigned)next);
    return next;
}

static void step(const void *pc)
{
    struct task *task = &engine->tasks[engine->current];
    task->steps++;
    engine->clock += STEP_NS;
    if (engine->schedule.prints)
        printf("step %llu %d %p\n", (unsigned long long)engine->outcome->steps, engine->current, pc);
    if (++engine->outcome->steps > STEPS_MOST)
        engine_fail("it has not ended after %d steps", STEPS_MOST);
}

void engine_point(const void *pc)
{
    if (engine_current() < 0)
        return;
    step(pc);
    swap(choose());
}

/* Who waits goes behind all others that have a priority. */
void engine_wait(const void *address, uint32_t value, uint64_t ns, const void *pc)
{
    if (engine_current() < 0)
        return;
    struct task *task = &engine->tasks[engine->current];
    step(pc);
    task->priority = 0;
    task->waits = address;
    task->waits_value = value;
    task->until = engine->clock + (ns ? ns : 1);
    swap(choose());
}

static void begin_task(void)
{
    struct task *task = &engine->tasks[engine->current];
    task->function(task->argument);
    task->ended = true;
    task->steps++;
    swap(choose());
    abort();
}

void engine_task(void (*function)(void *), void *argument)
{
    struct task *task = &engine->tasks[engine->count++];
    char *stack = task->stack;
    *task = (struct task){.stack = stack, .function = function, .argument = argument};
    memcpy(task->tls, freeze_first_tls(), freeze_tls().bytes);
    task->priority = TASKS + (unsigned)(engine_random() % 4096);
    getcontext(&task->context);
    task->context.uc_stack.ss_sp = stack;
    task->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&task->context, begin_task, 0);
}

void engine_end_others(void)
{
    for (int i = 0; i < engine->count; i++)
        engine->tasks[i].ended |= i != engine->current;
    weak_see_all();
}

/* Before main, and before whatever the program's constructors allocate. */
static __attribute__((constructor(101))) void begin(void)
{
    freeze_begin();
    struct engine *made = real_map(NULL, sizeof *made);
    for (int i = 0; i < TASKS; i++)
        made->tasks[i].stack = real_map(NULL, STACK_BYTES);
    made->current = -1;
    engine = made;
    if (freeze_tls().bytes > TLS_BYTES)
        abort();
    weak_prepare();
}

void engine_leave(void)
{
    engine->current = -1;
}

void engine_freeze(void)
{
    freeze_take();
}

void engine_run(const struct schedule *schedule, void (*start)(void), void (*check)(void),
                struct outcome *outcome_p)
{
    memset(outcome_p, 0, offsetof(struct outcome, choices));
    engine->schedule = *schedule;
    engine->outcome = outcome_p;
    engine->random = schedule->seed * 0x2545f4914f6cdd1du + 1;
    engine->clock = 1;
    engine->count = 0;
    engine->planned = 0;
    weak_begin(schedule->weak);
    start();
    for (unsigned i = 0; i < schedule->changes; i++)
        engine->changes_at[i] = 1 + engine_random() % (schedule->expected ? schedule->expected : 1);
    swap(choose());
    for (int i = 0; i < engine->count; i++)
        outcome_p->task_steps[i] = engine->tasks[i].steps;
    outcome_p->unmet = schedule->plan_count - engine->planned;
    if (!outcome_p->failed)
        check();
    freeze_put_back();
}
