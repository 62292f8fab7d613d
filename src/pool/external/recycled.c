/* recycled.c - see recycled.h. One lock. Entries stand in a list by key, the latest first, in a list by
 * thing, and in the order in which they came. */
#include "pool/external/recycled.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/records.h"
#include "base/devices.h"
#include "base/lock.h"

enum { BUCKETS = 256 };
#define FIRST_PLACE (UINT64_C(1) << 62) /* where no address of anybody's is */
#define PLACE_ALIGN 4096u

struct entry {
    struct ms_recycled whole;
    struct entry *by_key, *by_thing; /* next in its bucket; by_key also of the spare ones */
    struct entry *earlier, *later;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES);
static struct entry *keys[BUCKETS], *things[BUCKETS], *first, *last;
static struct ms_records records = MS_RECORDS(struct entry, by_key, 64);
static uint64_t waiting_bytes[MS_DEVICES_MAX];
static _Atomic uint64_t next_place = FIRST_PLACE;

static unsigned recycled_mix(uint64_t value)
{
    return (unsigned)(value * UINT64_C(0x9e3779b97f4a7c15) >> 56) % BUCKETS;
}

static unsigned key_bucket(const struct ms_recycled_key *key)
{
    return recycled_mix(key->what ^ key->bytes >> 12 ^ (uint64_t)(unsigned)key->device << 40 ^
                        (uintptr_t)key->gpu);
}

static bool recycled_is_same(const struct ms_recycled_key *a, const struct ms_recycled_key *b)
{
    return a->gpu == b->gpu && a->what == b->what && a->bytes == b->bytes && a->device == b->device;
}

uint64_t ms_recycled_place(uint64_t bytes)
{
    return atomic_fetch_add(&next_place, (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN);
}

bool ms_recycled_put(const struct ms_recycled *whole)
{
    const struct ms_recycled_key *key = &whole->key;

    if (key->device < 0 || key->device >= MS_DEVICES_MAX)
        return false;
    ms_lock(&lock);
    struct entry *entry = ms_records_take(&records);
    if (entry) {
        struct entry **by_key = &keys[key_bucket(key)], **by_thing = &things[recycled_mix(whole->thing)];
        *entry = (struct entry){.whole = *whole, .by_key = *by_key, .by_thing = *by_thing, .earlier = last};
        *by_key = *by_thing = entry;
        *(last ? &last->later : &first) = entry;
        last = entry;
        waiting_bytes[key->device] += key->bytes;
    }
    ms_unlock(&lock);
    return entry != NULL;
}

static void remove_locked(struct entry *entry, struct ms_recycled *whole_p)
{
    struct entry **link = &keys[key_bucket(&entry->whole.key)];

    while (*link != entry)
        link = &(*link)->by_key;
    *link = entry->by_key;
    for (link = &things[recycled_mix(entry->whole.thing)]; *link != entry; link = &(*link)->by_thing)
        ;
    *link = entry->by_thing;
    *(entry->earlier ? &entry->earlier->later : &first) = entry->later;
    *(entry->later ? &entry->later->earlier : &last) = entry->earlier;
    waiting_bytes[entry->whole.key.device] -= entry->whole.key.bytes;
    *whole_p = entry->whole;
    ms_records_drop(&records, entry);
}

bool ms_recycled_take(const struct ms_recycled_key *key, struct ms_recycled *whole_p)
{
    ms_lock(&lock);
    struct entry *entry = keys[key_bucket(key)];
    while (entry && !recycled_is_same(&entry->whole.key, key))
        entry = entry->by_key;
    if (entry)
        remove_locked(entry, whole_p);
    ms_unlock(&lock);
    return entry != NULL;
}

bool ms_recycled_evict(int device, struct ms_recycled *whole_p)
{
    ms_lock(&lock);
    struct entry *entry = first;
    while (entry && entry->whole.key.device != device)
        entry = entry->later;
    if (entry)
        remove_locked(entry, whole_p);
    ms_unlock(&lock);
    return entry != NULL;
}

bool ms_recycled_has(uint64_t thing)
{
    ms_lock(&lock);
    struct entry *entry = things[recycled_mix(thing)];
    while (entry && entry->whole.thing != thing)
        entry = entry->by_thing;
    ms_unlock(&lock);
    return entry != NULL;
}

uint64_t ms_recycled_bytes(int device)
{
    uint64_t bytes = 0;

    if (device < 0 || device >= MS_DEVICES_MAX)
        return 0;
    ms_lock(&lock);
    bytes = waiting_bytes[device];
    ms_unlock(&lock);
    return bytes;
}

bool ms_recycled_hold(unsigned timeout_ms)
{
    return ms_lock_within(&lock, timeout_ms);
}

void ms_recycled_each(void (*tell)(void *arg, const struct ms_recycled *whole), void *arg)
{
    for (struct entry *entry = first; entry; entry = entry->later)
        tell(arg, &entry->whole);
}

void ms_recycled_let_go(void)
{
    ms_unlock(&lock);
}

bool ms_recycled_check(void)
{
    uint64_t bytes[MS_DEVICES_MAX] = {0};
    unsigned in_order = 0, in_keys = 0, in_things = 0;

    ms_lock(&lock);
    for (struct entry *entry = first; entry; entry = entry->later) {
        bytes[entry->whole.key.device] += entry->whole.key.bytes;
        in_order++;
    }
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (struct entry *entry = keys[b]; entry; entry = entry->by_key)
            in_keys++;
        for (struct entry *entry = things[b]; entry; entry = entry->by_thing)
            in_things++;
    }
    bool sound = in_order == in_keys && in_order == in_things && !memcmp(bytes, waiting_bytes, sizeof(bytes));
    ms_unlock(&lock);
    return sound;
}

void ms_recycled_reset(void)
{
    ms_lock_reset(&lock);
    memset(keys, 0, sizeof(keys));
    memset(things, 0, sizeof(things));
    memset(waiting_bytes, 0, sizeof(waiting_bytes));
    records.spare = NULL;
    first = last = NULL;
}
MS_AT_FORK(MS_FORK_POOL, ms_recycled_reset);
