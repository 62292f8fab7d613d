/* keyed.c - see keyed.h.
 *
 * Floor 0. */
#include "base/keyed.h"

#include <string.h>

static void **keyed_bucket_of(struct ms_keyed_table *table, uint64_t key)
{
    return &table->buckets[(key * 0x9e3779b97f4a7c15u >> 48) % table->bucket_count];
}

void **ms_keyed_from(void **place, uint64_t key)
{
    while (*place && ((struct ms_keyed *)*place)->key != key)
        place = &((struct ms_keyed *)*place)->next;
    return place;
}

void **ms_keyed_after(void **place, uint64_t key)
{
    return ms_keyed_from(&((struct ms_keyed *)*place)->next, key);
}

void **ms_keyed_find(struct ms_keyed_table *table, uint64_t key)
{
    return ms_keyed_from(keyed_bucket_of(table, key), key);
}

static void keyed_put(struct ms_keyed_table *table, struct ms_keyed *record, uint64_t key)
{
    void **bucket = keyed_bucket_of(table, key);
    *record = (struct ms_keyed){*bucket, key};
    *bucket = record;
}

void *ms_keyed_add(struct ms_keyed_table *table, uint64_t key)
{
    struct ms_keyed *record = ms_records_take(&table->records);
    if (!record)
        return NULL;
    keyed_put(table, record, key);
    table->count++;
    return record;
}

void ms_keyed_drop(struct ms_keyed_table *table, void **place)
{
    struct ms_keyed *record = *place;
    *place = record->next;
    ms_records_drop(&table->records, record);
    table->count--;
}

static void **keyed_place_of(struct ms_keyed_table *table, const struct ms_keyed *record)
{
    void **place = keyed_bucket_of(table, record->key);
    while (*place != record)
        place = &((struct ms_keyed *)*place)->next;
    return place;
}

void ms_keyed_remove(struct ms_keyed_table *table, void *record)
{
    ms_keyed_drop(table, keyed_place_of(table, record));
}

void ms_keyed_rename(struct ms_keyed_table *table, void *record, uint64_t key)
{
    *keyed_place_of(table, record) = ((struct ms_keyed *)record)->next;
    keyed_put(table, record, key);
}

void ms_keyed_drop_all(struct ms_keyed_table *table, uint64_t key)
{
    for (void **place = ms_keyed_find(table, key); *place; place = ms_keyed_from(place, key))
        ms_keyed_drop(table, place);
}

void ms_keyed_reset(struct ms_keyed_table *table)
{
    memset(table->buckets, 0, table->bucket_count * sizeof *table->buckets);
    table->records.spare = NULL;
    table->count = 0;
}
