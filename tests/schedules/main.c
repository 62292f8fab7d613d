/* main.c - runs programs under many schedules, shrinks what fails, and prints one.
 *
 * usage: schedules --list
 *        schedules PROGRAM random|pct|weak [COUNT [SEED [CHANGES]]]
 *        schedules PROGRAM random|pct|weak one SEED [CHANGES]
 *            prints each step of this one
 *        schedules PROGRAM random|pct|weak again COUNT
 *            says whether seed 1 does the same after COUNT others
 *        schedules PROGRAM every|whole [COUNT [PREEMPTIONS [ends]]]
 *            makes all schedules, COUNT at most, with up to so many preemptions (3): `every` leaves out those
 *            that only commute, `whole` none; `ends` counts the states of memory that they leave
 *
 * `weak` is random at even seeds and pct at odd ones, over memory as C11 has it (weak.h). The last line is
 * PROGRAM RULE: SCHEDULES schedules, STEPS steps, SECONDS s: nothing | found ..., of processor time */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "every.h"
#include "programs.h"
#include "real.h"

enum { EXPECTED_AT_FIRST = 500, PREEMPTIONS = 3, TRIES = 40 };

/* All that outlives a schedule. */
static struct keep {
    const struct program *program;
    struct outcome outcome;
    struct choice plan[CHOICES], tried[CHOICES];
    unsigned plan_count;
    /* Of a program in words: how many there are, which are left out (a bit each), and what is left. */
    unsigned words[TASKS];
    uint64_t without[TASKS];
    char left[TASKS][128];
    uint64_t schedules, steps, memory;
    bool found, weak, hashes, ordered;
} * keep;

static const struct program *const lists[] = {
    wrong_programs,      litmus_programs, locks_programs,        heap_programs,          streams_programs,
    ledger_programs,     inner_programs,  stacks_programs,       run_programs,           parts_programs,
    small_programs,      hits_programs,   small_record_programs, small_streams_programs, fences_programs,
    fences_hip_programs, wholes_programs, share_programs,        quota_programs};
uint64_t program_seed;

void program_leave_out(const char *words, char *left, unsigned task)
{
    const char *begin = left;
    keep->words[task] = 0;
    for (unsigned word = 0; *words; word = ++keep->words[task]) {
        size_t length = strcspn(words, " ") + 1;
        if (!(keep->without[task] >> word & 1)) {
            memcpy(left, words, length);
            left += length;
        }
        words += length;
    }
    *left = 0;
    snprintf(keep->left[task], sizeof keep->left[task], "%s", begin);
}

/* `name`, or the part of it before a colon; NULL: they are listed. */
static const struct program *find(const char *name)
{
    size_t length = name ? strcspn(name, ":") : 0;
    program_seed = name && name[length] ? strtoull(name + length + 1, NULL, 0) : 1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const struct program *p = lists[i]; p->name; p++) {
            if (!name)
                printf("%s%s\t%s\n", p->name,
                       p->wrong == WRONG        ? " wrong"
                       : p->wrong == WRONG_WEAK ? " wrong-weak"
                       : p->wrong == READS_OLD  ? " reads-old"
                                                : "",
                       p->text);
            else if (strlen(p->name) == length && strncmp(p->name, name, length) == 0)
                return p;
        }
    }
    return NULL;
}

static void check(void)
{
    keep->program->check();
    if (keep->hashes)
        keep->memory = freeze_hash();
}

static bool run(const struct schedule *schedule)
{
    struct keep *k = keep;
    engine_run(schedule, k->program->start, check, &k->outcome);
    k->schedules++;
    k->steps += k->outcome.steps;
    return k->outcome.failed;
}

static bool fails_by(const struct choice *plan, unsigned count)
{
    struct schedule schedule = {
        .rule = RULE_PLAN, .plan = plan, .plan_count = count, .weak = keep->weak, .ordered = keep->ordered};
    return run(&schedule);
}

/* Fewer and fewer of the places at which a task gave way, as long as it fails: by halves, then one by one. */
static void shrink(void)
{
    struct keep *k = keep;
    k->plan_count = k->outcome.choice_count;
    memcpy(k->plan, k->outcome.choices, k->plan_count * sizeof *k->plan);
    if (!fails_by(k->plan, k->plan_count))
        return;
    for (unsigned part = (k->plan_count + 1) / 2; part; part = part > 1 ? (part + 1) / 2 : 0) {
        for (unsigned at = 0; at < k->plan_count;) {
            unsigned left = k->plan_count - at, less = part < left ? part : left;
            memcpy(k->tried, k->plan, at * sizeof *k->plan);
            memcpy(k->tried + at, k->plan + at + less, (left - less) * sizeof *k->plan);
            if (!fails_by(k->tried, k->plan_count - less)) {
                at += less;
                continue;
            }
            k->plan_count -= less;
            memcpy(k->plan, k->tried, k->plan_count * sizeof *k->plan);
        }
    }
}

static bool fails_at_all(const struct schedule *schedule)
{
    struct schedule tried = *schedule;
    for (uint64_t i = 0; i < TRIES; i++) {
        tried.seed = schedule->seed + i;
        if (run(&tried))
            return true;
    }
    return false;
}

/* Fewer and fewer words, as long as some schedule fails; the outcome is of one that does. */
static void shrink_words(const struct schedule *schedule)
{
    struct keep *k = keep;
    bool any = false;
    for (unsigned task = 0; task < TASKS; task++) {
        for (unsigned word = 0; word < k->words[task] && word < 64; word++) {
            k->without[task] |= (uint64_t)1 << word;
            any = true;
            if (!fails_at_all(schedule))
                k->without[task] &= ~((uint64_t)1 << word);
        }
    }
    if (any)
        fails_at_all(schedule);
}

static void print(void)
{
    struct keep *k = keep;
    for (unsigned task = 0; task < TASKS; task++) {
        if (k->words[task])
            printf("# task %u: %s\n", task, k->left[task]);
    }
    struct schedule schedule = {.rule = RULE_PLAN,
                                .plan = k->plan,
                                .plan_count = k->plan_count,
                                .prints = true,
                                .weak = k->weak,
                                .ordered = k->ordered};
    unsigned switches = 0;
    for (unsigned i = 0; i < k->plan_count; i++)
        switches += k->plan[i].to < TASKS;
    printf("# %u switches are enough:", switches);
    for (unsigned i = 0; i < k->plan_count; i++) {
        const struct choice *choice = &k->plan[i];
        if (choice->to < TASKS)
            printf(" %u@%u>%u", choice->from, choice->step, choice->to);
        else
            printf(" %u@%u sees %u stores ago", choice->from, choice->step, choice->to - TASKS);
    }
    printf("\n");
    run(&schedule);
    printf("# %s\n", k->outcome.failed ? k->outcome.why : "shrunk, it does not fail any more");
}

static void report(const struct schedule *schedule, uint64_t number)
{
    keep->found = true;
    printf("found after %llu schedules, by seed %llu: %s\n", (unsigned long long)number,
           (unsigned long long)schedule->seed, keep->outcome.why);
    shrink_words(schedule);
    shrink();
    print();
}

static void run_seeds(enum rule rule, uint64_t count, uint64_t seed, unsigned changes)
{
    uint64_t expected = EXPECTED_AT_FIRST;
    for (uint64_t i = 0; i < count; i++) {
        struct schedule schedule = {
            .rule = rule, .seed = seed + i, .changes = changes, .expected = expected, .weak = keep->weak};
        if (keep->weak)
            schedule.rule = (seed + i) % 2 ? RULE_PCT : RULE_RANDOM;
        /* The same for a seed, whatever came before it: steps of a schedule without any preemption. */
        if (i == 0 && (rule == RULE_PCT || keep->weak)) {
            fails_by(NULL, 0);
            expected = schedule.expected = keep->outcome.steps;
        }
        if (run(&schedule)) {
            report(&schedule, i + 1);
            return;
        }
    }
}

/* What a schedule leaves behind would make one that comes later differ, in its steps or in its memory. */
static void run_again(enum rule rule, uint64_t count)
{
    struct keep *k = keep;
    struct schedule schedule = {.rule = rule, .seed = 1, .changes = 3, .expected = EXPECTED_AT_FIRST};
    uint64_t trace = 0, memory = 0;
    k->hashes = true;
    for (uint64_t i = 0; i <= count && !k->found; i++) {
        schedule.seed = i < count ? i + 1 : 1;
        schedule.weak = k->weak;
        k->found = run(&schedule);
        trace = i ? trace : k->outcome.trace;
        memory = i ? memory : k->memory;
    }
    k->found |= trace != k->outcome.trace || memory != k->memory;
    printf("# trace %016llx and %016llx, memory %016llx and %016llx\n", (unsigned long long)trace,
           (unsigned long long)k->outcome.trace, (unsigned long long)memory, (unsigned long long)k->memory);
}

static uint64_t end(void)
{
    return keep->memory;
}

static void find_every(bool reduces, uint64_t count, unsigned preemptions)
{
    struct keep *k = keep;
    struct every every = {.preemptions = preemptions,
                          .most = count,
                          .reduces = reduces,
                          .wants_ends = k->hashes,
                          .run = run,
                          .outcome = &k->outcome,
                          .end = end};
    every_schedule(&every, k->plan, &k->plan_count);
    if (every.found) {
        k->found = k->ordered = true;
        printf("found after %llu schedules: %s\n", (unsigned long long)k->schedules, k->outcome.why);
        print();
        return;
    }
    uint64_t made = k->schedules, steps = k->steps;
    unsigned tasks = 0;
    fails_by(NULL, 0);
    while (tasks < TASKS && k->outcome.task_steps[tasks])
        tasks++;
    k->schedules = made;
    k->steps = steps;
    printf(
        "# %s with up to %u preemptions: %llu made, of which %llu were cut short, by %u tasks in %llu steps",
        every.all ? "all" : "not all", preemptions, (unsigned long long)every.schedules,
        (unsigned long long)every.cut, tasks, (unsigned long long)k->outcome.steps);
    if (k->hashes)
        printf("; %llu ends, %016llx", (unsigned long long)every.ends, (unsigned long long)every.ends_sum);
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        find(NULL);
        return 0;
    }
    const struct program *program = argc > 2 ? find(argv[1]) : NULL;
    bool again = argc > 4 && strcmp(argv[3], "again") == 0, one = argc > 4 && strcmp(argv[3], "one") == 0;
    uint64_t count = one        ? 1
                     : argc > 3 ? strtoull(argv[3], NULL, 0)
                                : 1000,
             seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
    unsigned changes = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 0) % 8 : 3;
    if (!program) {
        fprintf(
            stderr,
            "usage: schedules --list | PROGRAM random|pct|weak|every|whole [COUNT|one [SEED [CHANGES]]]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    program->prepare();
    keep = real_map(NULL, sizeof *keep);
    keep->program = program;
    keep->weak = strcmp(argv[2], "weak") == 0;
    struct keep *k = keep;
    every_prepare();
    engine_freeze();
    clock_t begin = clock();
    if (strcmp(argv[2], "every") == 0 || strcmp(argv[2], "whole") == 0) {
        k->hashes = argc > 5;
        find_every(argv[2][0] == 'e', count, argc > 4 ? (unsigned)seed % 8 : PREEMPTIONS);
    } else if (again)
        run_again(strcmp(argv[2], "pct") == 0 ? RULE_PCT : RULE_RANDOM, seed);
    else
        run_seeds(strcmp(argv[2], "pct") == 0 ? RULE_PCT : RULE_RANDOM, count, seed, changes);
    printf("%s %s: %llu schedules, %llu steps, %.4f s: %s\n", program->name, argv[2],
           (unsigned long long)k->schedules, (unsigned long long)k->steps,
           (double)(clock() - begin) / CLOCKS_PER_SEC, k->found ? "found" : "nothing");
    return k->found;
}
