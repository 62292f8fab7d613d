/* tree.c - see tree.h.
 *
 * Floor 4. While it grows, a child is found by a hash of its parent and its name; then children are put in
 * order once. */
#include "export/tree.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX (UINT32_MAX / 4)

struct growing {
    struct ms_tree *tree;
    const struct ms_model *model;
    uint32_t *slots; /* of a node plus one */
    size_t room, slot_mask;
};

static size_t tree_slot_of(const struct growing *growing, uint32_t parent, uint32_t name_id)
{
    uint64_t hash = ((uint64_t)parent << 32 | name_id) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) & growing->slot_mask;

    for (; growing->slots[at]; at = (at + 1) & growing->slot_mask) {
        const struct ms_tree_node *node = &growing->tree->nodes[growing->slots[at] - 1];

        if (node->parent == parent && node->name_id == name_id)
            break;
    }
    return at;
}

static int tree_grow(struct growing *growing)
{
    size_t room = growing->room ? growing->room * 2 : 1024;
    struct ms_tree_node *nodes = realloc(growing->tree->nodes, room * sizeof(*nodes));
    uint32_t *slots = calloc(room * 2, sizeof(*slots));

    if (nodes)
        growing->tree->nodes = nodes;
    if (!nodes || !slots || room > NODES_MAX) {
        free(slots);
        return -1;
    }
    free(growing->slots);
    growing->slots = slots;
    growing->slot_mask = room * 2 - 1;
    growing->room = room;
    for (size_t i = 1; i < growing->tree->node_count; i++)
        growing->slots[tree_slot_of(growing, nodes[i].parent, nodes[i].name_id)] = (uint32_t)i + 1;
    return 0;
}

/* The child of this frame's name; UINT32_MAX without memory. */
static uint32_t child(struct growing *growing, uint32_t parent, uint32_t number)
{
    const struct ms_model_frame *frame = &growing->model->frames[number];
    struct ms_tree *tree = growing->tree;
    size_t slot;

    if (tree->node_count == growing->room && tree_grow(growing) < 0)
        return UINT32_MAX;
    slot = tree_slot_of(growing, parent, frame->name_id);
    if (!growing->slots[slot]) {
        tree->nodes[tree->node_count] = (struct ms_tree_node){.name = frame->name,
                                                              .frame = number,
                                                              .name_id = frame->name_id,
                                                              .parent = parent,
                                                              .depth = tree->nodes[parent].depth + 1};
        growing->slots[slot] = (uint32_t)++tree->node_count;
    }
    return growing->slots[slot] - 1;
}

static int tree_add_site(struct growing *growing, const struct ms_model_site *site, json_int_t weight,
                         bool inverted)
{
    struct ms_tree_node *root = &growing->tree->nodes[0];
    uint32_t node = 0;

    root->total = ms_report_sum(root->total, weight);
    for (size_t k = 0; k < site->depth; k++) {
        size_t at = site->first + (inverted ? site->depth - 1 - k : k);

        node = child(growing, node, growing->model->path[at]);
        if (node == UINT32_MAX)
            return UINT32_MAX;
        growing->tree->nodes[node].total = ms_report_sum(growing->tree->nodes[node].total, weight);
    }
    growing->tree->nodes[node].self = ms_report_sum(growing->tree->nodes[node].self, weight);
    return node;
}

static const struct ms_tree_node *sorted;

static int heavier(const struct ms_tree_node *x, const struct ms_tree_node *y)
{
    int order;

    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    order = strcmp(x->name, y->name);
    return order ? order : x < y ? -1 : x > y;
}

static int by_parent(const void *a, const void *b)
{
    const struct ms_tree_node *x = &sorted[*(const uint32_t *)a], *y = &sorted[*(const uint32_t *)b];

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return heavier(x, y);
}

/* All nodes but the root, by parent and weight: each node's children stand together. */
static int order_children(struct ms_tree *tree)
{
    size_t count = tree->node_count - 1;

    tree->children = malloc((count + 1) * sizeof(*tree->children));
    if (!tree->children)
        return -1;
    for (size_t i = 0; i < count; i++)
        tree->children[i] = (uint32_t)i + 1;
    sorted = tree->nodes;
    qsort(tree->children, count, sizeof(*tree->children), by_parent);
    for (size_t i = 0; i < count; i++) {
        struct ms_tree_node *parent = &tree->nodes[tree->nodes[tree->children[i]].parent];

        if (!parent->count++)
            parent->first = (uint32_t)i;
    }
    return 0;
}

static int open_tree(struct ms_tree *tree, const struct ms_model *model, enum ms_value value, bool inverted,
                     uint32_t *leaves)
{
    struct growing growing = {.tree = tree, .model = model};
    int result;

    *tree = (struct ms_tree){.node_count = 0};
    result = tree_grow(&growing);
    if (result == 0)
        tree->nodes[tree->node_count++] = (struct ms_tree_node){.name = "all"};
    for (size_t i = 0; result == 0 && i < model->site_count; i++) {
        json_int_t weight = model->sites[i].values[value];
        uint32_t leaf = weight || leaves ? tree_add_site(&growing, &model->sites[i], weight, inverted) : 0;

        result = leaf == UINT32_MAX ? -1 : 0;
        if (leaves)
            leaves[i] = leaf;
    }
    free(growing.slots);
    if (result == 0)
        result = order_children(tree);
    if (result < 0)
        ms_tree_close(tree);
    return result;
}

int ms_tree_open(struct ms_tree *tree, const struct ms_model *model, enum ms_value value, bool inverted)
{
    return open_tree(tree, model, value, inverted, NULL);
}

int ms_tree_open_all(struct ms_tree *tree, const struct ms_model *model, enum ms_value value,
                     uint32_t *leaves)
{
    return open_tree(tree, model, value, false, leaves);
}

void ms_tree_close(struct ms_tree *tree)
{
    free(tree->nodes);
    free(tree->children);
    memset(tree, 0, sizeof(*tree));
}

/* Of equal weight the outer one first, so that nobody is shown without his parent. */
static int by_weight(const void *a, const void *b)
{
    const struct ms_tree_node *x = &sorted[*(const uint32_t *)a], *y = &sorted[*(const uint32_t *)b];

    if (x->total == y->total && x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return heavier(x, y);
}

int ms_tree_heaviest(const struct ms_tree *tree, size_t max, bool *shown)
{
    uint32_t *order = malloc(tree->node_count * sizeof(*order));

    if (!order)
        return -1;
    for (size_t i = 0; i < tree->node_count; i++)
        order[i] = (uint32_t)i;
    sorted = tree->nodes;
    qsort(order, tree->node_count, sizeof(*order), by_weight);
    memset(shown, 0, tree->node_count * sizeof(*shown));
    for (size_t i = 0; i < tree->node_count && i < max; i++)
        shown[order[i]] = true;
    free(order);
    return 0;
}

size_t ms_tree_stacks(const struct ms_tree *tree)
{
    size_t count = 0;

    for (size_t i = 0; i < tree->node_count; i++)
        count += tree->nodes[i].self != 0;
    return count;
}
