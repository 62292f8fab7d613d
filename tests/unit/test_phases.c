/* test_phases.c - phases against a book of their own: nested ones, and ones that end in any order, while
 * blocks come and go in several shards; names, ends that do not pair, and a record that is full. */
#include "config.h"

#include <string.h>

#include "base/thread/guard.h"
#include "base/options/options.h"
#include "record/live/shards.h"
#include "record/file/process.h"
#include "tests/unit/ledger_check.h"
#include "tests/unit/ledger_fixture.h"

enum { SITES = 12, BLOCKS = 300, STEPS = 40000, NAMES = 4, AT_ONCE = 6, OPENS = 2 * AT_ONCE };

/* What a phase must say. */
struct figures {
    uint64_t count, peak_max, peak_min, allocated, freed;
    int64_t growth;
    uint64_t site_at_peak[SITES];
};

static struct open {
    bool is_open;
    unsigned name;
    uint64_t id, peak, live, allocated, freed;
    uint64_t site_at_peak[SITES];
} opens[OPENS]; /* the first half nested */

static struct {
    uint64_t held[BLOCKS], live, peak;
    unsigned site[BLOCKS];
    uint64_t site_live[SITES], site_at_peak[SITES];
    struct figures figures[NAMES];
} book;
static unsigned depth;
static const char *const names[NAMES] = {"step", "forward", "backward", "layer"};

static void book_in(unsigned i)
{
    book.live += book.held[i];
    book.site_live[book.site[i]] += book.held[i];
    if (book.live > book.peak) {
        book.peak = book.live;
        memcpy(book.site_at_peak, book.site_live, sizeof book.site_live);
    }
    for (unsigned k = 0; k < OPENS; k++) {
        if (!opens[k].is_open)
            continue;
        opens[k].allocated += book.held[i];
        if (book.live <= opens[k].peak)
            continue;
        opens[k].peak = book.live;
        memcpy(opens[k].site_at_peak, book.site_live, sizeof book.site_live);
    }
}

static void book_out(unsigned i)
{
    book.live -= book.held[i];
    book.site_live[book.site[i]] -= book.held[i];
    for (unsigned k = 0; k < OPENS; k++)
        opens[k].freed += opens[k].is_open ? book.held[i] : 0;
}

static void step(unsigned i, unsigned roll)
{
    uint64_t key = 0x10000 + (uint64_t)i * 512;
    struct ms_block block;
    if (book.held[i]) {
        book_out(i);
        if (!ms_ledger_free_begin(MS_SPACE_ADDRESS, key, &block))
            bail("a block is lost");
        book.held[i] = 0;
        return;
    }
    book.held[i] = 1 + roll % 5000;
    book.site[i] = roll % SITES;
    block = make_block(key, book.held[i], 1 + book.site[i], 0);
    ms_ledger_alloc(&block);
    book_in(i);
}

static void open_one(struct open *open, unsigned name)
{
    *open = (struct open){.is_open = true, .name = name, .peak = book.live, .live = book.live};
    memcpy(open->site_at_peak, book.site_live, sizeof book.site_live);
}

static void fold(struct open *open)
{
    struct figures *figures = &book.figures[open->name];
    if (!figures->count || open->peak > figures->peak_max) {
        figures->peak_max = open->peak;
        memcpy(figures->site_at_peak, open->site_at_peak, sizeof open->site_at_peak);
    }
    if (!figures->count || open->peak < figures->peak_min)
        figures->peak_min = open->peak;
    figures->allocated += open->allocated;
    figures->freed += open->freed;
    figures->growth += (int64_t)(book.live - open->live);
    figures->count++;
    open->is_open = false;
}

static void cross(unsigned roll)
{
    unsigned name = (roll >> 14) % NAMES, k = AT_ONCE + (roll >> 4) % AT_ONCE;
    struct open *open = &opens[k];
    if (roll & 1024) {
        if (open->is_open) {
            ms_phase_end(open->id);
            fold(open);
        } else {
            open_one(open, name);
            open->id = ms_phase_begin(MS_PHASE_NVTX, 0, ms_phase_text(names[name]));
        }
    } else if (depth && (depth == AT_ONCE || roll & 2048)) {
        if (ms_phase_pop(MS_PHASE_NVTX, 0) != (int)--depth)
            bail("a pop has another level");
        fold(&opens[depth]);
    } else {
        open_one(&opens[depth], name);
        if (ms_phase_push(MS_PHASE_NVTX, 0, ms_phase_text(names[name])) != (int)depth++)
            bail("a push has another level");
    }
}

static const struct ms_phase_figures *figures_of(const char *name)
{
    static const struct ms_phase_figures none;
    for (uint32_t i = 0; i < snapshot.phases.figures_count; i++) {
        const struct ms_phase *phase = &snapshot.phases.phases[snapshot.phases.figures[i].phase];
        if (!strcmp(ms_phase_text_at(phase->name), name))
            return &snapshot.phases.figures[i];
    }
    return &none;
}

/* The sites that are told held what they are said to have held, and none of the others more. */
static unsigned wrong_sites(const struct ms_phase_figures *told, const struct figures *figures)
{
    uint64_t least = UINT64_MAX;
    unsigned wrong = 0, more = 0;
    for (unsigned i = 0; i < told->top_count; i++) {
        uint32_t place = ms_snapshot_place(&snapshot, told->top_sites[i]);
        wrong += place >= snapshot.site_count ||
                 figures->site_at_peak[snapshot.sites[place].site.stack - 1] != told->top_bytes[i];
        least = told->top_bytes[i] < least ? told->top_bytes[i] : least;
    }
    for (unsigned i = 0; i < SITES; i++)
        more += figures->site_at_peak[i] > least;
    return wrong + (more >= MS_OOM_TOP_SITES) + (told->top_count != MS_OOM_TOP_SITES);
}

static unsigned wrong_figures(const char *name, const struct figures *figures)
{
    const struct ms_phase_figures *told = figures_of(name);
    unsigned wrong = told->count != figures->count || told->peak_bytes_max != figures->peak_max ||
                     told->peak_bytes_min != figures->peak_min ||
                     told->allocated_bytes != figures->allocated || told->freed_bytes != figures->freed ||
                     told->growth_bytes_sum != figures->growth || wrong_sites(told, figures);
    if (wrong)
        diag("%s: %llu times, peak %llu (%llu), allocated %llu (%llu), freed %llu (%llu), wrong sites %u",
             name, (unsigned long long)told->count, (unsigned long long)told->peak_bytes_max,
             (unsigned long long)figures->peak_max, (unsigned long long)told->allocated_bytes,
             (unsigned long long)figures->allocated, (unsigned long long)told->freed_bytes,
             (unsigned long long)figures->freed, wrong_sites(told, figures));
    return wrong;
}

/* What is open counts as if it had ended, in the report and in the book. */
static unsigned compare(void)
{
    unsigned wrong = 0;
    look();
    for (unsigned k = 0; k < OPENS; k++) {
        if (opens[k].is_open)
            fold(&opens[k]);
    }
    for (unsigned i = 0; i < NAMES; i++)
        wrong += wrong_figures(names[i], &book.figures[i]);
    for (unsigned i = 0; i < SITES; i++)
        wrong += site_of(1 + i)->at_peak_bytes != book.site_at_peak[i];
    wrong += device(0)->peak_live_bytes != book.peak || device(0)->live_bytes != book.live;
    return wrong;
}

/* In one thread, that pretends to be in several shards. */
static void test_book(unsigned shards, unsigned seed)
{
    unsigned wrong = 0;
    start();
    memset(&book, 0, sizeof book);
    memset(opens, 0, sizeof opens);
    depth = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        seed = seed * 1103515245 + 12345;
        ms_events_freeze(((uint64_t)(i / (STEPS / 60)) << 20) + 5);
        ms_shard_mine.shard = (uint8_t)((seed >> 20) % (i < STEPS / 10 ? 1 : shards) * 3);
        if ((seed >> 12) % 40 == 0)
            cross(seed >> 14);
        else
            step((seed >> 8) % BLOCKS, seed >> 10);
        if (i % 1000 == 0)
            wrong += (unsigned)ledger_check();
    }
    ms_shard_mine.shard = 0;
    is_u64(wrong, 0, "all sums add up while phases are open, in %u lanes", shards);
    is_u64(compare(), 0, "phases, and the device's peak, are those of the book, in %u lanes", shards);
    ms_events_freeze(0);
}

/* A device of which the first block is in a phase: its peak is known from then on, though nothing of it is
 * live at the phase's end, and nobody measured before. */
static void test_first(unsigned shard)
{
    start();
    memset(&book, 0, sizeof book);
    memset(opens, 0, sizeof opens);
    depth = 0;
    ms_events_freeze(5);
    ms_shard_mine.shard = (uint8_t)shard;
    for (unsigned i = 0; i < NAMES; i++)
        cross(i << 14);
    for (unsigned i = 0; i < 2 * BLOCKS; i++)
        step(i % BLOCKS, i);
    while (depth)
        cross(2048);
    ms_shard_mine.shard = 0;
    is_u64(ledger_check(), 0, "all sums add up where a device is first used in a phase, in lane %u", shard);
    is_u64(compare(), 0, "and the phase has its peak");
    ms_events_freeze(0);
}

static void test_pairs(void)
{
    start();
    is_u64((uint64_t)ms_phase_push(MS_PHASE_MEMSHIM, 0, ms_phase_text("a")), 0, "the first is at level 0");
    is_u64((uint64_t)ms_phase_push(MS_PHASE_MEMSHIM, ms_phase_text("domain"), 0), 0,
           "each domain has its levels");
    is_u64((uint64_t)ms_phase_push(MS_PHASE_NVTX, 0, ms_phase_text("a")), 0, "and each interface");
    unsigned own = ms_thread.tid;
    ms_thread.tid = own + 1;
    ok(ms_phase_pop(MS_PHASE_MEMSHIM, 0) == -1, "another thread has none to end");
    ms_thread.tid = own;
    ok(ms_phase_pop(MS_PHASE_MEMSHIM, 0) == 0, "who began it ends it");
    uint64_t id = ms_phase_begin(MS_PHASE_MEMSHIM, 0, ms_phase_text("b"));
    ms_thread.tid = own + 1;
    ms_phase_end(id);
    ms_thread.tid = own;
    ms_phase_end(id);
    ms_phase_end(0);
    ms_phase_end(~UINT64_C(0));
    is_u64(ms_process()->phase_faults[MS_PHASE_NOT_OPEN], 4, "ends of what is not open are counted");
    ok(ms_phase_text("") == 0 && ms_phase_text(NULL) == 0 && ms_phase_text("a") == ms_phase_text("a"),
       "a text is there once");
    look();
    is_u64(snapshot.phases.phase_count, 1 + 4, "a phase is told by interface, domain and name");
}

static void test_full(void)
{
    char name[MS_PHASE_NAME_BYTES + 8];
    start();
    for (unsigned i = 0; i < 3 * MS_TABLE_PHASES_ROWS; i++) {
        snprintf(name, sizeof name, "name %u", i);
        ms_phase_push(MS_PHASE_MEMSHIM, 0, ms_phase_text(name));
        ms_phase_pop(MS_PHASE_MEMSHIM, 0);
    }
    look();
    is_u64(snapshot.phases.phase_count, MS_TABLE_PHASES_ROWS,
           "there are no more names than there is room for");
    uint64_t times = 0;
    for (uint32_t i = 0; i < snapshot.phases.phase_count; i++)
        times += snapshot.phases.phases[i].ended;
    is_u64(times, 3 * MS_TABLE_PHASES_ROWS, "and every phase counts under one of them");
    start();
    for (unsigned i = 0; i < 2 * MS_PHASE_OPENS; i++)
        ms_phase_begin(MS_PHASE_MEMSHIM, 0, ms_phase_text("open"));
    is_u64(ms_process()->phase_faults[MS_PHASE_NO_ROOM], MS_PHASE_OPENS, "what finds no room is counted");
    memset(name, 'x', sizeof name);
    memcpy(name + MS_PHASE_NAME_BYTES - 2, "\xe2\x82\xac", 4);
    is_u64(strlen(ms_phase_text_at(ms_phase_text(name))), MS_PHASE_NAME_BYTES - 2,
           "a long name is cut between characters");
    start();
    ok(ms_phase_pop(MS_PHASE_MEMSHIM, 0) == -1 && !ms_process()->phase_faults[MS_PHASE_NOT_OPEN],
       "a fork child's ends of what its parent began are no fault");
}

int main(void)
{
    plan(0);
    ms_options_load(NULL, NULL, NULL);
    test_pairs();
    test_first(0);
    test_first(3);
    test_book(1, 1);
    test_book(1, 77);
    test_book(5, 3);
    test_book(5, 4242);
    test_full();
    ms_snapshot_release(&snapshot);
    return done();
}
