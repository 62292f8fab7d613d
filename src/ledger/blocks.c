/* blocks.c - the live blocks that are found by their key, through a hash map in shards. Those of the pool,
 * which finds them itself, come and go in accounts.c.
 *
 * Floor 2. A shard's index (open addressing, linear probing, no tombstones: a removal moves its successors
 * up) holds the number of a slot and half of its key's hash, so that probing touches no other slot. The index
 * is this process's own: who reads the file goes through the slots. Locks: the shard's (MS_RANK_BLOCKS), with
 * the account's inside it.
 *
 * Invariant: a shard's index holds exactly its `count` live slots, at most three quarters full. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "ledger/balance.h"
#include "ledger/misfrees.h"
#include "ledger/process.h"
#include "ledger/trace.h"

enum { INDEX_START = 32, SHARD_BITS = 6 };
_Static_assert(1 << SHARD_BITS == MS_SHARDS, "a shard's number is the top bits of the hash");

struct entry {
    uint32_t slot; /* + 1; 0 is empty */
    uint32_t hash; /* the lower half, which places it */
};

struct MS_CACHELINE shard {
    struct ms_lock lock;
    uint32_t count; /* live blocks */
    uint32_t mask;
    struct entry *index;
};

static struct shard shards[MS_SHARDS] = {[0 ... MS_SHARDS - 1] = {.lock = MS_LOCK_INIT(MS_RANK_BLOCKS)}};

atomic_bool ms_blocks_reported;
static void (*tell)(uint64_t late_frees);

static uint64_t hash(unsigned space, uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)space << 61) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

static struct shard *shard_of(uint64_t h)
{
    return &shards[h >> (64 - SHARD_BITS)];
}

/* The line that a probe will begin with is on its way while the clock is read and locks are taken; whether
 * the index is the latest does not matter for that. */
static MS_UNSYNCHRONIZED void expect(const struct shard *shard, uint64_t h)
{
    if (shard->index)
        __builtin_prefetch(&shard->index[(uint32_t)h & shard->mask], 1);
}

/* Place in the index of the block with this key, or of the empty place where it would go. */
static uint32_t probe(const struct shard *shard, uint64_t h, unsigned space, uint64_t key)
{
    uint32_t place = (uint32_t)h & shard->mask;
    for (; shard->index[place].slot; place = (place + 1) & shard->mask) {
        if (shard->index[place].hash != (uint32_t)h)
            continue;
        const struct ms_block_row *slot = ms_block_row_at(shard->index[place].slot - 1);
        if (slot->key == key && ms_block_row_space(slot) == space)
            break;
    }
    return place;
}

static bool make_room(struct shard *shard)
{
    if (shard->index && shard->count < shard->mask / 4 * 3)
        return true;
    uint32_t places = shard->index ? (shard->mask + 1) * 2 : INDEX_START;
    struct entry *index = ms_arena_alloc(places * sizeof *index);
    if (!index)
        return false;
    for (uint32_t i = 0; shard->index && i <= shard->mask; i++) {
        if (!shard->index[i].slot)
            continue;
        uint32_t place = shard->index[i].hash & (places - 1);
        while (index[place].slot)
            place = (place + 1) & (places - 1);
        index[place] = shard->index[i];
    }
    shard->index = index;
    shard->mask = places - 1;
    return true;
}

/* Empties a place and closes the gap: whatever could not be at its home because of it moves up. */
static void remove_place(struct shard *shard, uint32_t place)
{
    uint32_t gap = place;
    for (uint32_t next = (gap + 1) & shard->mask; shard->index[next].slot; next = (next + 1) & shard->mask) {
        uint32_t home = shard->index[next].hash & shard->mask;
        if (((next - home) & shard->mask) < ((next - gap) & shard->mask))
            continue;
        shard->index[gap] = shard->index[next];
        gap = next;
    }
    shard->index[gap].slot = 0;
    shard->count--;
}

/* Takes out the block at `place`, which ended as `end` says. */
static void end_block(struct shard *shard, uint32_t place, enum ms_block_end end, uint64_t now_ns,
                      struct ms_block *block_p)
{
    uint32_t ticket = shard->index[place].slot;
    const struct ms_block_row *slot = ms_block_row_at(ticket - 1);
    remove_place(shard, place);
    ms_balance_unfollow(slot, now_ns);
    ms_account_remove(ticket, ms_block_row_space(slot), slot->key, false, 0, end, now_ns, block_p);
}

/* The place of a block that comes, in an index with room for it. False without memory. */
static bool find_place(struct shard *shard, uint64_t h, const struct ms_block *block, uint64_t now_ns,
                       uint32_t *place_p)
{
    if (!make_room(shard)) {
        ms_table_drop(MS_TABLE_BLOCKS);
        return false;
    }
    *place_p = probe(shard, h, block->space, block->key);
    if (MS_UNLIKELY(shard->index[*place_p].slot)) { /* its free was never seen */
        end_block(shard, *place_p, MS_BLOCK_UNSEEN, now_ns, NULL);
        atomic_fetch_add_explicit(&ms_process()->replaced_blocks, 1, memory_order_relaxed);
        *place_p = probe(shard, h, block->space, block->key);
    }
    return true;
}

static void put(struct shard *shard, uint64_t h, uint32_t place, uint32_t ticket, uint64_t now_ns)
{
    if (!ticket)
        return;
    shard->index[place] = (struct entry){ticket, (uint32_t)h};
    shard->count++;
    ms_balance_follow(ms_block_row_at(ticket - 1), now_ns);
}

void ms_ledger_alloc(const struct ms_block *block)
{
    uint64_t h = hash(block->space, block->key), now_ns;
    struct shard *shard = shard_of(h);
    uint32_t place;
    expect(shard, h);
    now_ns = ms_ledger_now();
    ms_events_touch();
    ms_lock(&shard->lock);
    if (MS_LIKELY(find_place(shard, h, block, now_ns, &place)))
        put(shard, h, place, ms_account_add(block, now_ns), now_ns);
    ms_unlock(&shard->lock);
    ms_trace_look();
}

void ms_blocks_count_late(void)
{
    uint64_t before = atomic_fetch_add_explicit(&ms_process()->late_frees, 1, memory_order_relaxed);
    if (tell)
        tell(before + 1);
}

bool ms_ledger_free_begin(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = hash(space, key);
    struct shard *shard = shard_of(h);
    bool found = false;
    expect(shard, h);
    uint64_t now_ns = ms_ledger_now();
    ms_lock(&shard->lock);
    uint32_t place = shard->index ? probe(shard, h, space, key) : 0;
    if (shard->index && shard->index[place].slot) {
        end_block(shard, place, MS_BLOCK_FREED, now_ns, block_p);
        found = true;
    }
    ms_unlock(&shard->lock);
    ms_trace_look();
    ms_blocks_look_if_late(found);
    return found;
}

void ms_ledger_reported(void (*tell_func)(uint64_t late_frees))
{
    tell = tell_func;
    atomic_store_explicit(&ms_blocks_reported, true, memory_order_release);
    ms_unusual_set(MS_UNUSUAL_REPORTED);
}

void ms_ledger_free_abort(const struct ms_block *block)
{
    uint64_t h = hash(block->space, block->key), now_ns = ms_ledger_now();
    struct shard *shard = shard_of(h);
    uint32_t place;
    ms_lock(&shard->lock);
    if (find_place(shard, h, block, now_ns, &place))
        put(shard, h, place, ms_account_restore(block), now_ns);
    ms_unlock(&shard->lock);
    ms_trace_look();
}

bool ms_ledger_find(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = hash(space, key);
    struct shard *shard = shard_of(h);
    bool found = false;
    ms_lock(&shard->lock);
    uint32_t place = shard->index ? probe(shard, h, space, key) : 0;
    if (shard->index && shard->index[place].slot) {
        ms_block_row_read(ms_block_row_at(shard->index[place].slot - 1), block_p);
        found = true;
    }
    ms_unlock(&shard->lock);
    return found;
}

/* Also looked at without a lock, to be looked at again with it. */
static MS_UNSYNCHRONIZED bool dies_with(const struct ms_block_row *slot, uint64_t context)
{
    return ms_block_row_is_live(slot) && slot->context == context && !(slot->tags & MS_BLOCK_ROW_OUTLIVES);
}

/* Looks again under the locks: the block may have been freed meanwhile, and its slot used again. */
static MS_UNSYNCHRONIZED bool end_with_context(uint32_t ticket, uint64_t context, uint64_t now_ns,
                                               struct ms_block *block_p)
{
    const struct ms_block_row *slot = ms_block_row_at(ticket - 1);
    unsigned space = ms_block_row_space(slot);
    uint64_t key = slot->key, h = hash(space, key);
    struct shard *shard = shard_of(h);
    if (slot->tags & MS_BLOCK_ROW_SERVED)
        return ms_account_remove(ticket, space, key, true, context, MS_BLOCK_DIED, now_ns, block_p);
    ms_lock(&shard->lock);
    uint32_t place = shard->index ? probe(shard, h, space, key) : 0;
    bool dies = shard->index && shard->index[place].slot == ticket && dies_with(slot, context);
    if (dies)
        end_block(shard, place, MS_BLOCK_DIED, now_ns, block_p);
    ms_unlock(&shard->lock);
    return dies;
}

void ms_ledger_context_died(uint64_t context)
{
    struct ms_context_died death = {.context = context, .t_ns = ms_ledger_now(), .device = MS_DEVICE_NONE};
    uint32_t slots = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS);
    bool any = false;
    for (uint32_t ticket = 1; ticket <= slots; ticket++) {
        struct ms_block block;
        if (!dies_with(ms_block_row_at(ticket - 1), context) ||
            !end_with_context(ticket, context, death.t_ns, &block))
            continue;
        any = true;
        if (!ms_kind_is_device(block.kind))
            continue;
        ms_trace_look();
        death.bytes += block.bytes;
        death.count++;
        death.device = block.device;
    }
    if (any)
        ms_misfrees_forget(death.t_ns);
    if (death.count)
        ms_events_context_died(&death);
}

/* Which shards ms_blocks_lock_all got; only the report's thread uses it. */
static uint64_t locked;

bool ms_blocks_lock_all(unsigned timeout_ms)
{
    bool all = true;
    locked = 0;
    for (unsigned i = 0; i < MS_SHARDS; i++) {
        if (ms_lock_within(&shards[i].lock, timeout_ms)) {
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
    for (unsigned i = MS_SHARDS; i-- > 0;) {
        if (locked & UINT64_C(1) << i)
            ms_unlock(&shards[i].lock);
    }
}

uint64_t ms_blocks_replaced(void)
{
    return atomic_load_explicit(&ms_process()->replaced_blocks, memory_order_relaxed);
}

void ms_blocks_reset(void)
{
    atomic_store_explicit(&ms_blocks_reported, false, memory_order_relaxed);
    ms_unusual_clear(MS_UNUSUAL_REPORTED);
    memset((void *)shards, 0, sizeof shards);
    for (unsigned i = 0; i < MS_SHARDS; i++) {
        shards[i].lock.rank = MS_RANK_BLOCKS;
        ms_lock_reset(&shards[i].lock);
    }
}
