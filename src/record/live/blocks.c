/* blocks.c - the live blocks that are found by their key, through a hash map in stripes. Those of the pool,
 * which finds them itself, come and go in accounts.c.
 *
 * Floor 2. A stripe's index (open addressing, linear probing, no tombstones: a removal moves its successors
 * up) holds the number of a row and half of its key's hash, so that probing touches no other row. The index
 * is this process's own: who reads the file goes through the rows. Locks: the stripe's (MS_RANK_BLOCKS),
 * with the account's inside it.
 *
 * Invariant: a stripe's index holds exactly its `count` live rows, at most three quarters full. */
#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "record/footprint/balance.h"
#include "record/live/inner.h"
#include "record/live/invalid_frees.h"
#include "record/file/process.h"
#include "record/file/trace.h"

enum { INDEX_START = 32, STRIPE_BITS = 6 };
_Static_assert(1 << STRIPE_BITS == MS_STRIPES, "a shard's number is the top bits of the hash");

struct entry {
    uint32_t row;  /* + 1; 0 is empty */
    uint32_t hash; /* the lower half, which places it */
};

struct MS_CACHELINE stripe {
    struct ms_lock lock;
    uint32_t count; /* live blocks */
    uint32_t mask;
    struct entry *index;
};

static struct stripe stripes[MS_STRIPES] = {[0 ... MS_STRIPES - 1] = {.lock = MS_LOCK_INIT(MS_RANK_BLOCKS)}};

atomic_bool ms_blocks_reported;
static void (*tell)(uint64_t late_frees);

static uint64_t blocks_hash(unsigned space, uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)space << 61) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

static struct stripe *stripe_of(uint64_t h)
{
    return &stripes[h >> (64 - STRIPE_BITS)];
}

/* The line that a probe will begin with is on its way while the clock is read and locks are taken; whether
 * the index is the latest does not matter for that. */
static MS_UNSYNCHRONIZED void expect(const struct stripe *stripe, uint64_t h)
{
    if (stripe->index)
        __builtin_prefetch(&stripe->index[(uint32_t)h & stripe->mask], 1);
}

/* Place in the index of the block with this key, or of the empty place where it would go. */
static uint32_t probe(const struct stripe *stripe, uint64_t h, unsigned space, uint64_t key)
{
    uint32_t place = (uint32_t)h & stripe->mask;
    for (; stripe->index[place].row; place = (place + 1) & stripe->mask) {
        if (stripe->index[place].hash != (uint32_t)h)
            continue;
        const struct ms_block_row *row = ms_block_row_at(stripe->index[place].row - 1);
        if (row->key == key && ms_block_row_space(row) == space)
            break;
    }
    return place;
}

static bool blocks_make_room(struct stripe *stripe)
{
    if (stripe->index && stripe->count < stripe->mask / 4 * 3)
        return true;
    uint32_t places = stripe->index ? (stripe->mask + 1) * 2 : INDEX_START;
    struct entry *index = ms_arena_alloc(places * sizeof *index);
    if (!index)
        return false;
    for (uint32_t i = 0; stripe->index && i <= stripe->mask; i++) {
        if (!stripe->index[i].row)
            continue;
        uint32_t place = stripe->index[i].hash & (places - 1);
        while (index[place].row)
            place = (place + 1) & (places - 1);
        index[place] = stripe->index[i];
    }
    stripe->index = index;
    stripe->mask = places - 1;
    return true;
}

/* Empties a place and closes the gap: whatever could not be at its home because of it moves up. */
static void remove_place(struct stripe *stripe, uint32_t place)
{
    uint32_t gap = place;
    for (uint32_t next = (gap + 1) & stripe->mask; stripe->index[next].row;
         next = (next + 1) & stripe->mask) {
        uint32_t home = stripe->index[next].hash & stripe->mask;
        if (((next - home) & stripe->mask) < ((next - gap) & stripe->mask))
            continue;
        stripe->index[gap] = stripe->index[next];
        gap = next;
    }
    stripe->index[gap].row = 0;
    stripe->count--;
}

/* Takes out the block at `place`, which ended as `end` says. */
static void blocks_end_block(struct stripe *stripe, uint32_t place, enum ms_block_end end, uint64_t now_ns,
                             struct ms_block *block_p)
{
    uint32_t record_id = stripe->index[place].row;
    const struct ms_block_row *row = ms_block_row_at(record_id - 1);
    remove_place(stripe, place);
    ms_balance_unfollow(row, now_ns);
    ms_account_remove(record_id, ms_block_row_space(row), row->key, false, 0, end, now_ns, block_p);
}

/* The place of a block that comes, in an index with room for it. False without memory. */
static bool blocks_find_place(struct stripe *stripe, uint64_t h, const struct ms_block *block,
                              uint64_t now_ns, uint32_t *place_p)
{
    if (!blocks_make_room(stripe)) {
        ms_table_drop(MS_TABLE_BLOCKS);
        return false;
    }
    *place_p = probe(stripe, h, block->space, block->key);
    if (MS_UNLIKELY(stripe->index[*place_p].row)) { /* its free was never seen */
        blocks_end_block(stripe, *place_p, MS_BLOCK_UNSEEN, now_ns, NULL);
        atomic_fetch_add_explicit(&ms_process()->replaced_blocks, 1, memory_order_relaxed);
        *place_p = probe(stripe, h, block->space, block->key);
    }
    return true;
}

static void blocks_put(struct stripe *stripe, uint64_t h, uint32_t place, uint32_t record_id, uint64_t now_ns)
{
    if (!record_id)
        return;
    stripe->index[place] = (struct entry){record_id, (uint32_t)h};
    stripe->count++;
    ms_balance_follow(ms_block_row_at(record_id - 1), now_ns);
}

void ms_ledger_alloc(const struct ms_block *block)
{
    uint64_t h = blocks_hash(block->space, block->key), now_ns;
    struct stripe *stripe = stripe_of(h);
    uint32_t place;
    expect(stripe, h);
    now_ns = ms_ledger_now();
    ms_events_touch();
    ms_lock(&stripe->lock);
    if (MS_LIKELY(blocks_find_place(stripe, h, block, now_ns, &place)))
        blocks_put(stripe, h, place, ms_account_add(block, now_ns), now_ns);
    ms_unlock(&stripe->lock);
    ms_trace_write_due();
}

void ms_blocks_count_late(void)
{
    uint64_t before = atomic_fetch_add_explicit(&ms_process()->late_frees, 1, memory_order_relaxed);
    if (tell)
        tell(before + 1);
}

static MS_INLINE bool free_begin(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = blocks_hash(space, key);
    struct stripe *stripe = stripe_of(h);
    bool found = false;
    expect(stripe, h);
    uint64_t now_ns = ms_ledger_now();
    ms_lock(&stripe->lock);
    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;
    if (stripe->index && stripe->index[place].row) {
        blocks_end_block(stripe, place, MS_BLOCK_FREED, now_ns, block_p);
        found = true;
    }
    ms_unlock(&stripe->lock);
    ms_trace_write_due();
    ms_blocks_look_if_late(found);
    return found;
}

static MS_NOINLINE bool free_begin_with_pieces(uint64_t key, struct ms_block *block_p)
{
    struct ms_block block;
    bool found = free_begin(MS_SPACE_ADDRESS, key, &block);
    if (found)
        ms_inner_end_within(&block);
    if (found && block_p)
        *block_p = block;
    return found;
}

bool ms_ledger_free_begin(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    return space == MS_SPACE_ADDRESS && ms_slow_path(MS_SLOW_PATH_INNER)
               ? free_begin_with_pieces(key, block_p)
               : free_begin(space, key, block_p);
}

void ms_ledger_reported(void (*tell_func)(uint64_t late_frees))
{
    tell = tell_func;
    atomic_store_explicit(&ms_blocks_reported, true, memory_order_release);
    ms_slow_path_set(MS_SLOW_PATH_REPORTED);
}

void ms_ledger_free_abort(const struct ms_block *block)
{
    uint64_t h = blocks_hash(block->space, block->key), now_ns = ms_ledger_now();
    struct stripe *stripe = stripe_of(h);
    uint32_t place;
    ms_lock(&stripe->lock);
    if (blocks_find_place(stripe, h, block, now_ns, &place))
        blocks_put(stripe, h, place, ms_account_restore(block, 0), now_ns);
    ms_unlock(&stripe->lock);
    ms_trace_write_due();
}

bool ms_ledger_resize(enum ms_space space, uint64_t key, uint64_t bytes)
{
    uint64_t h = blocks_hash(space, key), now_ns = ms_ledger_now();
    struct stripe *stripe = stripe_of(h);
    struct ms_block block;
    ms_lock(&stripe->lock);
    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;
    bool found = stripe->index && stripe->index[place].row;
    if (found) {
        blocks_end_block(stripe, place, MS_BLOCK_FREED, now_ns, &block);
        uint64_t grown_bytes = bytes > block.bytes ? bytes - block.bytes : 0;
        block.bytes = block.requested = bytes;
        place = probe(stripe, h, space, key);
        blocks_put(stripe, h, place, ms_account_restore(&block, grown_bytes), now_ns);
    }
    ms_unlock(&stripe->lock);
    ms_trace_write_due();
    return found;
}

bool ms_ledger_name(enum ms_space space, uint64_t key, uint32_t name)
{
    uint64_t h = blocks_hash(space, key);
    struct stripe *stripe = stripe_of(h);
    ms_lock(&stripe->lock);
    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;
    bool found = stripe->index && stripe->index[place].row;
    if (found)
        ms_block_row_at(stripe->index[place].row - 1)->stream = name;
    ms_unlock(&stripe->lock);
    return found;
}

bool ms_ledger_find(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = blocks_hash(space, key);
    struct stripe *stripe = stripe_of(h);
    bool found = false;
    ms_lock(&stripe->lock);
    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;
    if (stripe->index && stripe->index[place].row) {
        ms_block_row_read(ms_block_row_at(stripe->index[place].row - 1), block_p);
        found = true;
    }
    ms_unlock(&stripe->lock);
    return found;
}

/* Also looked at without a lock, to be looked at again with it. A heap's pieces are freed with it, blocks die
 * with their context. */
static MS_UNSYNCHRONIZED bool ends_with(const struct ms_block_row *row, uint64_t context,
                                        enum ms_block_end end)
{
    return ms_block_row_is_live(row) && row->context == context &&
           (end == MS_BLOCK_FREED ? ms_block_row_kind(row) == MS_KIND_INNER
                                  : !(row->tags & MS_BLOCK_ROW_OUTLIVES));
}

/* Looks again under the locks: the block may have been freed meanwhile, and its row used again. */
static MS_UNSYNCHRONIZED bool end_with_context(uint32_t record_id, uint64_t context, enum ms_block_end end,
                                               uint64_t now_ns, struct ms_block *block_p)
{
    const struct ms_block_row *row = ms_block_row_at(record_id - 1);
    unsigned space = ms_block_row_space(row);
    uint64_t key = row->key, h = blocks_hash(space, key);
    struct stripe *stripe = stripe_of(h);
    if (row->tags & MS_BLOCK_ROW_SERVED)
        return ms_account_remove(record_id, space, key, true, context, end, now_ns, block_p);
    ms_lock(&stripe->lock);
    uint32_t place = stripe->index ? probe(stripe, h, space, key) : 0;
    bool ends = stripe->index && stripe->index[place].row == record_id && ends_with(row, context, end);
    if (ends)
        blocks_end_block(stripe, place, end, now_ns, block_p);
    ms_unlock(&stripe->lock);
    return ends;
}

void ms_ledger_heap_ended(uint64_t context)
{
    uint32_t rows = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS);
    uint64_t now_ns = ms_ledger_now();
    for (uint32_t record_id = 1; record_id <= rows; record_id++) {
        if (ends_with(ms_block_row_at(record_id - 1), context, MS_BLOCK_FREED) &&
            end_with_context(record_id, context, MS_BLOCK_FREED, now_ns, NULL))
            ms_trace_write_due();
    }
}

void ms_ledger_context_died(uint64_t context)
{
    struct ms_context_died death = {.context = context, .t_ns = ms_ledger_now(), .device = MS_DEVICE_NONE};
    uint32_t rows = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS);
    bool any = false;
    for (uint32_t record_id = 1; record_id <= rows; record_id++) {
        struct ms_block block;
        if (!ends_with(ms_block_row_at(record_id - 1), context, MS_BLOCK_DIED) ||
            !end_with_context(record_id, context, MS_BLOCK_DIED, death.t_ns, &block))
            continue;
        any = true;
        if (ms_slow_path(MS_SLOW_PATH_INNER))
            ms_inner_end_within(&block);
        if (!ms_kind_is_device(block.kind))
            continue;
        ms_trace_write_due();
        death.bytes += block.bytes;
        death.count++;
        death.device = block.device;
    }
    if (any)
        ms_invalid_frees_forget(death.t_ns);
    if (death.count)
        ms_events_context_died(&death);
}

/* Which stripes ms_blocks_lock_all got; only the report's thread uses it. */
static uint64_t locked;

bool ms_blocks_lock_all(unsigned timeout_ms)
{
    bool all = true;
    locked = 0;
    for (unsigned i = 0; i < MS_STRIPES; i++) {
        if (ms_lock_within(&stripes[i].lock, timeout_ms)) {
            locked |= UINT64_C(1) << i;
        } else {
            all = false;
            timeout_ms = 0; /* the wait is paid once */
        }
    }
    return all;
}

void ms_blocks_unlock_all(void)
{
    for (unsigned i = MS_STRIPES; i-- > 0;) {
        if (locked & UINT64_C(1) << i)
            ms_unlock(&stripes[i].lock);
    }
}

uint64_t ms_blocks_replaced(void)
{
    return atomic_load_explicit(&ms_process()->replaced_blocks, memory_order_relaxed);
}

static void blocks_reset(void)
{
    atomic_store_explicit(&ms_blocks_reported, false, memory_order_relaxed);
    ms_slow_path_clear(MS_SLOW_PATH_REPORTED);
    memset((void *)stripes, 0, sizeof stripes);
    for (unsigned i = 0; i < MS_STRIPES; i++) {
        stripes[i].lock.rank = MS_RANK_BLOCKS;
        ms_lock_reset(&stripes[i].lock);
    }
}
MS_AT_FORK(MS_FORK_RECORD, blocks_reset);
