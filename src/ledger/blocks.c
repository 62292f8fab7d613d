/* blocks.c - the live blocks: a hash map in shards, each with its own lock.
 *
 * Floor 2. A shard's index (open addressing, linear probing, no tombstones: a removal moves its successors
 * up) holds numbers of slots; the slots are chunks that double in size, with a free list, so that nothing is
 * copied as it grows.
 *
 * Invariants: a shard's index holds exactly its `count` live slots, at most three quarters full; a block's
 * account was told of it under the shard's lock. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "ledger/internal.h"

enum { CHUNK_START = 16, CHUNKS_MAX = 22, INDEX_START = 32, SHARD_BITS = 6 };
_Static_assert(1 << SHARD_BITS == MS_SHARDS, "a shard's number is the top bits of the hash");

struct MS_CACHELINE shard {
    struct ms_lock lock;
    uint32_t count;     /* live blocks */
    uint32_t used;      /* slots ever given out */
    uint32_t free_list; /* slot + 1, linked through `site` of the free slots */
    uint32_t mask;
    uint32_t *index; /* slot + 1; 0 is empty */
    struct ms_block *chunks[CHUNKS_MAX];
};

static struct shard shards[MS_SHARDS] = {[0 ... MS_SHARDS - 1] = {.lock = MS_LOCK_INIT(MS_RANK_BLOCKS)}};
static _Atomic uint64_t dropped, replaced;

static uint64_t hash(unsigned space, uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)space << 61) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

static struct shard *shard_of(uint64_t h)
{
    return &shards[h >> (64 - SHARD_BITS)];
}

/* Chunk k holds CHUNK_START << k slots, from CHUNK_START * (2^k - 1) on. */
static struct ms_block *slot_at(const struct shard *shard, uint32_t slot)
{
    unsigned k = 31 - (unsigned)__builtin_clz(slot / CHUNK_START + 1);
    return &shard->chunks[k][slot - CHUNK_START * ((1u << k) - 1)];
}

/* Place in the index of the block with this key, or of the empty place where it would go. */
static uint32_t probe(const struct shard *shard, uint64_t h, unsigned space, uint64_t key)
{
    uint32_t place = (uint32_t)h & shard->mask;
    for (; shard->index[place]; place = (place + 1) & shard->mask) {
        const struct ms_block *block = slot_at(shard, shard->index[place] - 1);
        if (block->key == key && block->space == space)
            break;
    }
    return place;
}

static bool make_room(struct shard *shard)
{
    if (shard->index && shard->count < shard->mask / 4 * 3)
        return true;
    uint32_t places = shard->index ? (shard->mask + 1) * 2 : INDEX_START;
    uint32_t *index = ms_arena_alloc(places * sizeof *index);
    if (!index)
        return false;
    for (uint32_t i = 0; shard->index && i <= shard->mask; i++) {
        if (!shard->index[i])
            continue;
        const struct ms_block *block = slot_at(shard, shard->index[i] - 1);
        uint32_t place = (uint32_t)hash(block->space, block->key) & (places - 1);
        while (index[place])
            place = (place + 1) & (places - 1);
        index[place] = shard->index[i];
    }
    shard->index = index;
    shard->mask = places - 1;
    return true;
}

/* A free slot + 1, or 0 when there is no memory for one. */
static uint32_t take_slot(struct shard *shard)
{
    if (shard->free_list) {
        uint32_t slot = shard->free_list;
        shard->free_list = slot_at(shard, slot - 1)->site;
        return slot;
    }
    unsigned k = 31 - (unsigned)__builtin_clz(shard->used / CHUNK_START + 1);
    if (k >= CHUNKS_MAX)
        return 0;
    if (!shard->chunks[k] &&
        (shard->chunks[k] = ms_arena_alloc(((size_t)CHUNK_START << k) * sizeof(struct ms_block))) == NULL)
        return 0;
    return ++shard->used;
}

/* Empties a place and closes the gap: whatever could not be at its home because of it moves up. */
static void remove_place(struct shard *shard, uint32_t place)
{
    uint32_t slot = shard->index[place];
    slot_at(shard, slot - 1)->site = shard->free_list;
    shard->free_list = slot;
    shard->count--;
    uint32_t gap = place;
    for (uint32_t next = (gap + 1) & shard->mask; shard->index[next]; next = (next + 1) & shard->mask) {
        const struct ms_block *block = slot_at(shard, shard->index[next] - 1);
        uint32_t home = (uint32_t)hash(block->space, block->key) & shard->mask;
        if (((next - home) & shard->mask) < ((next - gap) & shard->mask))
            continue;
        shard->index[gap] = shard->index[next];
        gap = next;
    }
    shard->index[gap] = 0;
}

/* Under the shard's lock; `block` is complete. False if there was no room. */
static bool insert(struct shard *shard, uint64_t h, const struct ms_block *block)
{
    if (!make_room(shard))
        return false;
    uint32_t place = probe(shard, h, block->space, block->key);
    if (shard->index[place]) { /* its free was never seen */
        ms_account_remove(slot_at(shard, shard->index[place] - 1), MS_BLOCK_UNSEEN, block->born_ns);
        remove_place(shard, place);
        atomic_fetch_add_explicit(&replaced, 1, memory_order_relaxed);
        place = probe(shard, h, block->space, block->key);
    }
    uint32_t slot = take_slot(shard);
    if (!slot)
        return false;
    *slot_at(shard, slot - 1) = *block;
    shard->index[place] = slot;
    shard->count++;
    return true;
}

void ms_ledger_alloc(const struct ms_block *new_block)
{
    struct ms_block block = *new_block;
    uint64_t h = hash(block.space, block.key);
    struct shard *shard = shard_of(h);
    ms_events_touch();
    block.born_ns = ms_ledger_now();
    ms_lock(&shard->lock);
    block.site = 0;
    if (insert(shard, h, &block)) {
        struct ms_block *slot = slot_at(shard, shard->index[probe(shard, h, block.space, block.key)] - 1);
        slot->site = ms_account_add(&block);
    } else {
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
    }
    ms_unlock(&shard->lock);
}

bool ms_ledger_free_begin(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = hash(space, key);
    struct shard *shard = shard_of(h);
    uint64_t now_ns = ms_ledger_now();
    bool found = false;
    ms_lock(&shard->lock);
    uint32_t place = shard->index ? probe(shard, h, space, key) : 0;
    if (shard->index && shard->index[place]) {
        *block_p = *slot_at(shard, shard->index[place] - 1);
        block_p->freed_ns = now_ns;
        remove_place(shard, place);
        ms_account_remove(block_p, MS_BLOCK_FREED, now_ns);
        found = true;
    }
    ms_unlock(&shard->lock);
    return found;
}

void ms_ledger_free_commit(const struct ms_block *block)
{
    (void)block; /* the free was counted when it began */
}

void ms_ledger_free_abort(const struct ms_block *block)
{
    uint64_t h = hash(block->space, block->key);
    struct shard *shard = shard_of(h);
    ms_lock(&shard->lock);
    if (insert(shard, h, block))
        ms_account_restore(block);
    else
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
    ms_unlock(&shard->lock);
}

bool ms_ledger_find(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = hash(space, key);
    struct shard *shard = shard_of(h);
    bool found = false;
    ms_lock(&shard->lock);
    uint32_t place = shard->index ? probe(shard, h, space, key) : 0;
    if (shard->index && shard->index[place]) {
        *block_p = *slot_at(shard, shard->index[place] - 1);
        found = true;
    }
    ms_unlock(&shard->lock);
    return found;
}

static bool dies_with(const struct ms_block *block, uint64_t context)
{
    return block->context == context && !block->outlives_context;
}

/* Slots are visited by number, for removing one moves places of the index. */
static void context_died_in(struct shard *shard, uint64_t context, struct ms_context_died *death)
{
    for (uint32_t place = 0; shard->index && place <= shard->mask;) {
        uint32_t slot = shard->index[place];
        struct ms_block *block = slot ? slot_at(shard, slot - 1) : NULL;
        if (!block || !dies_with(block, context)) {
            place++;
            continue;
        }
        if (ms_kind_is_device(block->kind)) {
            death->bytes += block->bytes;
            death->count++;
            death->device = block->device;
        }
        ms_account_remove(block, MS_BLOCK_DIED, death->t_ns);
        remove_place(shard, place); /* what moved into this place is next */
    }
}

void ms_ledger_context_died(uint64_t context)
{
    struct ms_context_died death = {.context = context, .t_ns = ms_ledger_now(), .device = MS_DEVICE_NONE};
    for (unsigned i = 0; i < MS_SHARDS; i++) {
        ms_lock(&shards[i].lock);
        context_died_in(&shards[i], context, &death);
        ms_unlock(&shards[i].lock);
    }
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

uint64_t ms_blocks_count(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < MS_SHARDS; i++)
        count += shards[i].count;
    return count;
}

void ms_blocks_each(void (*visit)(void *arg, const struct ms_block *block), void *arg)
{
    for (unsigned i = 0; i < MS_SHARDS; i++) {
        const struct shard *shard = &shards[i];
        for (uint32_t place = 0; shard->index && place <= shard->mask; place++) {
            if (shard->index[place])
                visit(arg, slot_at(shard, shard->index[place] - 1));
        }
    }
}

uint64_t ms_blocks_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

uint64_t ms_blocks_replaced(void)
{
    return atomic_load_explicit(&replaced, memory_order_relaxed);
}

void ms_blocks_reset(void)
{
    memset((void *)shards, 0, sizeof shards);
    for (unsigned i = 0; i < MS_SHARDS; i++)
        shards[i].lock.rank = MS_RANK_BLOCKS;
    for (unsigned i = 0; i < MS_SHARDS; i++)
        ms_lock_reset(&shards[i].lock);
    atomic_store_explicit(&dropped, 0, memory_order_relaxed);
    atomic_store_explicit(&replaced, 0, memory_order_relaxed);
}
