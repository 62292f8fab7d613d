/* stack_tree.c - see stack_tree.h.
 *
 * Floor 4. A node is found by its parent and frame in a table that is never fuller than half. */
#include "html/stack_tree.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct ms_stack_tree *tree, const uint32_t *slots, size_t mask, uint32_t parent,
                      uint32_t frame)
{
    uint64_t hash = (((uint64_t)parent << 32) | frame) * 0x9e3779b97f4a7c15ull;
    size_t at = (size_t)(hash >> 20) & mask;

    while (slots[at] && (tree->parent[slots[at]] != parent || tree->frame[slots[at]] != frame))
        at = (at + 1) & mask;
    return at;
}

static uint32_t child(struct ms_stack_tree *tree, uint32_t *slots, size_t mask, uint32_t parent,
                      uint32_t frame)
{
    size_t at = slot_of(tree, slots, mask, parent, frame);

    if (!slots[at]) {
        slots[at] = (uint32_t)tree->count;
        tree->parent[tree->count] = parent;
        tree->frame[tree->count++] = frame;
    }
    return slots[at];
}

int ms_stack_tree_open(struct ms_stack_tree *tree, const struct ms_model *model)
{
    size_t slots = 64, most = model->path_count + 1;
    uint32_t *table;

    while (slots < 2 * most)
        slots *= 2;
    memset(tree, 0, sizeof(*tree));
    table = calloc(slots, sizeof(*table));
    tree->parent = calloc(most, sizeof(*tree->parent));
    tree->frame = calloc(most, sizeof(*tree->frame));
    tree->leaf = calloc(model->site_count + 1, sizeof(*tree->leaf));
    if (!table || !tree->parent || !tree->frame || !tree->leaf || most > UINT32_MAX) {
        free(table);
        ms_stack_tree_close(tree);
        return -1;
    }
    tree->count = 1;
    for (size_t i = 0; i < model->site_count; i++) {
        const struct ms_model_site *site = &model->sites[i];
        uint32_t node = 0;

        for (size_t k = 0; k < site->depth; k++)
            node = child(tree, table, slots - 1, node, model->path[site->first + k]);
        tree->leaf[i] = node;
    }
    free(table);
    return 0;
}

void ms_stack_tree_close(struct ms_stack_tree *tree)
{
    free(tree->parent);
    free(tree->frame);
    free(tree->leaf);
    memset(tree, 0, sizeof(*tree));
}
