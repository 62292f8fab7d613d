/* weak.c - which stores a load may see, and which accesses nothing orders; see weak.h.
 *
 * Time is a number for each task, which goes on with each of its stores and fences. Each task knows how far
 * it is behind all others: by what happens before it (races), and by what it has to see, where fences of
 * sequential consistency add to that. A place keeps its latest stores, and of each who had seen it, or a
 * later one, first when: a task that is behind one of those sees no older store. Stores of a place come in
 * the order in which they were made, so load buffering and stores in another order than made do not show;
 * what shows is allowed. (The C++20 rules for sequential consistency; a read-modify-write goes on with a
 * release sequence, a later store of the same task does not.) */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "real.h"
#include "weak.h"

/* KEPT: an older store is not seen any more. The tables hold what the longest programs touch, many times. */
enum { KEPT = 8, LOCATIONS = 1 << 15, WORDS = 1 << 16, WORD = 8, LINE = 64 };

struct view {
    uint32_t at[TASKS];
};

/* What a task is behind of, or what a store brings to who acquires it. */
struct sight {
    struct view before, sees;
    uint32_t fenced; /* the latest of all fences that it is behind of, by their common order */
};

struct store {
    uint64_t value;
    uint32_t ordered; /* sequentially consistent: its place in the common order; else 0 */
    struct view first_seen;
    struct sight brings;
};

struct location {
    uintptr_t at;
    uint32_t run, bytes, count; /* stores, also of those not kept any more */
    struct view read, written;
    struct store stores[KEPT];
};

/* Eight bytes of plain memory: the latest accesses to each. */
struct word {
    uintptr_t at;
    uint32_t run;
    uint8_t atomics; /* bytes at which a location begins */
    uint8_t writer[WORD];
    uint32_t written[WORD];
    struct view read[WORD];
    const void *write_pc, *read_pc[TASKS];
};

static struct weak {
    uint32_t run, ordered;
    struct view fences; /* what fences of sequential consistency bring */
    struct sight now[TASKS], acquired[TASKS], released[TASKS];
    struct location locations[LOCATIONS];
    struct word words[WORDS];
} * weak;

bool weak_is_on; /* put back with all variables after each schedule */

/* Plain accesses of such functions are meant (base/compiler.h). */
extern const char __start_ms_unsynchronized[] __attribute__((weak)), /* the linker's names */
    __stop_ms_unsynchronized[] __attribute__((weak));

void weak_prepare(void)
{
    weak = real_map(NULL, sizeof *weak);
}

void weak_begin(bool on)
{
    weak_is_on = on;
    if (!on)
        return;
    weak->run++;
    weak->ordered = 0;
    memset(&weak->fences, 0, sizeof weak->fences);
    memset(weak->now, 0, sizeof weak->now);
    memset(weak->acquired, 0, sizeof weak->acquired);
    memset(weak->released, 0, sizeof weak->released);
    for (unsigned i = 0; i < TASKS; i++)
        weak->now[i].before.at[i] = weak->now[i].sees.at[i] = 1;
}

static bool applies(const volatile void *at)
{
    return weak_is_on && engine_current() >= 0 && !engine_is_private(at);
}

static void join(struct view *view, const struct view *other)
{
    for (unsigned i = 0; i < TASKS; i++)
        view->at[i] = other->at[i] > view->at[i] ? other->at[i] : view->at[i];
}

static void join_sight(struct sight *sight, const struct sight *other)
{
    join(&sight->before, &other->before);
    join(&sight->sees, &other->sees);
    sight->fenced = other->fenced > sight->fenced ? other->fenced : sight->fenced;
}

static void go_on(int task)
{
    weak->now[task].before.at[task]++;
    weak->now[task].sees.at[task] = weak->now[task].before.at[task];
}

static bool acquires(int order)
{
    return order == __ATOMIC_CONSUME || order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* --- places -----------------------------------------------------------------------------------------------
 */

/* What lies in one line of the cache is side by side in the tables too: few pages are touched. */
static size_t hash_of(uintptr_t at, size_t count)
{
    size_t line = (size_t)((at / LINE * 0x9e3779b97f4a7c15u) >> 32);
    return (line * (LINE / WORD) + at % LINE / WORD) & (count - 1);
}

static struct word *word_of(uintptr_t at)
{
    at &= ~(uintptr_t)(WORD - 1);
    for (size_t i = hash_of(at, WORDS), looks = 0;; i = (i + 1) & (WORDS - 1), looks++) {
        struct word *word = &weak->words[i];
        if (word->run == weak->run && word->at == at)
            return word;
        if (word->run == weak->run && looks < WORDS)
            continue;
        if (looks == WORDS)
            abort();
        memset(word, 0, sizeof *word);
        word->at = at;
        word->run = weak->run;
        return word;
    }
}

static struct store *nth_latest(struct location *location, unsigned age)
{
    return &location->stores[(location->count - 1 - age) % KEPT];
}

static void begin_location(struct location *location, uintptr_t at, unsigned bytes, uint64_t value)
{
    memset(location, 0, offsetof(struct location, stores));
    location->at = at;
    location->bytes = bytes;
    location->run = weak->run;
    location->count = 1;
    memset(&location->stores[0], 0, sizeof location->stores[0]);
    location->stores[0].value = value;
    word_of(at)->atomics |= (uint8_t)(1u << (at % WORD));
}

static struct location *find_location(uintptr_t at)
{
    for (size_t i = hash_of(at, LOCATIONS), looks = 0; looks < LOCATIONS;
         i = (i + 1) & (LOCATIONS - 1), looks++) {
        struct location *location = &weak->locations[i];
        if (location->run != weak->run || location->at == at)
            return location;
    }
    abort();
}

/* What was written there by others than atomic operations is seen by all: that it may be is the races' to
 * say. */
static struct location *location_of(const volatile void *p, unsigned bytes, uint64_t value)
{
    uintptr_t at = (uintptr_t)p;
    struct location *location = find_location(at);
    if (location->run != weak->run || location->bytes != bytes || nth_latest(location, 0)->value != value)
        begin_location(location, at, bytes, value);
    return location;
}

/* --- races ------------------------------------------------------------------------------------------------
 */

static void fail_race(const char *what, int other, const char *others, uintptr_t at, const void *pc,
                      const void *other_pc)
{
    engine_fail("a data race at %p: task %d %s at %p, and nothing orders what task %d %s at %p", (void *)at,
                engine_current(), what, pc, other, others, other_pc);
}

/* Against what others did plainly to these bytes of a word. */
static void check_plain(const struct word *word, unsigned first, unsigned count, bool writes, const void *pc)
{
    int me = engine_current();
    const struct view *before = &weak->now[me].before;
    for (unsigned b = first; b < first + count; b++) {
        if (word->written[b] > before->at[word->writer[b]])
            fail_race(writes ? "writes" : "reads", word->writer[b], "wrote", word->at + b, pc,
                      word->write_pc);
        for (int task = 0; writes && task < TASKS; task++) {
            if (word->read[b].at[task] > before->at[task])
                fail_race("writes", task, "read", word->at + b, pc, word->read_pc[task]);
        }
    }
}

/* A plain access against atomic ones; a write begins the place anew. */
static void check_atomic(uintptr_t at, bool writes, const void *pc)
{
    struct location *location = find_location(at);
    const struct view *before = &weak->now[engine_current()].before;
    if (location->run != weak->run)
        return;
    for (int task = 0; task < TASKS; task++) {
        if (location->written.at[task] > before->at[task])
            fail_race(writes ? "writes" : "reads", task, "wrote atomically", at, pc, NULL);
        if (writes && location->read.at[task] > before->at[task])
            fail_race("writes", task, "read atomically", at, pc, NULL);
    }
}

static bool is_meant(const void *pc)
{
    return (const char *)pc >= __start_ms_unsynchronized && (const char *)pc < __stop_ms_unsynchronized;
}

static void note_plain(uintptr_t at, unsigned count, bool writes, const void *pc)
{
    struct word *word = word_of(at);
    int me = engine_current();
    unsigned first = (unsigned)(at % WORD);
    uint32_t now = weak->now[me].before.at[me];
    check_plain(word, first, count, writes, pc);
    for (unsigned b = first; word->atomics && b < first + count; b++) {
        if (word->atomics & 1u << b)
            check_atomic(word->at + b, writes, pc);
    }
    for (unsigned b = first; b < first + count; b++) {
        if (writes) {
            word->writer[b] = (uint8_t)me;
            word->written[b] = now;
        } else {
            word->read[b].at[me] = now;
        }
    }
    *(writes ? &word->write_pc : &word->read_pc[me]) = pc;
}

void weak_plain(const volatile void *p, size_t bytes, bool writes, const void *pc)
{
    uintptr_t at = (uintptr_t)p;
    if (!applies(p) || is_meant(pc))
        return;
    while (bytes) {
        size_t in_word = WORD - at % WORD, part = bytes < in_word ? bytes : in_word;
        note_plain(at, (unsigned)part, writes, pc);
        at += part;
        bytes -= part;
    }
}

static void note_atomic(struct location *location, bool writes, const void *pc)
{
    int me = engine_current();
    struct word *word = word_of(location->at);
    (writes ? &location->written : &location->read)->at[me] = weak->now[me].before.at[me];
    check_plain(word, (unsigned)(location->at % WORD), location->bytes, writes, pc);
}

/* --- atomic operations ------------------------------------------------------------------------------------
 */

/* Whether the calling task sees nothing older than this store. */
static bool hides_older(const struct store *store, int order)
{
    const struct sight *now = &weak->now[engine_current()];
    bool common = order == __ATOMIC_SEQ_CST;
    if (store->ordered && (common || store->ordered <= now->fenced))
        return true;
    for (unsigned i = 0; i < TASKS; i++) {
        uint32_t first = store->first_seen.at[i];
        if (first <= now->sees.at[i] || (common && first <= weak->fences.at[i]))
            return true;
    }
    return false;
}

static void see(struct store *store, int order)
{
    int me = engine_current();
    struct sight *now = &weak->now[me];
    if (store->first_seen.at[me] > now->sees.at[me])
        store->first_seen.at[me] = now->sees.at[me];
    join_sight(acquires(order) ? now : &weak->acquired[me], &store->brings);
}

/* How many of its stores a load may see, from the latest on. */
static unsigned visible(struct location *location, int order)
{
    unsigned most = location->count < KEPT ? location->count : KEPT, count = 1;
    while (count < most && !hides_older(nth_latest(location, count - 1), order))
        count++;
    return count;
}

uint64_t weak_load(const volatile void *at, unsigned bytes, uint64_t value, int order, const void *pc)
{
    if (!applies(at))
        return value;
    struct location *location = location_of(at, bytes, value);
    note_atomic(location, false, pc);
    struct store *store = nth_latest(location, engine_choose(visible(location, order)));
    see(store, order);
    return store->value;
}

uint64_t weak_compare(const volatile void *at, unsigned bytes, uint64_t value, uint64_t expected, int failure,
                      const void *pc)
{
    if (!applies(at))
        return value;
    struct location *location = location_of(at, bytes, value);
    note_atomic(location, false, pc);
    struct store *latest = nth_latest(location, 0),
                 *store = nth_latest(location, engine_choose(visible(location, failure)));
    if (store->value == expected)
        store = latest;
    if (store->value != expected)
        see(store, failure);
    return store->value;
}

static void append(struct location *location, uint64_t value, int order, const struct sight *goes_on)
{
    int me = engine_current();
    struct store *store = &location->stores[location->count++ % KEPT];
    store->value = value;
    store->ordered = order == __ATOMIC_SEQ_CST ? ++weak->ordered : 0;
    memset(&store->first_seen, 0xff, sizeof store->first_seen);
    store->first_seen.at[me] = weak->now[me].sees.at[me];
    store->brings = releases(order) ? weak->now[me] : weak->released[me];
    if (goes_on)
        join_sight(&store->brings, goes_on);
    go_on(me);
}

void weak_store(const volatile void *at, unsigned bytes, uint64_t old, uint64_t value, int order,
                const void *pc)
{
    if (!applies(at))
        return;
    struct location *location = location_of(at, bytes, old);
    note_atomic(location, true, pc);
    append(location, value, order, NULL);
}

void weak_update(const volatile void *at, unsigned bytes, uint64_t old, uint64_t value, int order,
                 const void *pc)
{
    if (!applies(at))
        return;
    struct location *location = location_of(at, bytes, old);
    struct store *latest = nth_latest(location, 0);
    struct sight brings = latest->brings;
    note_atomic(location, false, pc);
    note_atomic(location, true, pc);
    see(latest, order);
    append(location, value, order, &brings);
}

static void fence(int task, int order)
{
    struct sight *now = &weak->now[task];
    if (acquires(order))
        join_sight(now, &weak->acquired[task]);
    if (order == __ATOMIC_SEQ_CST) {
        join(&now->sees, &weak->fences);
        join(&weak->fences, &now->sees);
        now->fenced = ++weak->ordered;
    }
    if (releases(order))
        weak->released[task] = *now;
    go_on(task);
}

void weak_fence(int order)
{
    if (weak_is_on && engine_current() >= 0)
        fence(engine_current(), order);
}

void weak_see_all(void)
{
    for (int task = 0; weak_is_on && task < TASKS; task++)
        join_sight(&weak->now[engine_current()], &weak->now[task]);
}

void weak_fence_all(void)
{
    weak_fence(__ATOMIC_SEQ_CST);
    for (int task = 0; weak_is_on && task < TASKS; task++)
        fence(task, __ATOMIC_SEQ_CST);
    weak_fence(__ATOMIC_SEQ_CST);
}
