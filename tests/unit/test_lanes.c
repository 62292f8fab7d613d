/* test_lanes.c - what threads count apart adds up to what one thread would have counted: blocks in shards,
 * and calls. */
#include "config.h"

#include <pthread.h>
#include <string.h>

#include "base/options/options.h"
#include "record/live/shards.h"
#include "tests/unit/ledger_check.h"
#include "tests/unit/ledger_fixture.h"

#define OUTER snapshot.blocks[MS_LAYER_OUTER]

enum { SHARD_SITES = 12, SHARD_BLOCKS = 300, SHARD_STEPS = 30000, STRETCHES = 60 };

/* The figures that the record must have, kept without shards. */
static struct {
    uint64_t held[SHARD_BLOCKS], live, peak, peaks;
    unsigned site[SHARD_BLOCKS];
    uint32_t record_id[SHARD_BLOCKS];
    uint64_t site_live[SHARD_SITES], site_at_peak[SHARD_SITES], site_total[SHARD_SITES];
    uint64_t stretch[64];
} book;

static void book_in(unsigned i, unsigned stretch)
{
    book.live += book.held[i];
    book.site_live[book.site[i]] += book.held[i];
    if (book.live > book.stretch[stretch])
        book.stretch[stretch] = book.live;
    if (book.live > book.peak) {
        book.peak = book.live;
        memcpy(book.site_at_peak, book.site_live, sizeof book.site_live);
    }
}

static void book_out(unsigned i)
{
    book.live -= book.held[i];
    book.site_live[book.site[i]] -= book.held[i];
}

/* One block comes or goes, in the shard that a thread of that number might be in. */
static void step_in_shard(unsigned i, unsigned roll, unsigned stretch)
{
    uint64_t key = 0x10000 + (uint64_t)i * 512;
    struct ms_block block;
    if (!book.held[i]) {
        book.held[i] = (1 + roll % 5000) * 1000u;
        book.site[i] = roll % SHARD_SITES;
        block = make_block(key, book.held[i], 1 + book.site[i], 0);
        book.record_id[i] = roll & 64 ? ms_ledger_serve(&block) : 0;
        if (!book.record_id[i])
            ms_ledger_alloc(&block);
        book.site_total[book.site[i]] += book.held[i];
        book_in(i, stretch);
        return;
    }
    book_out(i);
    if (book.record_id[i] ? !ms_ledger_unserve(book.record_id[i], key, NULL)
                          : !ms_ledger_free_begin(MS_SPACE_ADDRESS, key, &block))
        bail("a block is lost");
    if (!book.record_id[i] && roll % 5 == 0) {
        ms_ledger_free_abort(&block);
        book_in(i, stretch);
    } else {
        book.held[i] = 0;
    }
}

/* A bucket may have less than there was, since several shards rise a little before anybody hears of it, and
 * never more; with one shard, and where the peak is, it is exact. */
static void test_stretches(void)
{
    unsigned wrong = 0, exact = 0;
    for (unsigned i = 0; i < STRETCHES; i++) {
        uint64_t said = snapshot.devices[0].timeline[i], most = book.stretch[i];
        bool must_be_exact = i < STRETCHES / 10 || most == book.peak;
        wrong += said > most || most - said > most / 64 + (64 << 10) || (must_be_exact && said != most);
        exact += said == most;
    }
    is_u64(wrong, 0, "the timeline has the most of each stretch, or a 64th less");
    ok(exact < STRETCHES, "and less for some: %u of %u are exact", exact, STRETCHES);
}

/* In one thread, that pretends to be many. */
static void test_shards(void)
{
    unsigned seed = 12345, wrong = 0;
    start();
    memset(&book, 0, sizeof book);
    for (unsigned i = 0; i < SHARD_STEPS; i++) {
        unsigned stretch = i / (SHARD_STEPS / STRETCHES);
        seed = seed * 1103515245 + 12345;
        ms_events_freeze(((uint64_t)stretch << 20) + 5);
        if (i % (SHARD_STEPS / STRETCHES) == 0)
            book.stretch[stretch] = book.live;
        ms_shard_mine.shard = (uint8_t)((seed >> 20) % (i < SHARD_STEPS / 10 ? 1 : 5) * 3);
        step_in_shard((seed >> 8) % SHARD_BLOCKS, seed >> 10, stretch);
        if (i % 1000 == 0)
            wrong += (unsigned)ledger_check();
    }
    ms_shard_mine.shard = 0;
    look();
    is_u64(wrong, 0, "all sums add up over several lanes");
    is_u64(device(0)->live_bytes, book.live, "what is live is what all lanes hold");
    is_u64(device(0)->peak_live_bytes, book.peak, "the peak is that of all together");
    is_u64(snapshot.site_count, SHARD_SITES, "a site is one, in however many lanes");
    for (unsigned i = 0; i < SHARD_SITES; i++) {
        const struct ms_site *site = site_of(1 + i);
        wrong += site->live_bytes != book.site_live[i] || site->at_peak_bytes != book.site_at_peak[i] ||
                 site->total_bytes != book.site_total[i] || site->max_bytes < site->at_peak_bytes ||
                 site->max_bytes > book.peak;
    }
    is_u64(wrong, 0, "sites hold what they held, and held it at the peak");
    test_stretches();
    for (uint64_t i = 0; i < OUTER.count; i++)
        wrong += OUTER.list[i].site >= SHARD_SITES ||
                 snapshot.sites[OUTER.list[i].site].site.stack != OUTER.list[i].stack;
    is_u64(wrong, 0, "blocks name their sites");
    static struct ms_events_copy events;
    uint64_t most = 0;
    ms_ledger_oom(0, 0, 1, 0, &(struct ms_oom_view){.cause = MS_OOM_UNKNOWN});
    for (unsigned i = 0; i < SHARD_SITES; i++)
        most = book.site_live[i] > most ? book.site_live[i] : most;
    ok(ms_events_copy(&events, 1000) && events.oom_count == 1 && events.ooms[0].live_bytes == book.live &&
           events.ooms[0].top_bytes[0] == most &&
           ms_snapshot_place(&snapshot, events.ooms[0].top_sites[0]) < SHARD_SITES,
       "an out-of-memory error sees all lanes");
    ms_events_freeze(0);
}

static void *call_once(void *arg)
{
    ms_ledger_call(1, true, false, (uint64_t)(uintptr_t)arg);
    return NULL;
}

static pthread_barrier_t all_here;

static void *call_and_stay(void *arg)
{
    call_once(arg);
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < 1000; i++)
        call_once(arg);
    return NULL;
}

/* More threads than there are sets of counts: one after the other, and at once. */
static void test_counts(void)
{
    enum { AT_ONCE = 90, IN_TURN = 300 };
    pthread_t threads[AT_ONCE];
    struct ms_counts counts;
    start();
    for (int i = 0; i < IN_TURN; i++) {
        pthread_create(&threads[0], NULL, call_once, (void *)3);
        pthread_join(threads[0], NULL);
    }
    uint64_t rows = ms_table_rows(MS_TABLE_COUNTS);
    ok(ms_counts_sum(1, &counts) && counts.calls == IN_TURN && counts.bytes == IN_TURN * 3,
       "threads that ended are counted");
    ok(rows <= MS_TABLE_COUNTS_ROWS / MS_TABLE_APIS_ROWS * 3, "and leave their counts to others");
    pthread_barrier_init(&all_here, NULL, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_create(&threads[i], NULL, call_and_stay, (void *)5);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(threads[i], NULL);
    ok(ms_counts_sum(1, &counts) && counts.calls == IN_TURN + AT_ONCE * 1001u &&
           counts.bytes == IN_TURN * 3 + AT_ONCE * 1001u * 5,
       "more threads than can count by themselves miss none");
    ok(!ms_counts_sum(3, &counts), "there are no more functions than were named");
}

int main(void)
{
    plan(0);
    ms_options_load(NULL, NULL, NULL);
    test_shards();
    test_counts();
    return done();
}
