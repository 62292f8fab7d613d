/* policy.c - see policy.h.
 *
 * Floor 5. Pure. */
#include "cli/tune/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "record/live/ledger.h"

#define MIB (UINT64_C(1) << 20)

enum { HELD_SHARE = 4, LIMBO_PERCENT = 6 };
#define LIMBO_LEAST (32 * MIB)
#define AT_ONCE_NS  UINT64_C(1000000000)

enum matters { MATTERS_ALWAYS, MATTERS_PLAIN, MATTERS_LARGE, MATTERS_SINGLE, MATTERS_HELD, MATTERS_TENSORS };

static const char *const names[] = {
#define MS_SETTING(id, name) name,
#define MS_TRY(...)
#define MS_EXCLUDES(...)
#include "cli/tune/policy.def"
#undef MS_SETTING
#undef MS_TRY
#undef MS_EXCLUDES
};

static const struct try_row {
    enum ms_setting setting;
    const char *value;
    enum matters matters;
    const char *reason;
} rows[] = {
#define MS_SETTING(...)
#define MS_TRY(id, value, matters, reason) {MS_SETTING_##id, value, MATTERS_##matters, reason},
#define MS_EXCLUDES(...)
#include "cli/tune/policy.def"
#undef MS_SETTING
#undef MS_TRY
#undef MS_EXCLUDES
};

static const struct {
    enum ms_setting setting;
    const char *value;
    enum ms_setting other;
    const char *other_value;
} excludes[] = {
#define MS_SETTING(...)
#define MS_TRY(...)
#define MS_EXCLUDES(id, value, other, other_value) {MS_SETTING_##id, value, MS_SETTING_##other, other_value},
#include "cli/tune/policy.def"
#undef MS_SETTING
#undef MS_TRY
#undef MS_EXCLUDES
};

/* A quarter of the most that was live is live on average: what is taken for good is used then. The times of a
 * run that is over at once are the machine's and not the program's, so there each event weighs as much. */
static bool is_held(const struct ms_course *course)
{
    uint64_t *bytes = calloc(course->block_count + 1u, sizeof(*bytes)), live = 0,
             span = course->count ? course->events[course->count - 1].ns - course->events[0].ns : 0;
    double held = 0, whole = 0;

    for (size_t i = 0; bytes && i < course->count; i++) {
        const struct ms_course_event *event = &course->events[i];
        uint64_t weight = !i ? 0 : span < AT_ONCE_NS ? 1 : event->ns - course->events[i - 1].ns;

        held += (double)live * (double)weight;
        whole += (double)weight;
        live += event->bytes ? event->bytes : -bytes[event->block];
        if (event->bytes)
            bytes[event->block] = event->bytes;
    }
    free(bytes);
    return course->count && held * HELD_SHARE >= (double)course->live_peak * whole;
}

const char *ms_policy_name(enum ms_setting setting)
{
    return names[setting];
}

void ms_policy_look(struct ms_policy_facts *facts, const struct ms_course *course)
{
    for (size_t i = 0; i < course->count; i++) {
        const struct ms_course_event *event = &course->events[i];

        if (event->device)
            facts->one_device = false;
        if (!event->bytes || event->kind == MS_KIND_ASYNC)
            continue;
        facts->plain = true;
        facts->large |= event->bytes >= 2 * MIB;
    }
    facts->single = facts->large;
    if (!is_held(course))
        facts->held = false;
    if (course->live_peak > facts->live_peak)
        facts->live_peak = course->live_peak;
}

static bool can_matter(const struct ms_policy_facts *facts, const struct try_row *row)
{
    switch (row->matters) {
    case MATTERS_PLAIN:
        return facts->plain;
    case MATTERS_LARGE:
        return facts->large;
    case MATTERS_SINGLE:
        return facts->single;
    case MATTERS_HELD:
        return facts->one_device && facts->plain && facts->held;
    case MATTERS_TENSORS:
        return facts->tensors;
    default:
        return true;
    }
}

size_t ms_policy_singles(const struct ms_policy_facts *facts)
{
    size_t count = 0;

    for (size_t i = 0; i < MS_ARRAY_LEN(rows); i++)
        count += can_matter(facts, &rows[i]);
    return count;
}

struct ms_policy ms_policy_single(const struct ms_policy_facts *facts, size_t index)
{
    struct ms_policy policy = {.tried = {0}};

    for (size_t i = 0; i < MS_ARRAY_LEN(rows); i++)
        if (can_matter(facts, &rows[i]) && index-- == 0) {
            policy.tried[rows[i].setting] = (uint8_t)(i + 1);
            break;
        }
    return policy;
}

static bool has(const struct ms_policy *policy, enum ms_setting setting, const char *value)
{
    unsigned row = policy->tried[setting];

    return row && (!strcmp(value, "*") || !strcmp(rows[row - 1].value, value));
}

bool ms_policy_join(const struct ms_policy *a, const struct ms_policy *b, struct ms_policy *both_p)
{
    for (unsigned i = 0; i < MS_SETTINGS; i++) {
        if (a->tried[i] && b->tried[i])
            return false;
        both_p->tried[i] = a->tried[i] | b->tried[i];
    }
    for (size_t i = 0; i < MS_ARRAY_LEN(excludes); i++)
        if (has(both_p, excludes[i].setting, excludes[i].value) &&
            has(both_p, excludes[i].other, excludes[i].other_value))
            return false;
    return true;
}

/* "*" is any value. */
static bool says(const char *text, enum ms_setting setting, const char *value)
{
    size_t length = strlen(names[setting]);

    for (const char *word = text; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (!strncmp(word, names[setting], length) && word[length] == '=' &&
            (!strcmp(value, "*") || (strcspn(word + length + 1, " ") == strlen(value) &&
                                     !strncmp(word + length + 1, value, strlen(value)))))
            return true;
    }
    return false;
}

bool ms_policy_clash(const char *text, const char **name_p, const char **other_p)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(excludes); i++)
        if (says(text, excludes[i].setting, excludes[i].value) &&
            says(text, excludes[i].other, excludes[i].other_value)) {
            *name_p = names[excludes[i].setting];
            *other_p = names[excludes[i].other];
            return true;
        }
    return false;
}

bool ms_policy_uncached(const struct ms_policy *policy)
{
    return policy->tried[MS_SETTING_UNCACHED] != 0;
}

uint64_t ms_policy_pending(const struct ms_policy *policy, uint64_t live_peak)
{
    uint64_t share = (live_peak * LIMBO_PERCENT / 100 + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);

    if (!ms_policy_uncached(policy))
        return 0;
    return share > LIMBO_LEAST ? share : LIMBO_LEAST;
}

unsigned ms_policy_count(const struct ms_policy *policy)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MS_SETTINGS; i++)
        count += policy->tried[i] != 0;
    return count;
}

const char *ms_policy_value(const struct ms_policy *policy, const struct ms_policy_facts *facts,
                            enum ms_setting setting, char value[32], const char **reason_p)
{
    const struct try_row *row = policy->tried[setting] ? &rows[policy->tried[setting] - 1] : NULL;

    if (!row)
        return NULL;
    if (!strcmp(row->value, "PEAK"))
        snprintf(value, 32, "%" PRIu64 "M",
                 ((ms_policy_uncached(policy) ? facts->uncached_peak : facts->live_peak) + MIB - 1) / MIB);
    else
        snprintf(value, 32, "%s", row->value);
    *reason_p = row->reason;
    return names[setting];
}

void ms_policy_write(const struct ms_policy *policy, const struct ms_policy_facts *facts, char *text,
                     size_t bytes)
{
    size_t length = 0;

    *text = '\0';
    for (unsigned i = 0; i < MS_SETTINGS && length < bytes; i++) {
        const char *reason, *name;
        char value[32];

        name = ms_policy_value(policy, facts, i, value, &reason);
        if (name)
            length +=
                (size_t)snprintf(text + length, bytes - length, "%s%s=%s", length ? " " : "", name, value);
    }
}
