/* bag.c - records of bags, which are used again. One lock, with none taken inside. */
#include "config.h"

#include "base/lock.h"
#include "base/records.h"
#include "pool/cache/bag.h"

enum { BATCH = 64 };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES);
static struct ms_records bags = MS_RECORDS(struct ms_bag, next, BATCH);

struct ms_bag *ms_bag_new(void)
{
    ms_lock(&lock);
    struct ms_bag *bag = ms_records_take(&bags);
    ms_unlock(&lock);
    if (bag) {
        bag->next = NULL;
        bag->count = 0;
        bag->epoch = 0;
    }
    return bag;
}

void ms_bag_drop(struct ms_bag *bag)
{
    ms_lock(&lock);
    ms_records_drop(&bags, bag);
    ms_unlock(&lock);
}

void ms_bags_reset(void)
{
    ms_lock_reset(&lock);
    bags.spare = NULL;
}
