/* options_value.h - reading one option's value from text; for options*.c, and for the command
 * where a value is another process's.
 *
 * Floor 0. No allocation, except that a REGEX is compiled once to see whether it can be. */
#ifndef MS_BASE_OPTIONS_OPTIONS_VALUE_H
#define MS_BASE_OPTIONS_OPTIONS_VALUE_H

#include "base/options/options.h"

enum { MS_OPTION_TEXT_BYTES = 4096 };

struct ms_option_value {
    char text[MS_OPTION_TEXT_BYTES];
    enum ms_option_source source;
    int64_t number; /* ENUM: index, INT: the number */
    uint64_t bytes; /* SIZE: bytes, or if `percent` hundredths, of the device's (SHARE: of what is live);
                       PAIR: the first size */
    bool percent;
    uint64_t most_bytes; /* PAIR: the second size, likewise; UINT64_MAX without one */
    bool most_percent;
};

/** Reads `text` into `value_p` (all but the source). Returns false, and leaves it alone, if the text is not
 * allowed; then `why` says what is, in words that complete "... is not ". */
bool ms_option_parse(const struct ms_option_info *info, const char *text, struct ms_option_value *value_p,
                     char *why, size_t why_bytes);

/** The option whose name is `name` of `length` characters, or MS_OPT_COUNT. In a file names stand in any
 * case, in the environment they do not. */
enum ms_option_id ms_option_by_name(const char *name, size_t length, bool any_case);

/** The option whose name is most like it, or MS_OPT_COUNT if none is close. */
enum ms_option_id ms_option_nearest(const char *name, size_t length);

#endif
