/* test_policy.c - which settings can matter, what excludes what, how they are written; and the steps of a
 * course. */
#include "cli/tune/policy.h"
#include "cli/tune/steps.h"

#include "record/live/ledger.h"
#include "tests/tap.h"

enum { MOST = 4000 };
static struct ms_course_event events[MOST];

static void add(struct ms_course *course, uint64_t bytes, uint32_t block, uint8_t kind)
{
    events[course->count] = (struct ms_course_event){
        .ns = course->count * 1000, .bytes = bytes, .block = block, .kind = kind, .site = MS_COURSE_NO_SITE};
    course->count++;
    if (bytes)
        course->block_count++;
    if (bytes > course->live_peak)
        course->live_peak = bytes;
}

static size_t singles(const struct ms_course *course, struct ms_policy_facts *facts)
{
    *facts = (struct ms_policy_facts){.one_device = true, .held = true};
    ms_policy_look(facts, course);
    return ms_policy_singles(facts);
}

static bool find(const struct ms_policy_facts *facts, const char *wanted, struct ms_policy *policy)
{
    char text[512];

    for (size_t i = 0; i < ms_policy_singles(facts); i++) {
        *policy = ms_policy_single(facts, i);
        ms_policy_write(policy, facts, text, sizeof(text));
        if (!strcmp(text, wanted))
            return true;
    }
    return false;
}

static void test_what_matters(void)
{
    struct ms_course course = {.events = events};
    struct ms_policy_facts facts;
    struct ms_policy policy;

    add(&course, 1000, 0, MS_KIND_ASYNC);
    singles(&course, &facts);
    ok(!facts.plain && !find(&facts, "MEMSHIM_PACK=none", &policy) &&
           find(&facts, "MEMSHIM_MODE=track", &policy),
       "of memory in the order of streams, what is about chunks cannot matter");
    add(&course, 1000, 1, MS_KIND_DEVICE);
    singles(&course, &facts);
    ok(find(&facts, "MEMSHIM_PACK=none", &policy) && !find(&facts, "MEMSHIM_ALIGN=2M", &policy) &&
           !find(&facts, "MEMSHIM_SINGLE_MIN=4M", &policy),
       "of small blocks, nothing about large ones can");
    add(&course, 5 << 20, 2, MS_KIND_DEVICE);
    add(&course, 0, 1, MS_KIND_DEVICE);
    singles(&course, &facts);
    ok(find(&facts, "MEMSHIM_ALIGN=2M", &policy) && find(&facts, "MEMSHIM_SINGLE_MIN=4M", &policy) &&
           find(&facts, "MEMSHIM_PREALLOC=5M", &policy),
       "of large ones it can; what is taken at once is the most that was live");
    for (unsigned i = 0; i < 100; i++)
        add(&course, i ? 1 : 0, i ? 2 + i : 2, MS_KIND_DEVICE);
    singles(&course, &facts);
    ok(!facts.held && !find(&facts, "MEMSHIM_PREALLOC=5M", &policy),
       "nothing is taken for good where the most is live for a moment alone");
    for (unsigned pause = 0; pause < 2; pause++) {
        const uint64_t ns = pause ? UINT64_C(2000000000) : 900000000;

        for (size_t i = 4; i < course.count; i++)
            events[i].ns += ns; /* all is live meanwhile */
        singles(&course, &facts);
        is_int(facts.held, pause,
               "time counts in a run that takes some, and not how long a short one was stopped");
    }
    events[1].device = 1;
    singles(&course, &facts);
    ok(!facts.one_device && !find(&facts, "MEMSHIM_PREALLOC=5M", &policy) &&
           find(&facts, "MEMSHIM_ALIGN=2M", &policy),
       "nor on two devices");
}

static void test_joins(void)
{
    struct ms_policy_facts facts = {true, true, true, true, true, true, 3 << 20, 2 << 20};
    struct ms_policy vmm, all, none, track, align, both, three;
    char text[512];

    ok(find(&facts, "MEMSHIM_BACKING=vmm", &vmm) && find(&facts, "MEMSHIM_PACK=all", &all) &&
           find(&facts, "MEMSHIM_PACK=none", &none) && find(&facts, "MEMSHIM_MODE=track", &track) &&
           find(&facts, "MEMSHIM_ALIGN=2M", &align),
       "all are there");
    ok(ms_policy_join(&all, &vmm, &both) && ms_policy_count(&both) == 2, "two may be set together");
    ms_policy_write(&both, &facts, text, sizeof(text));
    is_str(text, "MEMSHIM_BACKING=vmm MEMSHIM_PACK=all", "and are one line");
    ok(!ms_policy_join(&all, &none, &three) && !ms_policy_join(&both, &all, &three),
       "one variable has one value");
    ok(!ms_policy_join(&track, &align, &three) && !ms_policy_join(&align, &track, &three),
       "where nothing is pooled nothing of the pool can be set");
    ok(!ms_policy_join(&vmm, &none, &three) && !ms_policy_join(&both, &align, &three) &&
           ms_policy_join(&vmm, &align, &three),
       "what excludes each other is not tried, also in threes");
    const char *name, *other;
    ok(ms_policy_clash("MEMSHIM_KEEP=0 MEMSHIM_PREALLOC=1M MEMSHIM_PACK=none", &name, &other) &&
           !strcmp(name, "MEMSHIM_PACK") && !strcmp(other, "MEMSHIM_PREALLOC") &&
           !ms_policy_clash("MEMSHIM_PREALLOC=1M MEMSHIM_PACK=nonesuch", &name, &other) &&
           !ms_policy_clash("MEMSHIM_PREALLOC=1M MEMSHIM_PACK=all", &name, &other),
       "nor is it taken where the user says it");
    ok(find(&facts, "PYTORCH_NO_CUDA_MEMORY_CACHING=1", &three) && ms_policy_uncached(&three) &&
           !ms_policy_uncached(&all) && ms_policy_join(&three, &vmm, &both) &&
           ms_policy_pending(&both, UINT64_C(1) << 30) == 62 << 20 &&
           ms_policy_pending(&both, 1) == 32 << 20 && !ms_policy_pending(&vmm, 1),
       "a framework's cache may be off, and then frees come while work is queued");
    facts.tensors = false;
    ok(!find(&facts, "PYTORCH_NO_CUDA_MEMORY_CACHING=1", &three), "not where its tensors are not known");
    for (size_t i = 0; i < sizeof(both.tried); i++)
        both.tried[i] = 0;
    ms_policy_write(&both, &facts, text, sizeof(text));
    is_str(text, "", "the defaults are no line");
}

/* `before` blocks, and then steps of so many blocks, freed in another order. */
static void make_steps(struct ms_course *course, unsigned before, unsigned steps, unsigned blocks,
                       unsigned vary)
{
    uint32_t next = 0;

    memset(course, 0, sizeof(*course));
    course->events = events;
    for (unsigned i = 0; i < before; i++)
        add(course, 100 + i * i, next++, MS_KIND_DEVICE);
    for (unsigned step = 0; step < steps; step++) {
        for (unsigned i = 0; i < blocks; i++) {
            add(course, 4096 + (uint64_t)i * 512 + step * vary, next++, MS_KIND_DEVICE);
            events[course->count - 1].site = 7 + i;
        }
        for (unsigned i = 0; i < blocks; i++)
            add(course, 0, next - blocks + (i * 7) % blocks, MS_KIND_DEVICE);
    }
}

static void test_steps(void)
{
    struct ms_course course;
    struct ms_steps steps;

    make_steps(&course, 57, 20, 30, 0);
    ms_steps_find(&course, &steps);
    ok(steps.length == 60 && steps.count >= 18 && steps.count <= 20 && steps.first >= 57 &&
           steps.first < 57 + 120,
       "steps that repeat are found behind what warms up: %zu of %zu from %zu on", steps.count, steps.length,
       steps.first);
    make_steps(&course, 0, 20, 30, 512);
    ms_steps_find(&course, &steps);
    ok(steps.length == 60, "also where sizes vary, by call sites: %zu", steps.length);
    make_steps(&course, 0, 20, 30, 512);
    for (size_t i = 0; i < course.count; i++)
        events[i].site = MS_COURSE_NO_SITE;
    ms_steps_find(&course, &steps);
    ok(!steps.count, "not where the trace has none");
    make_steps(&course, 2000, 5, 30, 0);
    ms_steps_find(&course, &steps);
    ok(!steps.count, "a loop in less than half of it is no step");
    make_steps(&course, 10, 0, 0, 0);
    ms_steps_find(&course, &steps);
    ok(!steps.count, "nor is anything in ten events");
}

/* Steps in which nothing is alike, each a phase, with another in it. */
static void test_phases(void)
{
    struct ms_course_phase phases[40];
    struct ms_course course;
    struct ms_steps steps;

    make_steps(&course, 0, 10, 20, 512);
    for (size_t i = 0; i < course.count; i++)
        events[i].site = MS_COURSE_NO_SITE;
    for (unsigned i = 0; i < 10; i++) {
        phases[2 * i] = (struct ms_course_phase){(char *)"step", 40 * i, 40 * i + 38};
        phases[2 * i + 1] = (struct ms_course_phase){(char *)"forward", 40 * i, 40 * i + 10};
    }
    course.phases = phases;
    course.phase_count = 20;
    ms_steps_find(&course, &steps);
    ok(steps.count == 9 && steps.first == 40 && steps.length == 40,
       "phases are steps, and the first one warms up: %zu of %zu from %zu on", steps.count, steps.length,
       steps.first);
    for (unsigned i = 0; i < 20; i++)
        phases[i].end = phases[i].begin + 4;
    ms_steps_find(&course, &steps);
    ok(!steps.count, "not where most of the course is in none");
}

int main(void)
{
    plan(0);
    test_what_matters();
    test_joins();
    test_steps();
    test_phases();
    return done();
}
