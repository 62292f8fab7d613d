/* keyed.h - records by a number: a hash table of chains, of which several records may have one key.
 *
 * Floor 0, under its owner's lock. Each record begins with a struct ms_keyed; its memory is the arena's and
 * is used again (records.h). A place is where the pointer to a record stands: through it a record is taken
 * out. */
#ifndef MS_BASE_KEYED_H
#define MS_BASE_KEYED_H

#include "base/records.h"

struct ms_keyed {
    void *next;
    uint64_t key;
};

struct ms_keyed_table {
    struct ms_records records;
    uint32_t count, bucket_count;
    void **buckets;
};
/** `size`: its buckets, a power of two of up to 65536. */
#define MS_KEYED_TABLE(type, batch, size)                                                                    \
    {                                                                                                        \
        .records = MS_RECORDS(type, by.next, batch), .bucket_count = (size), .buckets = (void *[size])       \
        {                                                                                                    \
            NULL                                                                                             \
        }                                                                                                    \
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
/** Takes out this record, which is in the table; or has it found by another key from now on, as one that was
 * added just now. */
void ms_keyed_remove(struct ms_keyed_table *table, void *record);
void ms_keyed_rename(struct ms_keyed_table *table, void *record, uint64_t key);
/** Takes out all with this key. */
void ms_keyed_drop_all(struct ms_keyed_table *table, uint64_t key);
/** Forgets all, in a child of fork. */
void ms_keyed_reset(struct ms_keyed_table *table);

#endif
