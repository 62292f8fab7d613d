/* tree.h - the stacks of a model laid over each other: one node for each way from the root, with what it
 * weighs.
 *
 * Floor 4, command line only. */
#ifndef MS_EXPORT_TREE_H
#define MS_EXPORT_TREE_H

#include "export/model.h"

struct ms_tree_node {
    const char *name;
    uint32_t frame;                  /* in the model, the first of those of this name */
    uint32_t name_id, parent, depth; /* the root is node 0, of depth 0, and its own parent */
    uint32_t first, count;  /* its children: tree->children[first .. first + count), heaviest first */
    json_int_t total, self; /* with what is below it, and what ends in it */
};

struct ms_tree {
    struct ms_tree_node *nodes;
    uint32_t *children;
    size_t node_count;
};

/** Lay them over each other by names, so that the lines of one function are one node. Sites without the value
 * are left out. `inverted`: from the innermost frame outwards, the function that was called first. Returns 0,
 * or -1 without memory. */
int ms_tree_open(struct ms_tree *tree, const struct ms_model *model, enum ms_value value, bool inverted);
/** As ms_tree_open(), but with all sites, whatever they weigh, and from the outside inwards; `leaves`, as
 * long as there are sites, gets the node in which each ends. The weight of nodes is their `value`. */
int ms_tree_open_all(struct ms_tree *tree, const struct ms_model *model, enum ms_value value,
                     uint32_t *leaves);
void ms_tree_close(struct ms_tree *tree);

/** Marks the `max` heaviest nodes, in `shown`, which is as long as there are nodes: whoever is in it has its
 * parent there. Returns 0, or -1 without memory. */
int ms_tree_heaviest(const struct ms_tree *tree, size_t max, bool *shown);
/** How many stacks end somewhere in it: nodes with a weight of their own. */
size_t ms_tree_stacks(const struct ms_tree *tree);

#endif
