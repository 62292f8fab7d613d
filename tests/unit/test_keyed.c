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

static struct ms_keyed_table table = MS_KEYED_TABLE(struct item, 16);
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
        if (there[i][number])
            ms_keyed_drop(&table, place_of(i, number));
        else if ((item = ms_keyed_add(&table, key_of(i))))
            item->number = number;
        else
            failed++;
        there[i][number] = !there[i][number];
    }
    ok(failed == 0 && look_over() == 0, "what was added and not taken out is there, and nothing else");
    for (unsigned i = 0; i < KEYS; i += 2) {
        for (void **place = ms_keyed_find(&table, key_of(i)); *place; place = ms_keyed_from(place, key_of(i)))
            ms_keyed_drop(&table, place);
        for (unsigned number = 0; number < EACH; number++)
            there[i][number] = false;
    }
    ok(look_over() == 0, "all of one key go by one loop");
    ms_keyed_reset(&table);
    ok(table.count == 0 && *ms_keyed_find(&table, key_of(1)) == NULL, "a reset forgets all");
    return done();
}
