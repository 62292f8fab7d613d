/* options.h - the MEMSHIM_* variables, parsed once.
 *
 * Floor 0. Loading allocates nothing with malloc (values are kept in static storage), except while a REGEX
 * that is set is compiled to see whether it can be; reading takes no lock. */
#ifndef MS_BASE_OPTIONS_OPTIONS_H
#define MS_BASE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ms_option_id {
#define MS_OPTION(id, ...) MS_OPT_##id,
#include "base/options/options.def"
#undef MS_OPTION
    MS_OPT_COUNT
};

enum ms_option_source { MS_SOURCE_DEFAULT, MS_SOURCE_ENVIRONMENT, MS_SOURCE_FILE };
enum ms_option_type {
    MS_TYPE_ENUM,
    MS_TYPE_INT,
    MS_TYPE_SIZE,
    MS_TYPE_SHARE,
    MS_TYPE_BYTES,
    MS_TYPE_PAIR,
    MS_TYPE_STRING,
    MS_TYPE_PATH,
    MS_TYPE_REGEX
};
enum ms_option_effect { MS_EFFECT_NOW, MS_EFFECT_POOL, MS_EFFECT_STACKS, MS_EFFECT_LEDGER };

/** The facts about an option that are known before any value: one row of options.def. */
struct ms_option_info {
    const char *name; /* without MEMSHIM_ */
    enum ms_option_type type;
    const char *default_text;
    const char *values;
    enum ms_option_effect effect;
    const char *text;
};

/** Called for each unknown name or bad value with one complete line (no newline), which names it and what is
 * allowed. */
typedef void (*ms_option_complaint_func_t)(void *arg, const char *line);

/** Parse defaults, the file named by MEMSHIM_CONFIG, then the environment; later ones win.
 *
 * `environment` is a NULL-terminated array of NAME=value (environ). Bad values leave the option as it was.
 * Under AT_SECURE the caller passes NULL and only defaults hold. Returns the number of complaints. Not thread
 * safe: called once, from the constructor or from main. */
int ms_options_load(char *const *environment, ms_option_complaint_func_t complain, void *arg);

/** One line for each size that was given as a bare number of bytes, less than 1M, as a unit is likely
 * missing. */
void ms_options_check(ms_option_complaint_func_t say, void *arg);

const struct ms_option_info *ms_option_info(enum ms_option_id id);
enum ms_option_source ms_option_source(enum ms_option_id id);
/** The value as text, as given by the user or the default; never NULL. */
const char *ms_option_text(enum ms_option_id id);
/** ENUM: index into the values. INT: the number. REGEX: not meaningful. */
int64_t ms_option_int(enum ms_option_id id);
/** SIZE or SHARE in bytes; a percentage is of `total_bytes`; "none" is UINT64_MAX. */
uint64_t ms_option_size(enum ms_option_id id, uint64_t total_bytes);
/** PAIR: both sizes in bytes, of which the second is UINT64_MAX where it was not given. False if it is not
 * set. */
bool ms_option_pair(enum ms_option_id id, uint64_t total_bytes, uint64_t *first_p, uint64_t *second_p);
/** True if it was given as a percentage; of a PAIR, if either was. */
bool ms_option_is_percent(enum ms_option_id id);

/* Values of the enumerated options that code branches on, in the order of options.def. */
enum { MS_MODE_POOL, MS_MODE_TRACK, MS_MODE_OFF };
enum { MS_STACKS_ALL, MS_STACKS_SAMPLE, MS_STACKS_FP, MS_STACKS_OFF };
enum { MS_PYTHON_ON, MS_PYTHON_OFF };
enum { MS_DEEPBIND_KEEP, MS_DEEPBIND_CLEAR };
enum { MS_USES_OFF, MS_USES_ON };
enum { MS_HOST_TENSORS_OFF, MS_HOST_TENSORS_ON };
enum { MS_PACK_SMALL, MS_PACK_ALL, MS_PACK_NONE };
enum { MS_ALIGN_64K, MS_ALIGN_2M = 5 };
enum { MS_BACKING_MALLOC, MS_BACKING_VMM };
enum { MS_FREE_FENCE, MS_FREE_ORDERED, MS_FREE_STRICT, MS_FREE_IMMEDIATE };
enum { MS_IPC_AUTO, MS_IPC_NATIVE, MS_IPC_EMULATE };
enum { MS_MEMINFO_ADJUSTED, MS_MEMINFO_REAL, MS_MEMINFO_PROPERTIES };
enum { MS_READERS_OWNER, MS_READERS_GROUP, MS_READERS_ALL };
enum { MS_YIELD_CALL, MS_YIELD_THREAD, MS_YIELD_OFF };
enum { MS_POISON_OFF, MS_POISON_ALLOC, MS_POISON_FREE, MS_POISON_BOTH };

#endif
