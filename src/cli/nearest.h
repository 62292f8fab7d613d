/* nearest.h - the word that somebody meant who mistyped it.
 *
 * Floor 5. */
#ifndef MS_CLI_NEAREST_H
#define MS_CLI_NEAREST_H

#include <stddef.h>

/** The best word so far, for `typed`. */
struct ms_nearest {
    const char *typed;
    const char *word; /* NULL: none is near */
    size_t distance;
};

/** Looks at one more word, which has to live on. One is near if a third of its letters, or fewer, were left
 * out, put in, changed, or changed places with their neighbours, or if it begins as `typed` does, of three
 * letters at least. */
void ms_nearest_find(struct ms_nearest *nearest, const char *word);

#endif
