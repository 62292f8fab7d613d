/* test_ledger.c - the ledger against a history whose figures are known, and its invariants under many
 * threads. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/options/options.h"
#include "record/live/shards.h"
#include "tests/unit/ledger_check.h"
#include "tests/unit/ledger_fixture.h"

#define OUTER snapshot.blocks[MS_LAYER_OUTER]

static struct ms_events_copy events;

static void take(uint64_t key, uint64_t bytes, ms_stack_id stack, int device)
{
    struct ms_block block = make_block(key, bytes, stack, device);
    ms_ledger_alloc(&block);
}

static bool give(uint64_t key)
{
    struct ms_block block;
    return ms_ledger_free_begin(MS_SPACE_ADDRESS, key, &block);
}

static void test_history(void)
{
    start();
    ok(!ms_ledger_touched(), "an empty ledger is untouched");
    take(0x1000, 100, 1, 0);
    take(0x2000, 200, 2, 0);
    take(0x3000, 50, 1, 0); /* peak: 350 = 150 + 200 */
    give(0x2000);
    take(0x4000, 120, 3, 0);
    take(0x5000, 7, 3, 1);
    look();
    ok(ms_ledger_touched(), "now it is touched");
    is_u64(device(0)->live_bytes, 270, "live bytes of a device");
    is_u64(device(0)->live_count, 3, "live blocks");
    is_u64(device(0)->peak_live_bytes, 350, "the peak");
    is_u64(device(0)->total_bytes, 470, "all that was ever allocated");
    is_u64(device(1)->live_bytes, 7, "the other device has its own");
    is_u64(site_of(1)->at_peak_bytes, 150, "what a site held at the peak");
    is_u64(site_of(2)->at_peak_bytes, 200, "what it held then, though freed since");
    is_u64(site_of(2)->live_bytes, 0, "and holds no more");
    is_u64(site_of(2)->max_bytes, 200, "its own maximum");
    is_u64(site_of(2)->free_count, 1, "its frees");
    is_u64(site_of(1)->size_hist[7], 1, "100 bytes are of the class of 64");
    is_u64(site_of(1)->size_hist[6], 1, "50 bytes of that of 32");
    is_u64(OUTER.count, 4, "blocks of the snapshot");
    ok(OUTER.list[0].key == 0x1000 && OUTER.list[2].key == 0x4000 && OUTER.list[3].key == 0x5000,
       "are in order");
    ok(snapshot.consistent, "a snapshot at rest is consistent");
    is_int(ledger_check(), 0, "all sums add up");
}

static void test_refused_free(void)
{
    struct ms_block block, found;
    start();
    take(0x1000, 100, 1, 0);
    ok(ms_ledger_free_begin(MS_SPACE_ADDRESS, 0x1000, &block), "a free begins");
    ok(!ms_ledger_find(MS_SPACE_ADDRESS, 0x1000, &found), "then the block is not to be found");
    is_int(ledger_check(), 0, "sums add up in between");
    ms_ledger_free_abort(&block);
    ok(ms_ledger_find(MS_SPACE_ADDRESS, 0x1000, &found), "the vendor refused: it is back");
    ok(found.born_ns == block.born_ns && found.site == block.site, "as it was");
    look();
    is_u64(site_of(1)->total_count, 1, "and is not counted twice");
    is_u64(device(0)->peak_live_bytes, 100, "nor in the peak");
    ok(!ms_ledger_free_begin(MS_SPACE_HANDLE, 0x1000, &block), "another space is another name");
    ok(!ms_ledger_free_begin(MS_SPACE_ADDRESS, 0x1001, &block), "an address inside a block is not its name");
    is_int(ledger_check(), 0, "all sums add up");
}

static void test_contexts(void)
{
    start();
    struct ms_block block = make_block(0x1000, 100, 1, 0), outliving = make_block(0x2000, 10, 1, 0),
                    other = make_block(0x3000, 1, 1, 0);
    outliving.outlives_context = true;
    other.context = 2;
    ms_ledger_alloc(&block);
    ms_ledger_alloc(&outliving);
    ms_ledger_alloc(&other);
    for (uint64_t i = 0; i < 500; i++)
        take(0x100000 + i * 64, 1, 5, 0);
    ms_ledger_context_died(1);
    look();
    is_u64(device(0)->live_bytes, 11, "a context takes its blocks along, but for those that outlive it");
    is_u64(site_of(1)->died_bytes, 100, "its site knows");
    is_u64(site_of(5)->died_count, 500, "all of them");
    ok(ms_events_copy(&events, 1000) && events.death_count == 1 && events.deaths[0].bytes == 600 &&
           events.deaths[0].count == 501,
       "and the death is remembered");
    is_int(ledger_check(), 0, "all sums add up");
    ms_ledger_context_died(77);
    ok(ms_events_copy(&events, 1000) && events.death_count == 1, "a context without blocks is no event");
}

static void test_served(void)
{
    struct ms_block block, first = make_block(0x1000, 512, 1, 0), second = make_block(0x2000, 512, 1, 0);
    start();
    first.requested = 500;
    second.context = 2;
    uint32_t one = ms_ledger_serve(&first), two = ms_ledger_serve(&second);
    ok(one && two && one != two, "served blocks have tickets");
    ok(!ms_ledger_find(MS_SPACE_ADDRESS, 0x1000, &block), "and are not found by their addresses");
    look();
    is_u64(device(0)->live_bytes, 1024, "they are live");
    is_u64(site_of(1)->rounding_bytes, 12, "their site knows them");
    ok(OUTER.list[0].is_served && OUTER.list[0].key == 0x1000, "and a snapshot tells them apart");
    ok(!ms_ledger_unserve(one, 0x2000, &block), "a ticket goes with its address");
    ok(!ms_ledger_unserve(0, 0x1000, &block) && !ms_ledger_unserve(1 << 20, 0x1000, &block),
       "no ticket, or one that was never given, is nothing");
    ok(ms_ledger_unserve(one, 0x1000, &block) && block.bytes == 512 && block.freed_ns >= block.born_ns,
       "a free takes the block out");
    ok(!ms_ledger_unserve(one, 0x1000, &block), "once");
    is_int(ledger_check(), 0, "sums add up");
    ms_ledger_context_died(2);
    ok(!ms_ledger_unserve(two, 0x2000, NULL), "a block that died with its context is not freed again");
    take(0x1000, 7, 2, 0);
    ok(!ms_ledger_unserve(one, 0x1000, NULL) && !ms_ledger_unserve(two, 0x1000, NULL),
       "nor is a followed one at its address");
    look();
    is_u64(site_of(1)->free_count, 1, "one was freed");
    is_u64(site_of(1)->died_count, 1, "one died");
    is_u64(device(0)->live_bytes, 7, "what is followed lives");
    is_int(ledger_check(), 0, "all sums add up");
}

static void test_odd_events(void)
{
    struct ms_block block;
    start();
    take(0x1000, 100, 1, 0);
    take(0x1000, 30, 2, 0);
    look();
    is_u64(device(0)->live_bytes, 30, "an address that is handed out again replaces its block");
    is_u64(ms_blocks_replaced(), 1, "and that is counted");
    struct ms_block pinned = make_block(0x9000, 4096, 3, 0);
    pinned.kind = MS_KIND_PINNED;
    ms_ledger_alloc(&pinned);
    take(0x8000, 5, 4, MS_DEVICE_NONE);
    take(0x7000, 5, 4, 1000);
    look();
    is_u64(device(0)->live_bytes, 30, "host memory is not the device's");
    is_u64(snapshot.kinds[MS_KIND_PINNED].live_bytes, 4096, "but is counted by its kind");
    is_u64(device(MS_DEVICES_MAX)->live_bytes, 10,
           "memory of no device, or of one out of range, has its own account");
    ms_ledger_call(0, true, true, 10);
    ms_ledger_call(0, false, false, 10);
    ms_ledger_call(999, true, false, 10);
    struct ms_counts counts;
    ok(ms_counts_sum(0, &counts) && counts.calls == 2 && counts.bytes == 10 && counts.failures == 1 &&
           counts.served == 1,
       "calls, bytes and failures of a function");
    for (int i = 0; i < 70; i++)
        ms_ledger_oom(0, 0, (uint64_t)i, 0, &(struct ms_oom_view){.cause = MS_OOM_UNKNOWN});
    ok(ms_events_copy(&events, 1000) && events.ooms[0].requested == 6 && events.lost_ooms == 6,
       "the latest out-of-memory errors are kept");
    is_u64(events.ooms[0].top_count, 1, "with the sites that held something");
    is_u64(events.ooms[0].top_bytes[0], 30, "and how much");
    ms_ledger_blind_spot("one");
    ms_ledger_blind_spot("two");
    ms_ledger_blind_spot("one");
    ok(strcmp(ms_events_blind_spot(1), "two") == 0 && ms_events_blind_spot(2) == NULL,
       "a blind spot is named once");
    struct ms_block zero = make_block(0x6000, 0, 9, 0);
    ms_ledger_alloc(&zero);
    look();
    struct ms_block one = make_block(0x7000, 1, 9, 0);
    ms_ledger_alloc(&one);
    ms_ledger_free_begin(MS_SPACE_ADDRESS, 0x7000, &block);
    look();
    is_u64(site_of(9)->size_hist[0], 1, "nothing is of the smallest class");
    is_u64(site_of(9)->size_hist[1], 1, "one byte has its own");
    is_int(ledger_check(), 0, "all sums add up");
    ms_ledger_free_begin(MS_SPACE_ADDRESS, 0x6000, &block);
}

static void test_cut(void)
{
    start();
    for (uint64_t i = 1; i <= 5000; i++)
        take(i * 512, i * 7919 % 5003, 1, 0);
    look();
    is_u64(OUTER.total, 5000, "all blocks are counted");
    is_u64(OUTER.count, 1000, "not all are copied");
    uint64_t least = UINT64_MAX;
    bool ordered = true;
    for (uint64_t i = 0; i < OUTER.count; i++) {
        least = OUTER.list[i].bytes < least ? OUTER.list[i].bytes : least;
        ordered = ordered && (i == 0 || OUTER.list[i - 1].key < OUTER.list[i].key);
    }
    uint64_t larger = 0;
    for (uint64_t i = 1; i <= 5000; i++)
        larger += i * 7919 % 5003 > least;
    ok(larger < 1000, "those copied are the largest");
    ok(ordered, "and in order");
}

/* exit() may be called by a signal handler that interrupted a holder of these locks. */
static void test_held_lock(void)
{
    start();
    take(0x1000, 10, 1, 0);
    ms_account_lock(0);
    ms_snapshot_release(&snapshot);
    is_int(ms_snapshot_take(&snapshot, 10, 10), 0, "a snapshot does not wait for ever for a lock");
    ok(!snapshot.consistent, "and says that it went without");
    is_u64(OUTER.count, 1, "what is there is copied all the same");
    ms_account_unlock(0);
    look();
    ok(snapshot.consistent, "the other locks were given back");
}

/* As the hooks do in a child that finds its parent's record. */
static void test_fork(void)
{
    int status = -1;
    start();
    take(0x1000, 10, 1, 0);
    pid_t child = fork();
    if (child == 0) {
        ms_arena_reset();
        start();
        bool good = !ms_ledger_touched() && !give(0x1000);
        take(0x1000, 3, 1, 0);
        look();
        _exit(good && device(0)->live_bytes == 3 && device(0)->peak_live_bytes == 3 && ledger_check() == 0
                  ? 0
                  : 1);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "a child starts empty");
    ok(give(0x1000), "its parent goes on");
}

static void at(unsigned milliseconds)
{
    ms_events_freeze((uint64_t)milliseconds << 20);
}

/* A hundred steps: one site takes all at once, one more with each, one holds a little for a moment, one fills
 * up and is emptied, one goes up and down. */
static void test_growth(void)
{
    start();
    for (unsigned step = 0; step < 100; step++) {
        at(1 + step * 3);
        for (uint64_t i = 0; step == 2 && i < 50; i++)
            take(0x100000 + i * 64, 64, 1, 0);
        take(0x200000 + step * 64, 64, 2, 0);
        take(0x300000, 64, 3, 0);
        give(0x300000);
        take(0x400000 + step * 64, 64, 4, 0);
        if (step % 2)
            give(0x500000);
        else
            take(0x500000, 64, 5, 0);
    }
    for (uint64_t step = 0; step < 90; step++)
        give(0x400000 + step * 64);
    at(301);
    look();
    ok(!ms_site_is_growing(site_of(1)), "what is taken once and kept does not grow");
    ok(ms_site_is_growing(site_of(2)), "what takes more and more does");
    ok(!ms_site_is_growing(site_of(3)), "what is always given back does not");
    ok(!ms_site_is_growing(site_of(4)), "nor what was given back in the end");
    ok(!ms_site_is_growing(site_of(5)), "nor what goes up and down");
    ok(site_of(2)->span_shift == 25 && site_of(2)->span_last == 9, "spans grow with the run");
    is_u64(site_of(2)->marks[4], 64 * 53, "a mark is what was held at the end of its span");
    at(3000);
    look();
    ok(!ms_site_is_growing(site_of(2)), "what has long stopped growing does not grow");
    ms_events_freeze(0);
    start();
    at(1);
    take(1, 64, 1, 0);
    at(2);
    take(2, 64, 1, 0);
    at(3);
    look();
    ok(!ms_site_is_growing(site_of(1)), "two steps are no growth");
}

/* As above, for two seconds; in the end all is given back, in the middle of the run, or of few blocks. */
static void test_growth_freed(void)
{
    start();
    for (unsigned step = 0; step < 200; step++) {
        at(1 + step * 10);
        take(0x100000 + step * 64, 64, 1, 0);
        take(0x200000 + step * 64, 64, 2, 0);
        if (step % 20 == 0)
            take(0x300000 + step * 64, 64, 3, 0);
        if (step < 90)
            take(0x400000 + step * 64, 64, 4, 0);
        if (step >= 150)
            give(0x400000 + (step - 150) * 64);
    }
    for (unsigned step = 0; step < 200; step++) {
        give(0x100000 + step * 64);
        give(0x300000 + step * 64);
        give(0x400000 + step * 64);
    }
    at(2010);
    look();
    ok(ms_site_grew(site_of(1)) > 64 * 180 && !ms_site_is_growing(site_of(1)),
       "what was freed in the end had grown");
    ok(!ms_site_grew(site_of(2)), "what was not freed is told of as a leak");
    ok(!ms_site_grew(site_of(3)), "ten blocks are no growth");
    ok(!ms_site_grew(site_of(4)), "nor what was freed long before the end");
    at(6000);
    look();
    ok(!ms_site_grew(site_of(1)), "nor what the program outlived by far");
    ms_events_freeze(0);
}

enum { THREADS = 8, ROUNDS = 20000, SLOTS = 256 };
static atomic_bool stop;
static atomic_int bad_results;

/* Each thread has its own addresses; what it holds is known to it alone. */
static void *churn(void *arg)
{
    uint64_t number = (uint64_t)(uintptr_t)arg, held[SLOTS] = {0};
    uint32_t tickets[SLOTS] = {0};
    unsigned seed = (unsigned)number * 7919 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned slot = (seed >> 8) % SLOTS;
        uint64_t key = number << 32 | slot << 9;
        struct ms_block block;
        if (!held[slot]) {
            held[slot] = 1 + (seed >> 16) % 4096;
            block = make_block(key, held[slot], 1 + (seed >> 20) % 50, (int)(seed >> 28) % 3);
            tickets[slot] = seed >> 8 & 1 ? ms_ledger_serve(&block) : 0;
            if (!tickets[slot])
                ms_ledger_alloc(&block);
        } else if (tickets[slot]) {
            if (!ms_ledger_unserve(tickets[slot], key, &block) || block.bytes != held[slot])
                bad_results++;
            held[slot] = tickets[slot] = 0;
        } else if (!ms_ledger_free_begin(MS_SPACE_ADDRESS, key, &block) || block.bytes != held[slot]) {
            bad_results++;
        } else if (seed % 7 == 0) {
            ms_ledger_free_abort(&block);
        } else {
            held[slot] = 0;
        }
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint64_t key = number << 32 | slot << 9;
        if (held[slot] && !(tickets[slot] ? ms_ledger_unserve(tickets[slot], key, NULL) : give(key)))
            bad_results++;
    }
    return NULL;
}

static void *watch(void *arg)
{
    int *wrong = arg;
    while (!stop)
        *wrong += ledger_check();
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS], watcher;
    int wrong = 0;
    start();
    pthread_create(&watcher, NULL, watch, &wrong);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    stop = true;
    pthread_join(watcher, NULL);
    is_int(wrong, 0, "sums add up at every moment");
    is_int(bad_results, 0, "every free finds its block");
    look();
    is_u64(device(0)->live_bytes + device(1)->live_bytes + device(2)->live_bytes, 0, "all was freed");
    is_u64(OUTER.total, 0, "no block is left");
    is_u64(ms_blocks_dropped() + ms_sites_dropped(), 0, "nothing was dropped");
}

enum { OPENINGS = 300, RISES = 2000 };
static atomic_bool rising;

/* Shard 0, alone: each block is a new peak. */
static void *rise(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < RISES; i++) {
        take(1 << 20 | i << 9, 64, 1, 0);
        if (i == RISES / 4)
            rising = true;
    }
    return NULL;
}

/* A second shard is opened while the only one counts by itself, which must not look into it too early. */
static void test_shard_opened(void)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < OPENINGS; i++) {
        pthread_t thread;
        start();
        rising = false;
        pthread_create(&thread, NULL, rise, NULL);
        while (!rising)
            ;
        ms_shard_mine.shard = 1;
        take(512, 64, 1, 0);
        ms_shard_mine.shard = 0;
        pthread_join(thread, NULL);
        look();
        wrong += device(0)->live_bytes != (RISES + 1) * 64 || device(0)->peak_live_bytes != (RISES + 1) * 64;
    }
    is_u64(wrong, 0, "a lane is opened while another makes peaks, %d times", OPENINGS);
}

/* The row of the block with this key. */
static struct ms_block_row *row_of(uint64_t key)
{
    for (uint32_t i = 0; i < ms_table_rows(MS_TABLE_BLOCKS); i++)
        if (ms_block_row_at(i)->key == key)
            return ms_block_row_at(i);
    bail("no block");
}

/* An end in a signal handler above a call: the thread has the lock, and blocks are half made and half
 * gone. */
static void test_half_made(void)
{
    struct ms_shard *shard;
    uint64_t live = 0;

    start();
    take(0x1000, 100, 1, 0);
    take(0x2000, 200, 2, 0); /* is just being made: it counts, and is not live */
    take(0x3000, 300, 3, 0); /* is just being freed: the same */
    take(0x4000, 400, 3, 0);
    ms_ledger_shard(0, &shard);
    ms_shard_lock(shard);
    ms_block_row_set(row_of(0x2000), MS_BLOCK_ROW_CHANGING);
    ms_block_row_set(row_of(0x3000), MS_BLOCK_ROW_FREE);
    look();
    ms_shard_unlock(shard);
    ok(!snapshot.consistent, "a snapshot in the middle of a call says so");
    is_u64(OUTER.count, 2, "what is half made is no block");
    is_u64(site_of(2)->live_count + site_of(2)->live_bytes, 0, "nor does its site hold it");
    is_u64(site_of(2)->total_count - site_of(2)->free_count, 0, "nor is it missing");
    is_u64(site_of(3)->live_bytes, 400, "what is half gone is gone");
    is_u64(site_of(3)->total_count - site_of(3)->free_count, 1, "and was freed");
    is_u64(device(0)->live_bytes, 500, "the device has what its blocks have");
    is_u64(device(0)->live_count, 2, "in as many blocks");
    for (uint32_t i = 0; i < snapshot.site_count; i++) {
        live += snapshot.sites[i].site.live_count;
        if (snapshot.sites[i].site.live_count && snapshot.sites[i].live_first_ns == UINT64_MAX)
            live += 100;
    }
    is_u64(live, 2, "each site that holds something knows since when");
}

int main(void)
{
    plan(0);
    ms_options_load(NULL, NULL, NULL);
    errno = 44;
    test_history();
    test_refused_free();
    test_contexts();
    test_served();
    test_odd_events();
    test_cut();
    test_fork();
    test_held_lock();
    test_half_made();
    test_growth();
    test_growth_freed();
    test_shard_opened();
    start();
    is_int(errno, 44, "errno is left alone");
    test_threads();
    return done();
}
