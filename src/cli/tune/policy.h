/* policy.h - what may be set, which values are tried, and what excludes what (policy.def).
 *
 * Floor 5. A policy is settings of memshim's variables. */
#ifndef MS_CLI_TUNE_POLICY_H
#define MS_CLI_TUNE_POLICY_H

#include "cli/tune/course.h"

enum ms_setting {
#define MS_SETTING(id, name) MS_SETTING_##id,
#define MS_TRY(...)
#define MS_EXCLUDES(...)
#include "cli/tune/policy.def"
#undef MS_SETTING
#undef MS_TRY
#undef MS_EXCLUDES
    MS_SETTINGS
};

/* For each setting the row of policy.def that is tried, counted from 1; 0: the default. All 0: the
 * defaults. */
struct ms_policy {
    uint8_t tried[MS_SETTINGS];
};

/* Facts of a trace that decide which settings can matter. */
struct ms_policy_facts {
    bool plain;      /* there is memory that no stream orders */
    bool large;      /* such blocks of 2 MiB or more */
    bool single;     /* such blocks that MEMSHIM_SINGLE_MIN may be about */
    bool held;       /* memory is held for a good part of the time */
    bool one_device; /* all of it is on one device */
    bool tensors;    /* a framework's tensors are known, and what it would ask for without its cache */
    uint64_t live_peak, uncached_peak;
};

void ms_policy_look(struct ms_policy_facts *facts, const struct ms_course *course);

/** How many policies differ from the defaults in one setting that can matter, and the nth of them. */
size_t ms_policy_singles(const struct ms_policy_facts *facts);
struct ms_policy ms_policy_single(const struct ms_policy_facts *facts, size_t index);
/** Both together. False where a setting is in both, or one excludes the other. */
bool ms_policy_join(const struct ms_policy *a, const struct ms_policy *b, struct ms_policy *both_p);
/** True if "NAME=value NAME=value" has two settings of which one excludes the other: then their names. */
bool ms_policy_clash(const char *text, const char **name_p, const char **other_p);
/** True if it has the framework's cache off: then the course of its tensors is what is asked for. */
bool ms_policy_uncached(const struct ms_policy *policy);
/** Bytes that may be freed and still in use beyond what is replayed, by the default of MEMSHIM_LIMBO: a
 * framework without its cache frees while work is queued, of which a replay knows nothing. 0 with the cache.
 */
uint64_t ms_policy_pending(const struct ms_policy *policy, uint64_t live_peak);
/** The variable's name. */
const char *ms_policy_name(enum ms_setting setting);
/** How many settings it has. */
unsigned ms_policy_count(const struct ms_policy *policy);

/** "NAME=value NAME=value"; "" for the defaults. */
void ms_policy_write(const struct ms_policy *policy, const struct ms_policy_facts *facts, char *text,
                     size_t bytes);
/** The setting's name, its value in `value`, and what it does; NULL where it is the default. */
const char *ms_policy_value(const struct ms_policy *policy, const struct ms_policy_facts *facts,
                            enum ms_setting setting, char value[32], const char **reason_p);

#endif
