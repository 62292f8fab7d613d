/* test_whole.c - things that are recycled whole (pool/external/recycled.h), against a plain array; then
 * threads that put and take, each thing being in one hand at a time. */
#include <pthread.h>
#include <stdatomic.h>

#include "pool/external/recycled.h"
#include "tests/tap.h"

enum { THINGS = 400, DEVICES = 3, THREADS = 4, TURNS = 20000 };

static uint64_t state = 7;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static struct ms_recycled_key key_of(uint32_t number)
{
    return (struct ms_recycled_key){
        .what = number % 5, .bytes = (1 + number % 3) << 21, .device = (int)(number % DEVICES) + 96};
}

static bool same_key(const struct ms_recycled_key *a, const struct ms_recycled_key *b)
{
    return a->what == b->what && a->bytes == b->bytes && a->device == b->device;
}

/* Everything that waits, in the order of its coming. */
static struct ms_recycled model[THINGS];
static unsigned count;

static void forget(unsigned i)
{
    memmove(&model[i], &model[i + 1], (--count - i) * sizeof(model[0]));
}

static bool take_as_model(const struct ms_recycled_key *key)
{
    struct ms_recycled got = {.thing = 0};
    bool found = ms_recycled_take(key, &got);

    for (unsigned i = count; i-- > 0;) {
        if (same_key(&model[i].key, key)) {
            bool right = found && got.thing == model[i].thing && got.place == model[i].place;
            forget(i);
            return right;
        }
    }
    return !found;
}

static bool evict_as_model(int device)
{
    struct ms_recycled got = {.thing = 0};
    bool found = ms_recycled_evict(device, &got);

    for (unsigned i = 0; i < count; i++) {
        if (model[i].key.device == device) {
            bool right = found && got.thing == model[i].thing;
            forget(i);
            return right;
        }
    }
    return !found;
}

static uint64_t bytes_of(int device)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < count; i++)
        bytes += model[i].key.device == device ? model[i].key.bytes : 0;
    return bytes;
}

static void against_model(void)
{
    bool right = true, sound = true, sums = true, known = true;
    uint64_t next = 1, highest = 0;

    for (unsigned turn = 0; turn < 20000; turn++) {
        struct ms_recycled_key key = key_of(draw(1000));
        uint32_t what = draw(10);
        if (what < 5 && count < THINGS) {
            struct ms_recycled whole = {key, next++, ms_recycled_place(key.bytes)};
            right = right && whole.place >= highest && ms_recycled_put(&whole);
            highest = whole.place + key.bytes;
            model[count++] = whole;
        } else if (what < 9) {
            right = right && take_as_model(&key);
        } else {
            right = right && evict_as_model(key.device);
        }
        sums = sums && ms_recycled_bytes(key.device) == bytes_of(key.device);
        known = known && (!count || ms_recycled_has(model[draw(count)].thing)) && !ms_recycled_has(next);
        if (turn % 64 == 0)
            sound = sound && ms_recycled_check();
    }
    ok(right, "the latest of a key is taken, the first of a device evicted, and no two places overlap");
    ok(sums, "bytes add up by device");
    ok(known, "what waits is known");
    ok(sound, "the invariant holds");
    struct ms_recycled_key nowhere = {.device = -1};
    ok(!ms_recycled_put(&(struct ms_recycled){nowhere, next, 0}), "what is on no device is not kept");
    while (count)
        evict_as_model(model[0].key.device);
    is_u64(ms_recycled_bytes(96) + ms_recycled_bytes(97) + ms_recycled_bytes(98), 0, "nothing is left");
}

static atomic_int held[THINGS + 1];
static atomic_bool doubled;

static void *work(void *arg)
{
    uint64_t random = (uintptr_t)arg;

    for (int turn = 0; turn < TURNS; turn++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        struct ms_recycled_key key = key_of((uint32_t)(random >> 40) % 30);
        struct ms_recycled got;
        if (!ms_recycled_take(&key, &got) && !ms_recycled_evict(key.device, &got))
            continue;
        if (atomic_fetch_add(&held[got.thing], 1) != 0)
            atomic_store(&doubled, true);
        atomic_fetch_sub(&held[got.thing], 1);
        ms_recycled_put(&got);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    plan(9);
    against_model();
    for (unsigned i = 1; i <= THINGS; i++) {
        struct ms_recycled_key key = key_of(i);
        ms_recycled_put(&(struct ms_recycled){key, i, ms_recycled_place(key.bytes)});
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ok(!atomic_load(&doubled), "no thing was in two hands");
    ok(ms_recycled_check(), "the invariant holds after threads");
    ms_recycled_reset();
    ok(ms_recycled_check() && !ms_recycled_has(1), "a fork child begins empty");
    return done();
}
