/* recover_clean.h - parts of recover.c: rows of a loaded ledger, each cut down to what can be.
 *
 * Floor 2, command line only; one thread. */
#ifndef MS_RECORD_READER_RECOVER_CLEAN_H
#define MS_RECORD_READER_RECOVER_CLEAN_H

#include <stdatomic.h>
#include <stdint.h>

/* A report's numbers are signed. */
static inline void clamp(uint64_t *value, uint64_t most)
{
    if (most > INT64_MAX)
        most = INT64_MAX;
    if (*value > most)
        *value = most;
}

static inline void clamp_atomic(_Atomic uint64_t *value, uint64_t most)
{
    if (atomic_load(value) > most)
        atomic_store(value, most);
}

/** recover_events.c, when sites and stacks are clean. */
void ms_recover_rings(void);
void ms_recover_invalid_frees(void);
void ms_recover_footprints(void);

#endif
