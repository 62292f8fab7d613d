/* steps.c - see steps.h.
 *
 * Floor 5. Phases that the program named are its steps, if one name has most of the course. Else a window of
 * events in the last quarter is looked for in all of the course. The distance between its places is a period
 * if nearly all events equal those one period later. */
#include "cli/tune/steps.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 24, STEPS_LEAST = 3, LENGTH_LEAST = 8, ALIKE_PERCENT = 97, TRIES = 256, NAMES_MAX = 64 };
#define PRIME UINT64_C(0x100000001b3)

/* Numbers that are equal where two events count as the same; NULL without memory. */
static uint64_t *signatures(const struct ms_course *course, bool by_size)
{
    uint64_t *signs = calloc(course->count, sizeof(*signs)), *block = NULL;

    if (signs)
        block = calloc(course->block_count + 1u, sizeof(*block));
    for (size_t i = 0; block && i < course->count; i++) {
        const struct ms_course_event *event = &course->events[i];

        if (event->bytes)
            block[event->block] = (by_size ? event->bytes : event->site) * PRIME + event->stream;
        signs[i] = (block[event->block] * 2 + (event->bytes != 0)) * PRIME;
    }
    if (!block) {
        free(signs);
        signs = NULL;
    }
    free(block);
    return signs;
}

static bool same_window(const uint64_t *signs, size_t a, size_t b)
{
    return !memcmp(signs + a, signs + b, WINDOW * sizeof(*signs));
}

/* The distance from the window at `anchor` to the last one like it before. */
static size_t distance_of(const uint64_t *signs, size_t anchor)
{
    for (size_t back = 1; back <= anchor; back++)
        if (signs[anchor - back] == signs[anchor] && same_window(signs, anchor - back, anchor))
            return back;
    return 0;
}

/* Nearly all events of [first, first + length) equal those one period later. */
static bool is_alike(const uint64_t *signs, size_t first, size_t length, size_t period)
{
    size_t alike = 0;

    for (size_t i = first; i < first + length; i++)
        alike += signs[i] == signs[i + period];
    return alike * 100 >= length * ALIKE_PERCENT;
}

/* Several windows in a step may be alike, so the period is the distance to one of those before. */
static bool take_period(const uint64_t *signs, size_t count, size_t anchor, struct ms_steps *steps)
{
    size_t period = 0, first, rest = count - anchor;
    bool found = false;

    for (unsigned tries = 0; tries < TRIES && !found; tries++) {
        size_t part = distance_of(signs, anchor - period);

        if (!part || (period + part) * STEPS_LEAST > count || period + part > anchor)
            return false;
        period += part;
        found =
            period >= LENGTH_LEAST && is_alike(signs, anchor - period, period < rest ? period : rest, period);
    }
    if (!found)
        return false;
    for (first = anchor - period; first >= period && is_alike(signs, first - period, period, period);)
        first -= period;
    *steps = (struct ms_steps){.first = first, .length = period, .count = (count - first) / period};
    return steps->count >= STEPS_LEAST && first <= count / 2;
}

static bool has_sites(const struct ms_course *course)
{
    for (size_t i = 0; i < course->count; i++)
        if (course->events[i].bytes && course->events[i].site == MS_COURSE_NO_SITE)
            return false;
    return true;
}

/* Phases of one name: a step each, if most of the course is in them. The first one warms up. */
static void take_phases(const struct ms_course *course, struct ms_steps *steps)
{
    size_t names = 0, best_events = 0;
    const char *seen[NAMES_MAX];

    for (size_t i = 0; i < course->phase_count && names < NAMES_MAX; i++) {
        size_t count = 0, events = 0, first = SIZE_MAX, known = 0;

        while (known < names && strcmp(seen[known], course->phases[i].name) != 0)
            known++;
        if (known < names)
            continue;
        seen[names++] = course->phases[i].name;
        for (size_t j = i; j < course->phase_count; j++)
            if (!strcmp(course->phases[j].name, course->phases[i].name)) {
                events += course->phases[j].end - course->phases[j].begin;
                first = ++count == 2 ? course->phases[j].begin : first;
            }
        if (count > STEPS_LEAST && events > best_events && events * 2 > course->count &&
            first <= course->count / 2) {
            best_events = events;
            *steps = (struct ms_steps){
                .first = first, .count = count - 1, .length = (course->count - first) / (count - 1)};
        }
    }
}

void ms_steps_find(const struct ms_course *course, struct ms_steps *steps)
{
    size_t count = course->count;

    *steps = (struct ms_steps){.count = 0};
    take_phases(course, steps);
    for (unsigned way = 0; way < 2 && !steps->count && count >= 4 * WINDOW; way++) {
        uint64_t *signs = way == 0 || has_sites(course) ? signatures(course, way == 0) : NULL;

        for (unsigned part = 75; signs && part <= 90 && !steps->count; part += 5)
            if (!take_period(signs, count - WINDOW, (count - WINDOW) * part / 100, steps))
                steps->count = 0;
        free(signs);
        if (steps->count)
            steps->count = (count - steps->first) / steps->length;
    }
}
