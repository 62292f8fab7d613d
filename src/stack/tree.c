/* tree.c - stacks as paths in a tree: an id is a node, a node is a frame and the id of its caller's stack.
 *
 * Floor 1. Nodes are only appended; looking up takes no lock, adding takes a short one. The hash index is
 * replaced by a larger one as it fills; a reader of the old one may miss a new node and then asks again under
 * the lock.
 *
 * Invariants: a node's parent has a smaller id; a published id's node is complete; every node is in the
 * latest index. */
#include "config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/objects.h"
#include "stack/stack.h"

enum {
    NODES_PER_CHUNK = 4096,
    CHUNKS_MAX = 256,
    NODES_MAX = NODES_PER_CHUNK * CHUNKS_MAX - 1,
    INDEX_START = 4096
};

struct node {
    uint64_t frame;
    uint32_t parent;
    uint32_t generation; /* of the object that holds `frame`, so that its successor at this address is told
                            apart */
};

struct index {
    uint32_t mask;
    _Atomic uint32_t ids[]; /* 0 is empty; at most half are not */
};

static struct ms_lock add_lock = MS_LOCK_INIT(MS_RANK_STACK);
static struct node *_Atomic chunks[CHUNKS_MAX];
static struct index *_Atomic current_index;
static _Atomic uint32_t node_count;
static _Atomic uint64_t dropped;

static struct node *node_at(ms_stack_id id)
{
    struct node *chunk = atomic_load_explicit(&chunks[id / NODES_PER_CHUNK], memory_order_acquire);
    return &chunk[id % NODES_PER_CHUNK];
}

static uint32_t hash(const struct node *node)
{
    uint64_t h = node->frame * 0x9e3779b97f4a7c15u;
    h ^= ((uint64_t)node->parent << 32 | node->generation) + (h >> 29);
    return (uint32_t)((h * 0xbf58476d1ce4e5b9u) >> 32);
}

static ms_stack_id find(const struct index *index, const struct node *wanted)
{
    if (!index)
        return 0;
    for (uint32_t slot = hash(wanted) & index->mask;; slot = (slot + 1) & index->mask) {
        ms_stack_id id = atomic_load_explicit(&index->ids[slot], memory_order_acquire);
        if (id == 0)
            return 0;
        const struct node *node = node_at(id);
        if (node->frame == wanted->frame && node->parent == wanted->parent &&
            node->generation == wanted->generation)
            return id;
    }
}

static void put(struct index *index, const struct node *node, ms_stack_id id)
{
    uint32_t slot = hash(node) & index->mask;
    while (atomic_load_explicit(&index->ids[slot], memory_order_relaxed))
        slot = (slot + 1) & index->mask;
    atomic_store_explicit(&index->ids[slot], id, memory_order_release);
}

/* The index with room for one more node; NULL without memory. Under the lock. */
static struct index *roomy_index(void)
{
    struct index *index = atomic_load_explicit(&current_index, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&node_count, memory_order_relaxed);
    if (index && count < index->mask / 2)
        return index;
    uint32_t slots = index ? (index->mask + 1) * 2 : INDEX_START;
    struct index *larger = ms_arena_alloc(sizeof *larger + slots * sizeof larger->ids[0]);
    if (!larger)
        return NULL;
    larger->mask = slots - 1;
    for (ms_stack_id id = 1; id <= count; id++)
        put(larger, node_at(id), id);
    atomic_store_explicit(&current_index, larger, memory_order_release);
    return larger;
}

static struct node *room_for(ms_stack_id id)
{
    if (id > NODES_MAX)
        return NULL;
    struct node *chunk = atomic_load_explicit(&chunks[id / NODES_PER_CHUNK], memory_order_relaxed);
    if (!chunk) {
        chunk = ms_arena_alloc(NODES_PER_CHUNK * sizeof *chunk);
        atomic_store_explicit(&chunks[id / NODES_PER_CHUNK], chunk, memory_order_release);
    }
    return chunk ? &chunk[id % NODES_PER_CHUNK] : NULL;
}

static ms_stack_id add(const struct node *wanted)
{
    ms_lock(&add_lock);
    struct index *index = roomy_index();
    ms_stack_id id = find(index, wanted);
    if (!id && index) {
        ms_stack_id next = atomic_load_explicit(&node_count, memory_order_relaxed) + 1;
        struct node *node = room_for(next);
        if (node) {
            id = next;
            *node = *wanted;
            atomic_store_explicit(&node_count, next, memory_order_release);
            put(index, wanted, id);
        }
    }
    ms_unlock(&add_lock);
    return id;
}

/* The node for the outermost `count` frames whose ids are known so far; `*left_p` frames are not. */
static ms_stack_id follow(const uintptr_t *frames, unsigned count, unsigned *left_p)
{
    const struct index *index = atomic_load_explicit(&current_index, memory_order_acquire);
    bool reused = ms_objects_any_gone();
    ms_stack_id id = 0;
    while (count) {
        struct node wanted = {frames[count - 1], id, reused ? ms_object_generation(frames[count - 1]) : 0};
        ms_stack_id next = find(index, &wanted);
        if (!next)
            break;
        id = next;
        count--;
    }
    *left_p = count;
    return id;
}

ms_stack_id ms_stack_intern(const uintptr_t *frames, unsigned count)
{
    unsigned left;
    if (MS_UNLIKELY(ms_objects_stale()))
        ms_objects_refresh();
    ms_stack_id id = follow(frames, count, &left);
    if (MS_LIKELY(left == 0))
        return id;
    /* A stack never seen: perhaps of an object never seen, or one that took another's place. */
    ms_objects_refresh();
    id = follow(frames, count, &left);
    while (left) {
        struct node wanted = {frames[left - 1], id, ms_object_generation(frames[left - 1])};
        id = add(&wanted);
        if (!id) {
            atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
            return 0;
        }
        left--;
    }
    return id;
}

int ms_stack_node(ms_stack_id id, ms_stack_id *parent_p, uintptr_t *frame_p, uint32_t *generation_p)
{
    if (id == 0 || id > ms_stack_count())
        return -1;
    const struct node *node = node_at(id);
    *parent_p = node->parent;
    *frame_p = (uintptr_t)node->frame;
    *generation_p = node->generation;
    return 0;
}

uint32_t ms_stack_count(void)
{
    return atomic_load_explicit(&node_count, memory_order_acquire);
}

uint64_t ms_stack_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

void ms_stack_reset(void)
{
    for (unsigned i = 0; i < CHUNKS_MAX; i++)
        atomic_store_explicit(&chunks[i], NULL, memory_order_relaxed);
    atomic_store_explicit(&current_index, NULL, memory_order_relaxed);
    atomic_store_explicit(&node_count, 0, memory_order_relaxed);
    atomic_store_explicit(&dropped, 0, memory_order_relaxed);
    ms_lock_reset(&add_lock);
}
