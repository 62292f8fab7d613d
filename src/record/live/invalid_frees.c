/* invalid_frees.c - see invalid_frees.h.
 *
 * Floor 2. What a refused free was about is found by going through the rows and sites without a lock, each
 * read again if it changed meanwhile; a row is written under one lock (MS_RANK_TIMELINE). Allocates nothing
 * but rows. */
#include <string.h>

#include "base/log.h"
#include "record/live/invalid_frees.h"

/* Rows that are looked at in the life of a process: a gigabyte of memory read, or about a tenth of a second,
 * however many frees are refused. */
enum { LOOKS_MAX = 1 << 24 };
enum { RULES = MS_INVALID_FREE_FORKED, PAIRS_MAX = MS_INVALID_FREES_MAX - RULES };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
static _Atomic uint64_t looks, forgotten_ns;

/* The key that is looked for, and what was found so far. */
struct look {
    enum ms_space space;
    uint64_t key;
    bool is_live;
    struct ms_invalid_free inside, freed, live;
    uint64_t freed_ns;
};

static bool is_spent(uint64_t rows)
{
    uint64_t before = atomic_fetch_add_explicit(&looks, rows, memory_order_relaxed);
    if (before > LOOKS_MAX)
        return true;
    if (before + rows > LOOKS_MAX)
        ms_diagnostic(MS_LOG_INFO, "ledger",
                      "many frees were refused: those from now on are not looked into");
    return false;
}

static struct ms_invalid_free misfree_of(enum ms_invalid_free_rule rule, const struct ms_block_row *block_row)
{
    return (struct ms_invalid_free){.rule = rule,
                                    .begin = block_row->key,
                                    .bytes = block_row->bytes,
                                    .site = block_row->site,
                                    .device = block_row->device};
}

static void look_at_live(struct look *look, const struct ms_block_row *block_row)
{
    if (block_row->key == look->key) {
        look->is_live = true;
        look->live = misfree_of(MS_INVALID_FREE_DOUBLE, block_row);
    } else if (look->space == MS_SPACE_ADDRESS && look->key - block_row->key < block_row->bytes &&
               (!look->inside.rule || block_row->bytes < look->inside.bytes)) {
        look->inside = misfree_of(MS_INVALID_FREE_INTERIOR, block_row);
    }
}

static void look_at_freed(struct look *look, const struct ms_block_row *block_row)
{
    if (block_row->key != look->key || block_row->freed_ns <= look->freed_ns)
        return;
    look->freed = misfree_of(MS_INVALID_FREE_DOUBLE, block_row);
    look->freed_ns = block_row->freed_ns;
}

/* A row may be used again while it is read: then the copy is of nothing. */
static MS_UNSYNCHRONIZED bool read_row(const struct ms_block_row *block_row, unsigned *state_p,
                                       struct ms_block_row *copy_p)
{
    uint32_t state = atomic_load_explicit(&block_row->state, memory_order_acquire);
    copy_p->key = block_row->key;
    copy_p->bytes = block_row->bytes;
    copy_p->freed_ns = block_row->freed_ns;
    copy_p->site = block_row->site;
    copy_p->device = block_row->device;
    copy_p->tags = block_row->tags;
    atomic_thread_fence(memory_order_acquire);
    *state_p = state % MS_BLOCK_ROW_STATES;
    return state && atomic_load_explicit(&block_row->state, memory_order_relaxed) == state;
}

static void look_at_rows(struct look *look, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        struct ms_block_row copy;
        unsigned state;
        if (!read_row(ms_block_row_at(i), &state, &copy) || ms_block_row_space(&copy) != look->space)
            continue;
        if (state == MS_BLOCK_ROW_LIVE)
            look_at_live(look, &copy);
        else if (state == MS_BLOCK_ROW_FREE)
            look_at_freed(look, &copy);
    }
}

/* Numbers, array handles and names are told from addresses by the kind of what they name. */
static bool invalid_frees_fits(enum ms_space space, unsigned kind)
{
    switch (space) {
    case MS_SPACE_ARRAY:
        return kind == MS_KIND_ARRAY;
    case MS_SPACE_EXTERNAL:
        return kind == MS_KIND_IMPORTED;
    case MS_SPACE_HANDLE:
        return kind == MS_KIND_HANDLE || kind == MS_KIND_PINNED;
    default:
        return kind != MS_KIND_ARRAY;
    }
}

static MS_UNSYNCHRONIZED void invalid_frees_look_at_sites(struct look *look, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        const struct ms_site *site = ms_site_at(i);
        if (!site || site->freed_key != look->key || site->freed_ns <= look->freed_ns ||
            !invalid_frees_fits(look->space, site->kind))
            continue;
        look->freed_ns = site->freed_ns;
        look->freed = (struct ms_invalid_free){.rule = MS_INVALID_FREE_DOUBLE,
                                               .begin = look->key,
                                               .bytes = site->freed_bytes,
                                               .site = i,
                                               .device = site->device};
    }
}

bool ms_ledger_invalid_free_find(enum ms_space space, uint64_t key, bool released,
                                 struct ms_invalid_free *misfree_p)
{
    struct look look = {
        .space = space, .key = key, .freed_ns = atomic_load_explicit(&forgotten_ns, memory_order_acquire)};
    uint32_t block_rows = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS), sites = ms_site_count();
    if (is_spent((uint64_t)block_rows + sites))
        return false;
    look_at_rows(&look, block_rows);
    if (!look.is_live && !look.inside.rule)
        invalid_frees_look_at_sites(&look, sites);
    if (look.is_live)
        *misfree_p = released ? look.live : (struct ms_invalid_free){.rule = MS_INVALID_FREE_NONE};
    else
        *misfree_p = look.inside.rule ? look.inside : look.freed;
    misfree_p->space = space;
    misfree_p->given = key;
    return misfree_p->rule != MS_INVALID_FREE_NONE;
}

/* The row of all shards. */
static uint32_t whole_site(uint32_t number)
{
    const struct ms_site *site = ms_site_at(number);
    return site ? site->whole : UINT32_MAX;
}

static bool invalid_frees_is_same(const struct ms_invalid_free_row *a, const struct ms_invalid_free_row *b)
{
    return a->rule == b->rule && a->api == b->api && a->stack == b->stack && a->site == b->site;
}

/* The row of this pair, or an empty one for it; that of the rest where there is none. */
static struct ms_invalid_free_row *row_for(const struct ms_invalid_free_row *wanted)
{
    struct ms_invalid_free_row *rows = MS_ROWS(INVALID_FREES, struct ms_invalid_free_row);
    struct ms_invalid_free_row *empty = &rows[PAIRS_MAX + wanted->rule - 1];
    for (unsigned i = PAIRS_MAX; i-- > 0;) {
        if (!atomic_load_explicit(&rows[i].count, memory_order_relaxed))
            empty = &rows[i];
        else if (invalid_frees_is_same(&rows[i], wanted))
            return &rows[i];
    }
    return empty;
}

uint32_t ms_ledger_invalid_free(const struct ms_invalid_free *invalid_free, uint16_t api, ms_stack_id stack)
{
    struct ms_invalid_free_row wanted = {
        .bytes = invalid_free->bytes,
        .t_ns = ms_ledger_now(),
        .given = invalid_free->given,
        .begin = invalid_free->begin,
        .block_bytes = ms_invalid_free_is_use(invalid_free->rule) ? invalid_free->freed_stack
                       : invalid_free->block_bytes                ? invalid_free->block_bytes
                                                                  : invalid_free->bytes,
        .stack = stack,
        .site = whole_site(invalid_free->site),
        .api = api,
        .device = invalid_free->device,
        .rule = (uint8_t)invalid_free->rule,
        .space = (uint8_t)invalid_free->space};
    ms_events_touch();
    if (!ms_table_reserve(MS_TABLE_INVALID_FREES, MS_INVALID_FREES_MAX))
        return 0;
    ms_lock(&lock);
    if (ms_table_rows(MS_TABLE_INVALID_FREES) < MS_INVALID_FREES_MAX)
        ms_table_publish(MS_TABLE_INVALID_FREES, MS_INVALID_FREES_MAX);
    struct ms_invalid_free_row *row = row_for(&wanted);
    uint64_t count = atomic_load_explicit(&row->count, memory_order_relaxed), bytes = row->bytes;
    if (!count)
        memcpy((char *)row + sizeof row->count, (const char *)&wanted + sizeof wanted.count,
               sizeof wanted - sizeof wanted.count);
    else if (!ms_invalid_free_is_use(invalid_free->rule))
        row->bytes = wanted.bytes < INT64_MAX - bytes ? bytes + wanted.bytes : INT64_MAX;
    atomic_store_explicit(&row->count, count + 1, memory_order_release);
    ms_unlock(&lock);
    return (uint32_t)(row - MS_ROWS(INVALID_FREES, struct ms_invalid_free_row)) + 1;
}

void ms_ledger_invalid_free_undone(uint32_t where, uint64_t bytes)
{
    ms_lock(&lock);
    if (where && where <= ms_table_rows(MS_TABLE_INVALID_FREES)) {
        struct ms_invalid_free_row *row = &MS_ROWS(INVALID_FREES, struct ms_invalid_free_row)[where - 1];
        uint64_t count = atomic_load_explicit(&row->count, memory_order_relaxed);
        row->bytes -= bytes < row->bytes ? bytes : row->bytes;
        atomic_store_explicit(&row->count, count ? count - 1 : 0, memory_order_release);
    }
    ms_unlock(&lock);
}

/* Those of the rest name no places: of what found no row of its own only the sums are kept. */
static void put_copy(const struct ms_invalid_free_row *row, bool is_rest, struct ms_invalid_free_row *copy_p)
{
    memcpy((void *)copy_p, row, sizeof *row);
    if (!is_rest)
        return;
    copy_p->stack = 0;
    copy_p->site = UINT32_MAX;
    copy_p->api = UINT16_MAX;
    copy_p->device = MS_DEVICE_NONE;
}

bool ms_invalid_frees_copy(struct ms_invalid_free_row *rows, uint32_t *count_p, unsigned timeout_ms)
{
    const struct ms_invalid_free_row *from = MS_ROWS(INVALID_FREES, struct ms_invalid_free_row);
    *count_p = 0;
    if (!ms_table_rows(MS_TABLE_INVALID_FREES))
        return true;
    if (!ms_lock_within(&lock, timeout_ms))
        return false;
    for (unsigned i = 0; i < MS_INVALID_FREES_MAX && i < ms_table_rows(MS_TABLE_INVALID_FREES); i++) {
        if (atomic_load_explicit(&from[i].count, memory_order_acquire))
            put_copy(&from[i], i >= PAIRS_MAX, &rows[(*count_p)++]);
    }
    ms_unlock(&lock);
    return true;
}

void ms_invalid_frees_forget(uint64_t now_ns)
{
    atomic_store_explicit(&forgotten_ns, now_ns, memory_order_release);
}

static void misfrees_reset(void)
{
    ms_lock_reset(&lock);
    atomic_store_explicit(&looks, 0, memory_order_relaxed);
    atomic_store_explicit(&forgotten_ns, 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_RECORD, misfrees_reset);
