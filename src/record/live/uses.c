/* uses.c - lives of blocks, and their uses: see uses.h.
 *
 * Floor 2. Rows are appended under no lock, by a counter; a life is written by the thread whose block it is,
 * with the shard locked, and by uses, which store words. The map from addresses to lives is the process's
 * own: pages of 2 MiB over 48 bits, of which each is one life's as a whole, or has a cell for every 256
 * bytes. Cells that are of a life stay so when it has ended, which it says itself before its address can be
 * another's: by them a use of what was freed is known. */
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/options/options.h"
#include "base/thread/slow_path.h"
#include "record/live/internal.h"
#include "record/live/uses.h"

enum { PAGE_BITS = 21, LEAF_BITS = 14, ROOT_BITS = 13, CELL_BITS = 8, CELLS = 1 << (PAGE_BITS - CELL_BITS) };

struct cells {
    _Atomic uint32_t life[CELLS]; /* + 1 */
};

struct page {
    _Atomic uint32_t whole; /* the life that has all of it, + 1 */
    struct cells *_Atomic cells;
};

struct leaf {
    struct page pages[1 << LEAF_BITS];
};

atomic_bool ms_uses_on;
static struct leaf *_Atomic leaves[1 << ROOT_BITS];
static _Atomic uint64_t numbers;
static _Atomic uint32_t *ids;     /* of each row of the table of blocks: its life, + 1 */
static struct ms_uses kept_aside; /* until there is a row */
static struct ms_uses *_Atomic all = &kept_aside;

static struct ms_uses *counts(void)
{
    return atomic_load_explicit(&all, memory_order_acquire);
}

static uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void uses_put(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static void copy_counts(struct ms_uses *copy, struct ms_uses *from)
{
    _Atomic uint64_t *to = (_Atomic uint64_t *)copy, *value = (_Atomic uint64_t *)from;
    for (unsigned i = 0; i < sizeof *copy / sizeof *to; i++)
        uses_put(&to[i], get(&value[i]));
}

static void raise(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t seen = get(value);
    while (seen < to && !atomic_compare_exchange_weak_explicit(value, &seen, to, memory_order_relaxed,
                                                               memory_order_relaxed))
        ;
}

/* 0 is none yet. */
static void lower(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t seen = get(value);
    while ((!seen || seen > to) && !atomic_compare_exchange_weak_explicit(
                                       value, &seen, to, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void move_sum(_Atomic uint64_t *to, _Atomic uint64_t *from)
{
    atomic_fetch_add(to, atomic_exchange(from, 0));
}

static void bring_latest(struct ms_uses *row)
{
    raise(&row->last_launch, get(&kept_aside.last_launch));
    raise(&row->last_graph, get(&kept_aside.last_graph));
    raise(&row->no_layouts, get(&kept_aside.no_layouts));
}

/* Whoever has counted comes here afterwards: what was counted aside while the row came to be goes there. The
 * opener moves it too, and one of the two sees the other's store, so nothing is lost, and nothing counts
 * twice. */
static void bring(const struct ms_uses *counted)
{
    struct ms_uses *row;
    if (MS_LIKELY(counted != &kept_aside))
        return;
    atomic_thread_fence(memory_order_seq_cst);
    row = counts();
    if (row == &kept_aside)
        return;
    move_sum(&row->launches, &kept_aside.launches);
    move_sum(&row->graph_launches, &kept_aside.graph_launches);
    move_sum(&row->unread, &kept_aside.unread);
    move_sum(&row->left_out, &kept_aside.left_out);
    bring_latest(row);
}

static struct ms_lifetime *life_at(uint32_t number)
{
    return &MS_ROWS(LIVES, struct ms_lifetime)[number];
}

void ms_uses_start(void)
{
    size_t bytes = (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ids;
    void *memory;
    if (ms_option_int(MS_OPT_USES) != MS_USES_ON)
        return;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        ms_diagnostic(MS_LOG_WARN, "uses", "MEMSHIM_USES: no memory");
        return;
    }
    ids = memory;
    atomic_store(&ms_uses_on, true);
    ms_slow_path_set(MS_SLOW_PATH_USES);
}

void ms_uses_open(void)
{
    if (!ms_uses_wanted() || !ms_table_reserve(MS_TABLE_USES, 1))
        return;
    ms_table_publish(MS_TABLE_USES, 1);
    bring_latest(MS_ROWS(USES, struct ms_uses));
    atomic_store_explicit(&all, MS_ROWS(USES, struct ms_uses), memory_order_release);
    bring(&kept_aside);
}

static void uses_reset(void)
{
    if (ids)
        munmap((void *)ids, (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ids);
    ids = NULL;
    atomic_store(&ms_uses_on, false);
    ms_slow_path_clear(MS_SLOW_PATH_USES);
    for (unsigned i = 0; i < MS_ARRAY_LEN(leaves); i++)
        atomic_store_explicit(&leaves[i], NULL, memory_order_relaxed);
    uses_put(&numbers, 0);
    memset((void *)&kept_aside, 0, sizeof kept_aside);
    atomic_store(&all, &kept_aside);
}
MS_AT_FORK(MS_FORK_RECORD, uses_reset);

/* --- the map -------------------------------------------------------------------------------------------- */

/* Whoever comes first gives it; what another made in vain stays zero and unused. */
static void *made(void *_Atomic *at, size_t bytes)
{
    void *there = atomic_load_explicit(at, memory_order_acquire), *other = NULL;
    if (there)
        return there;
    there = ms_arena_alloc(bytes);
    return there && !atomic_compare_exchange_strong(at, &other, there) ? other : there;
}

static struct page *page_of(uint64_t address, bool make)
{
    uint64_t page = address >> PAGE_BITS;
    struct leaf *leaf;
    if (MS_UNLIKELY(page >> (LEAF_BITS + ROOT_BITS)))
        return NULL;
    leaf = make ? made((void *_Atomic *)&leaves[page >> LEAF_BITS], sizeof *leaf)
                : atomic_load_explicit(&leaves[page >> LEAF_BITS], memory_order_acquire);
    return leaf ? &leaf->pages[page & ((1 << LEAF_BITS) - 1)] : NULL;
}

static void set_word(_Atomic uint32_t *word, uint32_t from, uint32_t to)
{
    if (!from)
        atomic_store_explicit(word, to, memory_order_release);
    else
        atomic_compare_exchange_strong(word, &from, to);
}

/* The part of a page between two offsets; its words that are `from`, or all if that is 0, become `to`. */
static bool set_part(uint64_t address, uint64_t bytes, uint32_t from, uint32_t to)
{
    struct page *page = page_of(address, to != 0);
    struct cells *cells;
    uint64_t first = (address & ((1 << PAGE_BITS) - 1)) >> CELL_BITS,
             last = ((address & ((1 << PAGE_BITS) - 1)) + bytes - 1) >> CELL_BITS;
    if (!page)
        return false;
    if (bytes == 1 << PAGE_BITS) {
        set_word(&page->whole, from, to);
        return true;
    }
    cells = to ? made((void *_Atomic *)&page->cells, sizeof *cells)
               : atomic_load_explicit(&page->cells, memory_order_acquire);
    for (uint64_t i = first; cells && i <= last; i++)
        set_word(&cells->life[i], from, to);
    return cells != NULL;
}

static bool set_range(uint64_t address, uint64_t bytes, uint32_t from, uint32_t to)
{
    bool done = address + bytes > address;
    for (uint64_t at = address, part; done && at < address + bytes; at += part) {
        part = (UINT64_C(1) << PAGE_BITS) - (at & ((UINT64_C(1) << PAGE_BITS) - 1));
        if (part > address + bytes - at)
            part = address + bytes - at;
        done = set_part(at, part, from, to);
    }
    return done;
}

/* The life of that number, if the address lies in it. */
static struct ms_lifetime *covering(uint32_t number, uint64_t address)
{
    struct ms_lifetime *life = number ? life_at(number - 1) : NULL;
    return life && address - life->address < life->bytes ? life : NULL;
}

/* The lifetimes that are written at an address: of the cell and of the whole page, each the latest there. */
static void lives_at(uint64_t address, struct ms_lifetime *lives[2])
{
    const struct page *page = page_of(address, false);
    struct cells *cells = page ? atomic_load_explicit(&page->cells, memory_order_acquire) : NULL;
    lives[0] = lives[1] = NULL;
    if (cells)
        lives[0] =
            covering(atomic_load_explicit(&cells->life[(address & ((1 << PAGE_BITS) - 1)) >> CELL_BITS],
                                          memory_order_acquire),
                     address);
    if (page)
        lives[1] = covering(atomic_load_explicit(&page->whole, memory_order_acquire), address);
}

static bool uses_has_ended(const struct ms_lifetime *life)
{
    return atomic_load_explicit(&life->ended, memory_order_acquire) != 0;
}

/* The life at an address, if there is one. */
static struct ms_lifetime *uses_find(uint64_t address)
{
    struct ms_lifetime *lives[2];
    lives_at(address, lives);
    if (lives[0] && !uses_has_ended(lives[0]))
        return lives[0];
    return lives[1] && !uses_has_ended(lives[1]) ? lives[1] : NULL;
}

/* The one that ended there last, if none lives. */
static struct ms_lifetime *find_ended(uint64_t address)
{
    struct ms_lifetime *lives[2];
    lives_at(address, lives);
    if ((lives[0] && !uses_has_ended(lives[0])) || (lives[1] && !uses_has_ended(lives[1])))
        return NULL;
    if (lives[0] && lives[1])
        return get(&lives[0]->ended) > get(&lives[1]->ended) ? lives[0] : lives[1];
    return lives[0] ? lives[0] : lives[1];
}

/* --- lives ---------------------------------------------------------------------------------------------- */

uint64_t ms_uses_number(void)
{
    return atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
}

/* A fresh row, which says itself when it is whole; UINT32_MAX without room. */
static uint32_t uses_take_row(void)
{
    struct ms_uses *uses;
    uint64_t number;
    if (ms_table_take(MS_TABLE_LIVES, 1, &number))
        return (uint32_t)number;
    uses = counts();
    atomic_fetch_add_explicit(&uses->left_out, 1, memory_order_relaxed);
    bring(uses);
    return UINT32_MAX;
}

void ms_uses_born(uint32_t block_row, const struct ms_block *block)
{
    uint32_t number = ids ? uses_take_row() : UINT32_MAX;
    struct ms_lifetime *life;
    if (ids)
        atomic_store_explicit(&ids[block_row], number + 1, memory_order_relaxed);
    if (number == UINT32_MAX)
        return;
    life = life_at(number);
    life->site = block->site;
    life->address = block->key;
    life->bytes = block->bytes;
    life->device = block->device;
    life->kind = block->kind;
    life->unread = (uint32_t)get(&counts()->unread);
    life->born = ms_uses_number();
    if (block->space != MS_SPACE_ADDRESS || !block->bytes ||
        !set_range(block->key, block->bytes, 0, number + 1))
        atomic_fetch_or(&life->flags, MS_LIFETIME_UNMAPPED);
    atomic_store_explicit(&life->state, 1, memory_order_release);
}

/* Adds to a lifetime what may have been a use of it, as of `uses`, and was not told as one. */
static void uses_settle(struct ms_lifetime *life, const struct ms_uses *uses)
{
    uint32_t flags = atomic_load_explicit(&life->flags, memory_order_relaxed);
    uint64_t last = get(&life->last), graph = get(&uses->last_graph), launch = get(&uses->last_launch);
    if (flags & (MS_LIFETIME_GRAPH | MS_LIFETIME_HELD) && graph > last)
        last = graph;
    if (flags & MS_LIFETIME_HELD && launch > last)
        last = launch;
    if (last > life->born && last > get(&life->last)) {
        raise(&life->last, last);
        if (!get(&life->first))
            lower(&life->first, last);
    }
    if ((uint32_t)get(&uses->unread) != life->unread)
        atomic_fetch_or_explicit(&life->flags, MS_LIFETIME_UNREAD, memory_order_relaxed);
}

void ms_uses_ended(uint32_t block_row)
{
    uint32_t number = ids ? atomic_exchange_explicit(&ids[block_row], 0, memory_order_relaxed) : 0;
    struct ms_lifetime *life = number ? life_at(number - 1) : NULL;
    if (!life)
        return;
    uses_settle(life, counts());
    atomic_store_explicit(&life->ended, ms_uses_number(), memory_order_release);
}

void ms_uses_freed(uint64_t address, ms_stack_id stack)
{
    struct ms_lifetime *life = find_ended(address);
    if (life && life->address == address)
        life->freed_stack = stack;
}

uint64_t ms_uses_latest(void)
{
    return get(&numbers);
}

/* True if the lifetime ended before a use of its memory that began at `begun`; then *misfree_p says what that
 * use was about. */
static bool is_over(struct ms_lifetime *life, uint64_t address, uint64_t begun,
                    struct ms_invalid_free *misfree_p)
{
    if (!life || !uses_has_ended(life) || get(&life->ended) > begun)
        return false;
    *misfree_p = (struct ms_invalid_free){.given = address,
                                          .begin = life->address,
                                          .bytes = life->bytes,
                                          .site = life->site,
                                          .device = life->device,
                                          .space = MS_SPACE_ADDRESS,
                                          .freed_stack = life->freed_stack};
    return true;
}

bool ms_uses_after(uint64_t address, uint64_t begun, struct ms_invalid_free *misfree_p)
{
    return is_over(find_ended(address), address, begun, misfree_p);
}

uint32_t ms_uses_life(uint64_t address)
{
    struct ms_lifetime *life = uses_find(address);
    if (!life)
        life = find_ended(address);
    return life ? (uint32_t)(life - life_at(0)) + 1 : 0;
}

bool ms_uses_over(uint32_t life, uint64_t address, uint64_t begun, struct ms_invalid_free *misfree_p)
{
    return is_over(life_at(life - 1), address, begun, misfree_p);
}

bool ms_uses_note(uint64_t number, uint64_t address, uint64_t bytes, uint32_t flags)
{
    struct ms_lifetime *life = uses_find(address);
    uint64_t offset;
    if (!life || number <= life->born)
        return false;
    offset = address - life->address;
    raise(&life->last, number);
    lower(&life->first, number);
    raise(&life->reach, bytes > life->bytes - offset ? life->bytes : offset + bytes);
    if (flags & ~atomic_load_explicit(&life->flags, memory_order_relaxed))
        atomic_fetch_or_explicit(&life->flags, flags, memory_order_relaxed);
    return true;
}

void ms_uses_mark(uint64_t address, uint32_t flags)
{
    struct ms_lifetime *life = uses_find(address);
    if (life)
        atomic_fetch_or_explicit(&life->flags, flags, memory_order_relaxed);
}

void ms_uses_launched(uint64_t number, bool is_graph, bool read)
{
    struct ms_uses *uses = counts();
    atomic_fetch_add_explicit(is_graph ? &uses->graph_launches : &uses->launches, 1, memory_order_relaxed);
    raise(is_graph ? &uses->last_graph : &uses->last_launch, number);
    if (!read)
        atomic_fetch_add_explicit(&uses->unread, 1, memory_order_relaxed);
    bring(uses);
}

void ms_uses_no_layouts(void)
{
    struct ms_uses *uses = counts();
    uses_put(&uses->no_layouts, 1);
    bring(uses);
}

/* --- the report ----------------------------------------------------------------------------------------- */

/* Uses go on meanwhile: one that only its last number has is its first as well. */
static void copy_life(struct ms_lifetime *copy, struct ms_lifetime *life)
{
    uint64_t ended = atomic_load_explicit(&life->ended, memory_order_acquire), first = get(&life->first);
    *copy = (struct ms_lifetime){.state = 1,
                                 .site = life->site,
                                 .address = life->address,
                                 .bytes = life->bytes,
                                 .born = life->born,
                                 .unread = life->unread,
                                 .device = life->device,
                                 .kind = life->kind};
    uses_put(&copy->ended, ended);
    uses_put(&copy->last, get(&life->last));
    uses_put(&copy->first, first ? first : get(&copy->last));
    raise(&copy->last, first);
    uses_put(&copy->reach, get(&life->reach));
    atomic_store_explicit(&copy->flags, atomic_load_explicit(&life->flags, memory_order_relaxed),
                          memory_order_relaxed);
}

void ms_uses_copy(struct ms_lives_told *told)
{
    uint64_t rows = ms_table_rows(MS_TABLE_LIVES);
    void *memory;
    memset(told, 0, sizeof *told);
    if (!ms_table_rows(MS_TABLE_USES))
        return;
    copy_counts(&told->all, MS_ROWS(USES, struct ms_uses));
    told->bytes = (rows + 1) * sizeof *told->lives;
    memory =
        mmap(NULL, told->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        told->all.left_out += rows;
        return;
    }
    told->lives = memory;
    for (uint64_t i = 0; i < rows; i++) {
        struct ms_lifetime *life = life_at((uint32_t)i);
        if (atomic_load_explicit(&life->state, memory_order_acquire) == 1)
            copy_life(&told->lives[told->count++], life);
    }
    for (uint64_t i = 0; i < told->count; i++) {
        if (!get(&told->lives[i].ended))
            uses_settle(&told->lives[i], &told->all);
    }
}

void ms_uses_release(struct ms_lives_told *told)
{
    if (told->lives)
        munmap(told->lives, told->bytes);
    memset(told, 0, sizeof *told);
}

/* A process that was killed in a use, or in a free, had written one number of two. */
static void mend(struct ms_lifetime *life)
{
    uint64_t last = get(&life->last);
    if (last && !get(&life->first))
        uses_put(&life->first, last);
}

/* A file may say anything. What cannot be is no life, and counts among those without one: without it the
 * peak would be counted anew as if the block had never been. */
void ms_uses_clean(void)
{
    uint64_t dropped = 0;
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_LIVES); i++) {
        struct ms_lifetime *life = life_at((uint32_t)i);
        mend(life);
        uint64_t first = get(&life->first), last = get(&life->last), ended = get(&life->ended);
        bool sound = life->kind < MS_KIND_COUNT && !ms_device_is_inner(life->device) &&
                     life->bytes <= INT64_MAX / MS_TABLE_LIVES_ROWS && life->born && life->born < INT64_MAX &&
                     first <= last && (!first == !last) && (!first || first > life->born) &&
                     last < INT64_MAX && (!ended || (ended > life->born && ended > last)) &&
                     ended < INT64_MAX;
        if (!sound && atomic_exchange(&life->state, 0) == 1)
            dropped++;
        if (get(&life->reach) > life->bytes)
            uses_put(&life->reach, life->bytes);
    }
    for (unsigned i = 0; ms_table_rows(MS_TABLE_USES) && i < sizeof(struct ms_uses) / sizeof(uint64_t); i++) {
        _Atomic uint64_t *value = &MS_ROWS(USES, _Atomic uint64_t)[i];
        if (get(value) > INT64_MAX)
            uses_put(value, INT64_MAX);
    }
    if (dropped && ms_table_rows(MS_TABLE_USES) &&
        get(&MS_ROWS(USES, struct ms_uses)->left_out) < INT64_MAX - dropped)
        atomic_fetch_add(&MS_ROWS(USES, struct ms_uses)->left_out, dropped);
}
