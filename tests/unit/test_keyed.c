/* test_keyed.c - records by a number, held against a plain list of what was added and taken out. */
#include "base/keyed.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/tap.h"

enum { KEYS = 700, EACH = 4, STEPS = 200000 };

struct item {
    struct ms_keyed by;
    unsigned number;
};

static struct ms_keyed_table table = MS_KEYED_TABLE(struct item, 16, 256);
static bool there[KEYS][EACH];

/* Chains of a bucket get many keys: there are fewer buckets than these. */
static uint64_t key_of(unsigned i)
{
    return (uint64_t)i << 20;
}

static void **place_of(unsigned i, unsigned number)
{
    void **place = ms_keyed_find(&table, key_of(i));
    while (*place && ((struct item *)*place)->number != number)
        place = ms_keyed_after(place, key_of(i));
    return place;
}

static unsigned look_over(void)
{
    unsigned wrong = 0, count = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned found = 0, wanted = 0;
        for (void **place = ms_keyed_find(&table, key_of(i)); *place;
             place = ms_keyed_after(place, key_of(i)))
            found++;
        for (unsigned number = 0; number < EACH; number++) {
            wanted += there[i][number];
            wrong += (*place_of(i, number) != NULL) != there[i][number];
        }
        wrong += found != wanted;
        count += wanted;
    }
    return wrong + (table.count != count);
}

int main(void)
{
    unsigned failed = 0;
    plan(0);
    ok(*ms_keyed_find(&table, 0) == NULL && table.count == 0, "an empty table has nothing");
    srand(1);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rand() % KEYS, number = (unsigned)rand() % EACH;
        struct item *item;
        if (there[i][number] && step % 2)
            ms_keyed_drop(&table, place_of(i, number));
        else if (there[i][number])
            ms_keyed_remove(&table, *place_of(i, number));
        else if ((item = ms_keyed_add(&table, key_of(i))))
            item->number = number;
        else
            failed++;
        there[i][number] = !there[i][number];
    }
    ok(failed == 0 && look_over() == 0, "what was added and not taken out is there, and nothing else");
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned other = (i * 31 + 7) % KEYS;
        if (!there[i][0] || there[other][0])
            continue;
        ms_keyed_rename(&table, *place_of(i, 0), key_of(other));
        there[i][0] = false;
        there[other][0] = true;
    }
    ok(look_over() == 0, "records that have another key are found by that one alone");
    for (unsigned i = 0; i < KEYS; i += 2) {
        ms_keyed_drop_all(&table, key_of(i));
        for (unsigned number = 0; number < EACH; number++)
            there[i][number] = false;
    }
    ok(look_over() == 0, "all of one key go by one call");
    ms_keyed_reset(&table);
    ok(table.count == 0 && *ms_keyed_find(&table, key_of(1)) == NULL, "a reset forgets all");
    return done();
}
