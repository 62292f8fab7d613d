/* blocks.c - the live blocks: a table of slots, found through a hash map in shards.
 *
 * Floor 2. Slots are rows of the record; each shard takes some at a time and keeps those that were freed. A
 * shard's index (open addressing, linear probing, no tombstones: a removal moves its successors up) holds the
 * number of a slot and half of its key's hash, so that probing touches no other slot. The index is this
 * process's own: who reads the file goes through the slots.
 *
 * Invariants: a shard's index holds exactly its `count` live slots, at most three quarters full; a block's
 * account has counted it for as long as its slot says that it is live (a process may end at any instruction:
 * whatever the slots say is then in the totals). */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "ledger/process.h"
#include "ledger/trace.h"

enum { SLOTS_AT_ONCE = 16, INDEX_START = 32, SHARD_BITS = 6 };
_Static_assert(1 << SHARD_BITS == MS_SHARDS, "a shard's number is the top bits of the hash");

struct entry {
    uint32_t slot; /* + 1; 0 is empty */
    uint32_t hash; /* the lower half, which places it */
};

struct MS_CACHELINE shard {
    struct ms_lock lock;
    uint32_t count;            /* live blocks */
    uint32_t fresh, fresh_end; /* slots that were taken and not used yet */
    uint32_t free_list;        /* slot + 1, linked through `site` of the free slots */
    uint32_t mask;
    struct entry *index;
};

static struct shard shards[MS_SHARDS] = {[0 ... MS_SHARDS - 1] = {.lock = MS_LOCK_INIT(MS_RANK_BLOCKS)}};

static atomic_bool reported;
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

static struct ms_slot *slot_at(uint32_t slot)
{
    return &MS_ROWS(BLOCKS, struct ms_slot)[slot];
}

static unsigned space_of(const struct ms_slot *slot)
{
    return slot->tags >> 4 & 3;
}

/* Place in the index of the block with this key, or of the empty place where it would go. */
static uint32_t probe(const struct shard *shard, uint64_t h, unsigned space, uint64_t key)
{
    uint32_t place = (uint32_t)h & shard->mask;
    for (; shard->index[place].slot; place = (place + 1) & shard->mask) {
        if (shard->index[place].hash != (uint32_t)h)
            continue;
        const struct ms_slot *slot = slot_at(shard->index[place].slot - 1);
        if (slot->key == key && space_of(slot) == space)
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

/* A free slot + 1, or 0 when there is no memory for one. */
static uint32_t take_slot(struct shard *shard)
{
    if (shard->free_list) {
        uint32_t slot = shard->free_list;
        shard->free_list = slot_at(slot - 1)->site;
        return slot;
    }
    if (shard->fresh == shard->fresh_end) {
        uint64_t first;
        if (!ms_table_take(MS_TABLE_BLOCKS, SLOTS_AT_ONCE, &first))
            return 0;
        shard->fresh = (uint32_t)first;
        shard->fresh_end = shard->fresh + SLOTS_AT_ONCE;
    }
    return ++shard->fresh;
}

static void set_state(struct ms_slot *slot, unsigned state)
{
    uint32_t old = atomic_load_explicit(&slot->state, memory_order_relaxed);
    uint32_t uses = old / MS_SLOT_STATES + (state == MS_SLOT_CHANGING);
    atomic_store_explicit(&slot->state, uses * MS_SLOT_STATES + state, memory_order_release);
}

/* Everything but the site and the state, which comes last. */
static void fill_slot(struct ms_slot *slot, const struct ms_block *block)
{
    set_state(slot, MS_SLOT_CHANGING);
    atomic_thread_fence(memory_order_release);
    slot->key = block->key;
    slot->bytes = block->bytes;
    slot->requested = block->requested;
    slot->context = block->context;
    slot->stream = block->stream;
    slot->born_ns = block->born_ns;
    slot->thread = block->thread;
    slot->api = block->api;
    slot->device =
        ms_account_number(block->device) == MS_DEVICES_MAX ? MS_DEVICE_NONE : (int8_t)block->device;
    slot->tags = ms_slot_tags(block);
}

void ms_slot_read(const struct ms_slot *slot, struct ms_block *block_p)
{
    const struct ms_site *site = ms_site_at(slot->site);
    *block_p = (struct ms_block){
        .key = slot->key,
        .bytes = slot->bytes,
        .requested = slot->requested,
        .context = slot->context,
        .stream = slot->stream,
        .born_ns = slot->born_ns,
        .stack = site ? site->stack : 0,
        .site = slot->site,
        .thread = slot->thread,
        .device = slot->device,
        .api = slot->api,
        .space = (uint8_t)space_of(slot),
        .kind = slot->tags & 15,
        .outlives_context = slot->tags & MS_SLOT_OUTLIVES,
        .is_served = slot->tags & MS_SLOT_SERVED,
    };
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

/* The block in slot + 1 ended as `end` says; it is in no index any more. */
static void end_slot(struct shard *shard, uint32_t number, enum ms_block_end end, uint64_t now_ns,
                     struct ms_block *block_p)
{
    struct ms_slot *slot = slot_at(number - 1);
    ms_slot_read(slot, block_p);
    block_p->freed_ns = now_ns;
    ms_trace_free(number - 1, block_p);
    set_state(slot, MS_SLOT_FREE);
    slot->site = shard->free_list;
    shard->free_list = number;
    ms_account_remove(block_p, end, now_ns);
}

/* Takes out the block at `place`. */
static void end_block(struct shard *shard, uint32_t place, enum ms_block_end end, uint64_t now_ns,
                      struct ms_block *block_p)
{
    uint32_t number = shard->index[place].slot;
    remove_place(shard, place);
    end_slot(shard, number, end, now_ns, block_p);
}

static uint32_t number_of(const struct ms_slot *slot)
{
    return (uint32_t)(slot - MS_ROWS(BLOCKS, struct ms_slot));
}

/* A slot for `block`, filled but not live. Under the shard's lock. NULL if there was no room. */
static struct ms_slot *insert(struct shard *shard, uint64_t h, const struct ms_block *block)
{
    if (!make_room(shard))
        return NULL;
    uint32_t place = probe(shard, h, block->space, block->key);
    if (shard->index[place].slot) { /* its free was never seen */
        struct ms_block old;
        end_block(shard, place, MS_BLOCK_UNSEEN, block->born_ns, &old);
        atomic_fetch_add_explicit(&ms_process()->replaced_blocks, 1, memory_order_relaxed);
        place = probe(shard, h, block->space, block->key);
    }
    uint32_t slot = take_slot(shard);
    if (!slot)
        return NULL;
    fill_slot(slot_at(slot - 1), block);
    shard->index[place] = (struct entry){slot, (uint32_t)h};
    shard->count++;
    return slot_at(slot - 1);
}

void ms_ledger_alloc(const struct ms_block *new_block)
{
    struct ms_block block = *new_block;
    uint64_t h = hash(block.space, block.key);
    struct shard *shard = shard_of(h);
    ms_events_touch();
    block.born_ns = ms_ledger_now();
    ms_lock(&shard->lock);
    struct ms_slot *slot = insert(shard, h, &block);
    if (slot) {
        slot->site = ms_account_add(&block);
        set_state(slot, MS_SLOT_LIVE);
        ms_trace_alloc(number_of(slot), &block);
    } else {
        ms_table_drop(MS_TABLE_BLOCKS);
    }
    ms_unlock(&shard->lock);
    ms_trace_look();
}

/* A served block's slot is its shard's, like any other; the ticket takes the place of the index. */
uint32_t ms_ledger_serve(const struct ms_block *new_block)
{
    struct ms_block block = *new_block;
    struct shard *shard = shard_of(hash(block.space, block.key));
    block.is_served = true;
    ms_events_touch();
    block.born_ns = ms_ledger_now();
    ms_lock(&shard->lock);
    uint32_t ticket = take_slot(shard);
    if (ticket) {
        struct ms_slot *slot = slot_at(ticket - 1);
        fill_slot(slot, &block);
        slot->site = ms_account_add(&block);
        set_state(slot, MS_SLOT_LIVE);
        ms_trace_alloc(ticket - 1, &block);
    } else {
        ms_table_drop(MS_TABLE_BLOCKS);
    }
    ms_unlock(&shard->lock);
    ms_trace_look();
    return ticket;
}

static bool is_live(const struct ms_slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_acquire) % MS_SLOT_STATES == MS_SLOT_LIVE;
}

static void count_late(void)
{
    uint64_t before = atomic_fetch_add_explicit(&ms_process()->late_frees, 1, memory_order_relaxed);
    if (tell)
        tell(before + 1);
}

bool ms_ledger_free_begin(enum ms_space space, uint64_t key, struct ms_block *block_p)
{
    uint64_t h = hash(space, key);
    struct shard *shard = shard_of(h);
    uint64_t now_ns = ms_ledger_now();
    bool found = false;
    ms_lock(&shard->lock);
    uint32_t place = shard->index ? probe(shard, h, space, key) : 0;
    if (shard->index && shard->index[place].slot) {
        end_block(shard, place, MS_BLOCK_FREED, now_ns, block_p);
        found = true;
    }
    ms_unlock(&shard->lock);
    ms_trace_look();
    if (MS_UNLIKELY(atomic_load_explicit(&reported, memory_order_relaxed)) && found)
        count_late();
    return found;
}

bool ms_ledger_unserve(uint32_t ticket, uint64_t key, struct ms_block *block_p)
{
    struct shard *shard = shard_of(hash(MS_SPACE_ADDRESS, key));
    uint64_t now_ns = ms_ledger_now();
    struct ms_block block;
    bool found = false;
    if (!ticket || ticket > ms_table_rows(MS_TABLE_BLOCKS))
        return false;
    const struct ms_slot *slot = slot_at(ticket - 1);
    ms_lock(&shard->lock);
    if (is_live(slot) && slot->tags & MS_SLOT_SERVED && slot->key == key) {
        end_slot(shard, ticket, MS_BLOCK_FREED, now_ns, &block);
        found = true;
    }
    ms_unlock(&shard->lock);
    ms_trace_look();
    if (found && block_p)
        *block_p = block;
    if (MS_UNLIKELY(atomic_load_explicit(&reported, memory_order_relaxed)) && found)
        count_late();
    return found;
}

void ms_ledger_reported(void (*tell_func)(uint64_t late_frees))
{
    tell = tell_func;
    atomic_store_explicit(&reported, true, memory_order_release);
}

void ms_ledger_free_abort(const struct ms_block *block)
{
    uint64_t h = hash(block->space, block->key);
    struct shard *shard = shard_of(h);
    ms_lock(&shard->lock);
    struct ms_slot *slot = insert(shard, h, block);
    if (slot) {
        slot->site = block->site;
        ms_account_restore(block);
        set_state(slot, MS_SLOT_LIVE);
        ms_trace_alloc(number_of(slot), block);
    } else {
        ms_table_drop(MS_TABLE_BLOCKS);
    }
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
        ms_slot_read(slot_at(shard->index[place].slot - 1), block_p);
        found = true;
    }
    ms_unlock(&shard->lock);
    return found;
}

/* Also looked at without a lock, to be looked at again with it. */
static MS_UNSYNCHRONIZED bool dies_with(const struct ms_slot *slot, uint64_t context)
{
    return is_live(slot) && slot->context == context && !(slot->tags & MS_SLOT_OUTLIVES);
}

/* Looks again under the shard's lock: the block may have been freed meanwhile, and its slot used again. */
static MS_UNSYNCHRONIZED bool end_with_context(uint32_t number, uint64_t context, uint64_t now_ns, struct ms_block *block_p)
{
    const struct ms_slot *slot = slot_at(number - 1);
    unsigned space = space_of(slot);
    uint64_t key = slot->key, h = hash(space, key);
    struct shard *shard = shard_of(h);
    ms_lock(&shard->lock);
    bool dies = dies_with(slot, context) && slot->key == key && space_of(slot) == space;
    if (dies && slot->tags & MS_SLOT_SERVED)
        end_slot(shard, number, MS_BLOCK_DIED, now_ns, block_p);
    else if (dies)
        end_block(shard, probe(shard, h, space, key), MS_BLOCK_DIED, now_ns, block_p);
    ms_unlock(&shard->lock);
    return dies;
}

void ms_ledger_context_died(uint64_t context)
{
    struct ms_context_died death = {.context = context, .t_ns = ms_ledger_now(), .device = MS_DEVICE_NONE};
    uint32_t slots = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS);
    for (uint32_t number = 1; number <= slots; number++) {
        struct ms_block block;
        if (!dies_with(slot_at(number - 1), context) ||
            !end_with_context(number, context, death.t_ns, &block) || !ms_kind_is_device(block.kind))
            continue;
        ms_trace_look();
        death.bytes += block.bytes;
        death.count++;
        death.device = block.device;
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

static void count_block(void *arg, const struct ms_block *block)
{
    (void)block;
    ++*(uint64_t *)arg;
}

uint64_t ms_blocks_count(void)
{
    uint64_t count = 0;
    ms_blocks_each(count_block, &count);
    return count;
}

void ms_blocks_each(void (*visit)(void *arg, const struct ms_block *block), void *arg)
{
    uint64_t slots = ms_table_rows(MS_TABLE_BLOCKS);
    for (uint64_t i = 0; i < slots; i++) {
        const struct ms_slot *slot = slot_at((uint32_t)i);
        struct ms_block block;
        if (atomic_load_explicit(&slot->state, memory_order_acquire) % MS_SLOT_STATES != MS_SLOT_LIVE)
            continue;
        ms_slot_read(slot, &block);
        visit(arg, &block);
    }
}

uint64_t ms_blocks_dropped(void)
{
    return ms_table_dropped(MS_TABLE_BLOCKS);
}

uint64_t ms_blocks_replaced(void)
{
    return atomic_load_explicit(&ms_process()->replaced_blocks, memory_order_relaxed);
}

void ms_blocks_reset(void)
{
    atomic_store_explicit(&reported, false, memory_order_relaxed);
    memset((void *)shards, 0, sizeof shards);
    for (unsigned i = 0; i < MS_SHARDS; i++) {
        shards[i].lock.rank = MS_RANK_BLOCKS;
        ms_lock_reset(&shards[i].lock);
    }
}
