/* engine.c - tasks, and who goes on; see engine.h.
 *
 * A switch swaps the registers that a call keeps (_setjmp: no call of the kernel's) and the thread-local
 * variables of this program. Nothing of the engine lies in variables that are put back, but the address of
 * what it keeps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "engine.h"
#include "order.h"
#include "real.h"
#include "weak.h"

/* STEPS_MOST: a schedule that goes on for so long is one in which nobody gets anywhere (the longest program
 * makes some ten thousand). STEP_NS: what a step takes by the engine's clock. ASKED: how often a task asks
 * for the time before that goes on, where it stands; but for the first times. It goes on by more each time,
 * four times as much and up to ASKED_LONGEST as often, as who asks so often spins until a moment is over: how
 * many rounds that takes says nothing (small-room-from-limbo makes a tenth of the steps). */
enum {
    ASKED = 64,
    ASKED_LONGEST = 2,
    ASKED_FIRST = 4,
    STACK_BYTES = 256 << 10,
    TLS_BYTES = 4096,
    TLS_PART = 64,
    STEPS_MOST = 50000,
    STEP_NS = 40
};

struct task {
    jmp_buf at, bottom; /* where it goes on, and where its next function begins */
    char *stack;
    char tls[TLS_BYTES];
    void (*function)(void *);
    void *argument;
    const uint32_t *waits;
    uint32_t waits_value;
    uint64_t until; /* by the clock; 0: it does not wait */
    uint32_t steps, asked;
    int priority;
    bool ended;
};

static struct engine {
    struct task tasks[TASKS];
    jmp_buf home;
    char home_tls[TLS_BYTES];
    struct span tls; /* the thread-local variables */
    /* By parts of them: from which on to which they ever differed from what they are at first, or never did,
     * by turns, beginning with those that did. */
    uint16_t tls_bounds[TLS_BYTES / TLS_PART + 3];
    uint64_t tls_differs; /* a bit for each part */
    int count, current;
    struct task *running; /* tasks[current] */
    unsigned waiting;     /* tasks that wait, a bit each */
    int waits;            /* how often anybody did */
    bool settled;         /* by priorities: nothing has changed since the one that runs was chosen */
    uint64_t clock, random;
    uint64_t waited; /* of the clock: since nobody could go on */
    uint64_t dice;   /* random bits that are left, and one above them */
    uint64_t changes_at[8];
    unsigned planned; /* choices of the plan that were made */
    uint64_t is_planned[TASKS + 1]
                       [STEPS_MOST / 64 + 1]; /* a bit for each step of a task's that the plan names */
    struct schedule schedule;
    struct outcome *outcome;
} * engine;

bool engine_hears;

int engine_current(void)
{
    return engine ? engine->current : -1;
}

/* Where time stands it goes on for who asks again and again, as he may wait for it; and at first, so that
 * what is timed takes some. */
static bool goes_on(struct task *task)
{
    uint32_t asked = task ? task->asked++ : 0;
    return !order_is_on || !task || asked < ASKED_FIRST || asked % ASKED == 0;
}

static uint64_t asked_ns(const struct task *task)
{
    uint32_t times = task ? task->asked / ASKED : 0;
    return (uint64_t)ASKED * STEP_NS << 2 * (times < ASKED_LONGEST ? times : ASKED_LONGEST);
}

uint64_t engine_clock(void)
{
    bool goes = goes_on(engine->running);
    order_time(goes);
    return engine->clock += goes ? (order_is_on ? asked_ns(engine->running) : STEP_NS) : 0;
}

uint64_t engine_ticks(void)
{
    uint64_t own = engine->running ? (uint64_t)engine->running->steps * STEP_NS : 0;
    return order_is_on ? engine->waited + own : engine->clock;
}

/* splitmix64 */
uint64_t engine_random(void)
{
    uint64_t z = engine->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t tls_bound(unsigned i)
{
    size_t at = (size_t)engine->tls_bounds[i] * TLS_PART;
    return at < engine->tls.bytes ? at : engine->tls.bytes;
}

/* The bounds, by the bits. */
static void bound_tls(void)
{
    unsigned count = 0, parts = (unsigned)((engine->tls.bytes + TLS_PART - 1) / TLS_PART);
    engine->tls_bounds[count++] = 0;
    for (unsigned part = 0; part < parts; part++) {
        if ((engine->tls_differs >> part & 1) != count % 2)
            engine->tls_bounds[count++] = (uint16_t)part;
    }
    engine->tls_bounds[count] = engine->tls_bounds[count + 1] = (uint16_t)parts;
}

/* Calls nobody: what that would leave behind on the stack would differ by what was learned before, and some
 * run on stacks that are put back. */
static inline bool differ(const char *one, const char *other, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && one[i] == other[i])
        i++;
    return i < bytes;
}

/* What differs in these variables, and never did before, is copied from now on. */
static void learn_tls(const char *now)
{
    const char *first = freeze_first_tls();
    bool same = true;
    for (unsigned i = 1; tls_bound(i) < engine->tls.bytes; i += 2)
        same &= memcmp(now + tls_bound(i), first + tls_bound(i), tls_bound(i + 1) - tls_bound(i)) == 0;
    if (same)
        return;
    for (size_t at = 0; at < engine->tls.bytes; at += TLS_PART) {
        size_t left = engine->tls.bytes - at, bytes = left < TLS_PART ? left : TLS_PART;
        engine->tls_differs |= (uint64_t)differ(now + at, first + at, bytes) << at / TLS_PART;
    }
    bound_tls();
}

static void copy_tls(char *to, const char *from)
{
    for (unsigned i = 0; tls_bound(i) < engine->tls.bytes; i += 2)
        memcpy(to + tls_bound(i), from + tls_bound(i), tls_bound(i + 1) - tls_bound(i));
}

static void swap(int next)
{
    int from = engine->current;
    struct task *old = engine->running, *new = next < 0 ? NULL : &engine->tasks[next];
    if (next == from)
        return;
    learn_tls(engine->tls.at);
    copy_tls(old ? old->tls : engine->home_tls, engine->tls.at);
    copy_tls(engine->tls.at, new ? new->tls : engine->home_tls);
    engine->current = next;
    engine->running = new;
    int saved_errno = errno; /* the C library's, and so the thread's that all run in */
    if (_setjmp(old ? old->at : engine->home) == 0)
        _longjmp(new ? new->at : engine->home, 1);
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

static void wake(struct task *task)
{
    engine->waiting &= ~(1u << (task - engine->tasks));
    engine->settled = false;
    task->until = 0;
}

/* Who waits goes on when the word has changed, or the time has come. */
static void look_at_waiting(void)
{
    for (unsigned left = engine->waiting; left; left &= left - 1) {
        struct task *task = &engine->tasks[__builtin_ctz(left)];
        if ((task->waits && *(const volatile uint32_t *)task->waits != task->waits_value) ||
            task->until <= engine->clock)
            wake(task);
    }
}

/* All who could go on; where nobody could, time passes until somebody can. */
static unsigned find_ready(int *ready)
{
    unsigned count = 0;
    for (;;) {
        uint64_t next = UINT64_MAX;
        look_at_waiting();
        for (int i = 0; i < engine->count; i++) {
            struct task *task = &engine->tasks[i];
            if (!task->ended && !task->until)
                ready[count++] = i;
            else if (!task->ended && task->until < next)
                next = task->until;
        }
        if (count || next == UINT64_MAX)
            return count;
        engine->waited += next - engine->clock;
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

/* Seven times of eight. */
static bool stays_by_chance(void)
{
    if (engine->dice <= 1)
        engine->dice = engine_random() | (uint64_t)1 << 63;
    bool stays = engine->dice & 7;
    engine->dice >>= 3;
    return stays;
}

/* `asks`: the task that runs has not been asked yet whether it stays. */
static int choose_random(const int *ready, unsigned count, bool asks)
{
    if (asks && has(ready, count, engine->current) && stays_by_chance())
        return engine->current;
    return ready[engine_random() % count];
}

/* Burckhardt and others, "A randomized scheduler with probabilistic guarantees of finding bugs" (2010). */
static int choose_by_priority(const int *ready, unsigned count)
{
    int best = ready[0];
    for (unsigned i = 0; i < engine->schedule.changes && engine->running; i++) {
        if (engine->changes_at[i] == engine->outcome->steps)
            engine->running->priority = (int)(engine->schedule.changes - i);
    }
    for (unsigned i = 1; i < count; i++) {
        if (engine->tasks[ready[i]].priority > engine->tasks[best].priority)
            best = ready[i];
    }
    engine->settled = true;
    return best;
}

static uint64_t *planned_bit(const struct choice *choice)
{
    return &engine->is_planned[choice->from][choice->step / 64];
}

static void index_plan(void)
{
    for (unsigned i = 0; i < engine->schedule.plan_count; i++)
        *planned_bit(&engine->schedule.plan[i]) |= (uint64_t)1 << engine->schedule.plan[i].step % 64;
}

static void clear_index(void)
{
    for (unsigned i = 0; i < engine->schedule.plan_count; i++)
        *planned_bit(&engine->schedule.plan[i]) = 0;
}

/* Whether the plan has something to say here. */
static bool is_planned(int current, uint32_t step)
{
    return engine->is_planned[current < 0 ? TASKS : current][step / 64] >> step % 64 & 1;
}

static int choose_by_plan(const int *ready, unsigned count)
{
    const struct choice *plan = engine->schedule.plan;
    int current = engine->current;
    uint32_t step = current < 0 ? 0 : engine->running->steps;
    if (!is_planned(current, step))
        return has(ready, count, current) ? current : ready[0];
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
        outcome->choices[outcome->choice_count++] = (struct choice){
            current < 0 ? 0 : engine->running->steps, (uint8_t)(current < 0 ? TASKS : current), (uint8_t)to};
}

static unsigned planned_thing(unsigned count)
{
    uint32_t step = engine->running->steps;
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
    struct span tls = engine->tls;
    size_t in_stack = (size_t)((uintptr_t)at - (uintptr_t)engine->running->stack);
    return in_stack < STACK_BYTES || (size_t)((uintptr_t)at - (uintptr_t)tls.at) < tls.bytes ||
           at == (const volatile void *)&errno;
}

/* Whether who makes plans ends the schedule here. */
static bool is_cut(const int *ready, unsigned count, int next, bool is_planned)
{
    int current = engine->current;
    struct choice choice = {current < 0 ? 0 : engine->running->steps,
                            (uint8_t)(current < 0 ? TASKS : current), (uint8_t)next};
    unsigned mask = 0;
    for (unsigned i = 0; i < count; i++)
        mask |= 1u << ready[i];
    engine->outcome->cut = engine->schedule.visit(&choice, mask, has(ready, count, current), is_planned);
    return engine->outcome->cut;
}

/* -1: nobody is left. */
static int choose(bool asks)
{
    int ready[TASKS], next;
    unsigned count = find_ready(ready), to_come = engine->schedule.plan_count - engine->planned;
    if (!count) {
        struct step_end end;
        if (order_is_on && engine->running)
            order_end_step(engine->current, &end);
        for (int i = 0; i < engine->count; i++) {
            if (!engine->tasks[i].ended)
                engine_fail("nobody can go on");
        }
        return -1;
    }
    switch (engine->schedule.rule) {
    case RULE_RANDOM:
        next = choose_random(ready, count, asks);
        break;
    case RULE_PCT:
        next = choose_by_priority(ready, count);
        break;
    default:
        next = choose_by_plan(ready, count);
    }
    if (next != engine->current)
        note_choice((unsigned)next);
    return engine->schedule.visit && is_cut(ready, count, next, to_come) ? -1 : next;
}

/* What choose() would say of the task that runs. */
static bool stays(void)
{
    if (engine->schedule.rule == RULE_RANDOM)
        return stays_by_chance();
    for (unsigned i = 0; i < engine->schedule.changes; i++) {
        if (engine->changes_at[i] == engine->outcome->steps)
            return false;
    }
    return engine->schedule.rule == RULE_PCT
               ? engine->settled
               : !engine->schedule.visit && !is_planned(engine->current, engine->running->steps);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 0x9e3779b97f4a7c15u;
}

static void step(const void *pc)
{
    engine->running->steps++;
    engine->clock += order_is_on ? 0 : STEP_NS;
    engine->outcome->trace = mix(engine->outcome->trace, (uintptr_t)pc << 3 | (unsigned)engine->current);
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
    if (engine->waiting)
        look_at_waiting();
    if (!stays())
        swap(choose(false));
}

/* Who waits goes behind all others, those too that waited before: two who wait again and again for a third
 * would keep it from its turn. */
void engine_wait(const void *address, uint32_t value, uint64_t ns, const void *pc)
{
    if (engine_current() < 0)
        return;
    struct task *task = engine->running;
    step(pc);
    order_world();
    order_time(true);
    engine->waiting |= 1u << engine->current;
    task->priority = -++engine->waits;
    task->waits = address;
    task->waits_value = value;
    task->until = engine->clock + (ns ? ns : 1);
    swap(choose(true));
}

/* What lies at the bottom of each stack: a schedule's task begins, by a jump, where this was left; one that
 * did not end is forgotten. */
static void run_functions(void)
{
    if (_setjmp(engine->tasks[engine->count].bottom) == 0)
        _longjmp(engine->home, 1);
    engine->running->function(engine->running->argument);
    engine->running->ended = true;
    engine->running->steps++;
    swap(choose(true));
    abort();
}

void engine_task(void (*function)(void *), void *argument)
{
    struct task *task = &engine->tasks[engine->count++];
    task->function = function;
    task->argument = argument;
    task->until = task->steps = task->asked = 0;
    task->ended = false;
    task->priority = TASKS + (int)(engine_random() % 4096);
    memcpy(task->at, task->bottom, sizeof task->at);
    memcpy(task->tls, freeze_first_tls(), engine->tls.bytes);
}

void engine_new_thread(void (*function)(void *), void *argument)
{
    struct task *task = &engine->tasks[engine->count];
    engine_task(function, argument);
    learn_tls(freeze_new_tls());
    memcpy(task->tls, freeze_new_tls(), engine->tls.bytes);
}

void engine_end_others(void)
{
    for (int i = 0; i < engine->count; i++) {
        wake(&engine->tasks[i]);
        engine->tasks[i].ended |= i != engine->current;
    }
    weak_see_all();
    if (order_is_on)
        order_all();
}

/* The task of this number has its stack, and waits at its bottom. */
static void make_stack(int number)
{
    ucontext_t context;
    engine->count = number;
    engine->tasks[number].stack = real_map(NULL, STACK_BYTES);
    getcontext(&context);
    context.uc_stack.ss_sp = engine->tasks[number].stack;
    context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&context, run_functions, 0);
    if (_setjmp(engine->home) == 0)
        setcontext(&context);
}

/* Before main, and before whatever the program's constructors allocate. */
static __attribute__((constructor(101))) void begin(void)
{
    freeze_begin();
    engine = real_map(NULL, sizeof *engine);
    engine->current = -1;
    for (int i = 0; i < TASKS; i++)
        make_stack(i);
    engine->tls = freeze_tls();
    if (engine->tls.bytes > TLS_BYTES)
        abort();
    weak_prepare();
    order_prepare();
}

void engine_leave(void)
{
    engine->current = -1;
    engine->running = NULL;
}

void engine_freeze(void)
{
    freeze_take();
    memcpy(engine->home_tls, freeze_first_tls(), engine->tls.bytes);
    bound_tls();
}

void engine_run(const struct schedule *schedule, void (*start)(void), void (*check)(void),
                struct outcome *outcome_p)
{
    memset(outcome_p, 0, offsetof(struct outcome, choices));
    engine->schedule = *schedule;
    engine->outcome = outcome_p;
    engine->random = schedule->seed * 0x2545f4914f6cdd1du + 1;
    engine->clock = 1;
    engine->waited = 0;
    engine->dice = 0;
    engine->count = 0;
    engine->waiting = 0;
    engine->waits = 0;
    engine->settled = false;
    engine->planned = 0;
    index_plan();
    engine_hears = schedule->weak || schedule->ordered;
    weak_begin(schedule->weak);
    order_begin(schedule->ordered);
    start();
    for (unsigned i = 0; i < schedule->changes; i++)
        engine->changes_at[i] = 1 + engine_random() % (schedule->expected ? schedule->expected : 1);
    swap(choose(true));
    for (int i = 0; i < engine->count; i++)
        outcome_p->task_steps[i] = engine->tasks[i].steps;
    clear_index();
    outcome_p->unmet = schedule->plan_count - engine->planned;
    if (!outcome_p->failed && !outcome_p->cut)
        check();
    freeze_put_back();
}
