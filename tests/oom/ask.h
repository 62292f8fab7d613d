/* ask.h - asks for memory of each kind there is (src/record/live/oom.def). */
#ifndef MS_TESTS_OOM_ASK_H
#define MS_TESTS_OOM_ASK_H

#include <stddef.h>

/** What the vendor says to a request of this kind: its status, or -1 where the program has no such kind.
 * Kinds that have no size take no notice of `bytes`. What is made is kept. */
int ask_for(const char *kind, size_t bytes);

#endif
