/* stack_tree.c - see stack_tree.h.
 *
 * Floor 4. A node is found by its parent and frame in a table that is never fuller than half. */
#include "html/stack_tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct slots {
    uint32_t *nodes;
    size_t mask;
};

static size_t stack_tree_slot_of(const struct ms_stack_tree *tree, const struct slots *slots, uint32_t parent,
                                 uint32_t frame)
{
    uint64_t hash = (((uint64_t)parent << 32) | frame) * 0x9e3779b97f4a7c15ull;
    size_t at = (size_t)(hash >> 20) & slots->mask;

    while (slots->nodes[at] &&
           (tree->parent[slots->nodes[at]] != parent || tree->frame[slots->nodes[at]] != frame))
        at = (at + 1) & slots->mask;
    return at;
}

/* Room for twice as many nodes; there are far fewer than frames of all stacks. */
static bool stack_tree_grow(struct ms_stack_tree *tree, struct slots *slots)
{
    size_t room = slots->nodes ? slots->mask + 1 : 1024;
    uint32_t *parent = realloc(tree->parent, room * sizeof(*parent)), *frame, *nodes;

    tree->parent = parent ? parent : tree->parent;
    frame = realloc(tree->frame, room * sizeof(*frame));
    tree->frame = frame ? frame : tree->frame;
    nodes = calloc(2 * room, sizeof(*nodes));
    if (!parent || !frame || !nodes || room > UINT32_MAX / 2) {
        free(nodes);
        return false;
    }
    free(slots->nodes);
    *slots = (struct slots){nodes, 2 * room - 1};
    for (size_t i = 1; i < tree->count; i++)
        nodes[stack_tree_slot_of(tree, slots, parent[i], frame[i])] = (uint32_t)i;
    return true;
}

/* UINT32_MAX without memory. */
static uint32_t child(struct ms_stack_tree *tree, struct slots *slots, uint32_t parent, uint32_t frame)
{
    size_t at = stack_tree_slot_of(tree, slots, parent, frame);

    if (slots->nodes[at])
        return slots->nodes[at];
    if (tree->count == (slots->mask + 1) / 2) {
        if (!stack_tree_grow(tree, slots))
            return UINT32_MAX;
        at = stack_tree_slot_of(tree, slots, parent, frame);
    }
    slots->nodes[at] = (uint32_t)tree->count;
    tree->parent[tree->count] = parent;
    tree->frame[tree->count++] = frame;
    return slots->nodes[at];
}

static bool stack_tree_add_sites(struct ms_stack_tree *tree, struct slots *slots,
                                 const struct ms_model *model)
{
    for (size_t i = 0; i < model->site_count; i++) {
        const struct ms_model_site *site = &model->sites[i];
        uint32_t node = 0;

        for (size_t k = 0; k < site->depth && node != UINT32_MAX; k++)
            node = child(tree, slots, node, model->path[site->first + k]);
        if (node == UINT32_MAX)
            return false;
        tree->leaf[i] = node;
    }
    return true;
}

int ms_stack_tree_open(struct ms_stack_tree *tree, const struct ms_model *model)
{
    struct slots slots = {NULL, 0};
    bool done;

    *tree = (struct ms_stack_tree){.leaf = calloc(model->site_count + 1, sizeof(*tree->leaf))};
    done = tree->leaf && stack_tree_grow(tree, &slots);
    if (done) {
        tree->parent[0] = tree->frame[0] = 0; /* the root */
        tree->count = 1;
        done = stack_tree_add_sites(tree, &slots, model);
    }
    free(slots.nodes);
    if (!done)
        ms_stack_tree_close(tree);
    return done ? 0 : -1;
}

void ms_stack_tree_close(struct ms_stack_tree *tree)
{
    free(tree->parent);
    free(tree->frame);
    free(tree->leaf);
    memset(tree, 0, sizeof(*tree));
}
