/* names.h - strings that are kept once each, and their numbers.
 *
 * Floor 4, command line only. */
#ifndef MS_EXPORT_NAMES_H
#define MS_EXPORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct ms_names {
    char **texts; /* by number */
    uint32_t *slots;
    size_t count, room, slot_mask;
};

/** The number of a text, which is copied when it is new. UINT32_MAX without memory. */
uint32_t ms_names_number(struct ms_names *names, const char *text);
void ms_names_close(struct ms_names *names);

#endif
