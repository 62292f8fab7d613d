/* tree.c - stacks as paths in a tree: an id is a node, a node is a frame and the id of its caller's stack.
 *
 * Floor 1. Nodes are only appended, to a table of the record; looking up takes no lock, adding takes a short
 * one. The hash index is replaced by a larger one as it fills; a reader of the old one may miss a new node
 * and then asks again under the lock.
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
#include "base/objects/objects.h"
#include "base/store/store.h"
#include "unwind/frame.h"
#include "unwind/python/python.h"
#include "unwind/native/rules.h"
#include "unwind/tree.h"

enum { INDEX_START = 4096 };

struct index {
    uint32_t mask;
    _Atomic uint32_t ids[]; /* 0 is empty; at most half are not */
};

static struct ms_lock add_lock = MS_LOCK_INIT(MS_RANK_STACK);
static struct index *_Atomic current_index;

/* A frame that is no address lies in no object. */
static uint32_t generation_of(uintptr_t frame)
{
    return ms_frame_kind(frame) == MS_FRAME_NATIVE ? ms_object_generation(frame) : 0;
}

static uint32_t tree_hash(const struct ms_stack_node *node)
{
    uint64_t h = node->frame * 0x9e3779b97f4a7c15u;
    h ^= ((uint64_t)node->parent << 32 | node->generation) + (h >> 29);
    return (uint32_t)((h * 0xbf58476d1ce4e5b9u) >> 32);
}

static ms_stack_id tree_find(const struct index *index, const struct ms_stack_node *wanted)
{
    if (!index)
        return 0;
    for (uint32_t slot = tree_hash(wanted) & index->mask;; slot = (slot + 1) & index->mask) {
        ms_stack_id id = atomic_load_explicit(&index->ids[slot], memory_order_acquire);
        if (id == 0)
            return 0;
        const struct ms_stack_node *node = ms_stack_node_at(id);
        if (node->frame == wanted->frame && node->parent == wanted->parent &&
            node->generation == wanted->generation)
            return id;
    }
}

static void tree_put(struct index *index, const struct ms_stack_node *node, ms_stack_id id)
{
    uint32_t slot = tree_hash(node) & index->mask;
    while (atomic_load_explicit(&index->ids[slot], memory_order_relaxed))
        slot = (slot + 1) & index->mask;
    atomic_store_explicit(&index->ids[slot], id, memory_order_release);
}

/* The index with room for one more node; NULL without memory. Under the lock. */
static struct index *roomy_index(void)
{
    struct index *index = atomic_load_explicit(&current_index, memory_order_relaxed);
    uint32_t count = ms_stack_count();
    if (index && count < index->mask / 2)
        return index;
    uint32_t slots = index ? (index->mask + 1) * 2 : INDEX_START;
    struct index *larger = ms_arena_alloc(sizeof *larger + slots * sizeof larger->ids[0]);
    if (!larger)
        return NULL;
    larger->mask = slots - 1;
    for (ms_stack_id id = 1; id <= count; id++)
        tree_put(larger, ms_stack_node_at(id), id);
    atomic_store_explicit(&current_index, larger, memory_order_release);
    return larger;
}

static ms_stack_id tree_add(const struct ms_stack_node *wanted)
{
    ms_lock(&add_lock);
    struct index *index = roomy_index();
    ms_stack_id id = tree_find(index, wanted);
    if (!id && index) {
        ms_stack_id next = ms_stack_count() + 1;
        if (ms_table_reserve(MS_TABLE_NODES, (uint64_t)next + 1)) {
            id = next;
            *ms_stack_node_at(id) = *wanted;
            ms_table_publish(MS_TABLE_NODES, (uint64_t)id + 1);
            tree_put(index, wanted, id);
        }
    }
    ms_unlock(&add_lock);
    return id;
}

/* Goes on from the stack *id_p through those of the outermost `count` frames that are known; returns how many
 * are left. */
static unsigned tree_follow(ms_stack_id *id_p, const uintptr_t *frames, unsigned count, ms_stack_id *ids)
{
    const struct index *index = atomic_load_explicit(&current_index, memory_order_acquire);
    bool reused = ms_objects_any_gone();
    while (count) {
        struct ms_stack_node wanted = {frames[count - 1], *id_p,
                                       reused ? generation_of(frames[count - 1]) : 0};
        ms_stack_id next = tree_find(index, &wanted);
        if (!next)
            break;
        *id_p = ids[--count] = next;
    }
    return count;
}

ms_stack_id ms_stack_intern_below(ms_stack_id outer, const uintptr_t *frames, unsigned count,
                                  ms_stack_id *ids)
{
    if (MS_UNLIKELY(ms_objects_stale()))
        ms_objects_refresh();
    ms_stack_id id = outer;
    unsigned left = tree_follow(&id, frames, count, ids);
    if (MS_LIKELY(left == 0))
        return id;
    /* A stack never seen: perhaps of an object never seen, or one that took another's place. */
    ms_objects_refresh();
    ms_python_find_again();
    id = outer;
    left = tree_follow(&id, frames, count, ids);
    while (left) {
        struct ms_stack_node wanted = {frames[left - 1], id, generation_of(frames[left - 1])};
        id = tree_add(&wanted);
        if (!id) {
            ms_table_drop(MS_TABLE_NODES);
            return 0;
        }
        ids[--left] = id;
    }
    return id;
}

ms_stack_id ms_stack_intern(const uintptr_t *frames, unsigned count)
{
    ms_stack_id ids[MS_STACK_DEPTH_MAX];
    return ms_stack_intern_below(0, frames, count, ids);
}

void ms_stack_reset(void)
{
    ms_stack_forget();
    atomic_store_explicit(&current_index, NULL, memory_order_relaxed);
    ms_lock_reset(&add_lock);
#ifdef MS_HAVE_LIBUNWIND
    ms_rules_reset();
#endif
}
MS_AT_FORK(MS_FORK_STACK, ms_stack_reset);
