/* keyed.h - records by a number: a hash table of chains, of which several records may have one key.
 *
 * Floor 0, under its owner's lock. Each record begins with a struct ms_keyed; its memory is the arena's and
 * is used again (records.h). A place is where the pointer to a record stands: through it a record is taken
 * out. */
#ifndef MS_BASE_KEYED_H
#define MS_BASE_KEYED_H

#include "base/records.h"

enum { MS_KEYED_BUCKETS = 256 };

struct ms_keyed {
    void *next;
    uint64_t key;
};

struct ms_keyed_table {
    struct ms_records records;
    uint32_t count;
    void *buckets[MS_KEYED_BUCKETS];
};
#define MS_KEYED_TABLE(type, batch)                                                                          \
    {                                                                                                        \
        .records = MS_RECORDS(type, by.next, batch)                                                          \
    }

/** The place of the first record with this key; there is NULL if there is none. */
void **ms_keyed_find(struct ms_keyed_table *table, uint64_t key);
/** The place of the first such record from this place on, and behind the record there. */
void **ms_keyed_from(void **place, uint64_t key);
void **ms_keyed_after(void **place, uint64_t key);
/** A new record with this key, before others that have it; what follows `by` in it is anything. NULL without
 * memory. */
void *ms_keyed_add(struct ms_keyed_table *table, uint64_t key);
/** Takes out the record there; the place then is of what followed it. */
void ms_keyed_drop(struct ms_keyed_table *table, void **place);
/** Forgets all, in a child of fork. */
void ms_keyed_reset(struct ms_keyed_table *table);

#endif
