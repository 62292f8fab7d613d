/* stack_tree.h - the stacks of a model as one tree: each node a frame, called from its parent.
 *
 * Floor 4, command line only. */
#ifndef MS_HTML_STACK_TREE_H
#define MS_HTML_STACK_TREE_H

#include "export/model.h"

struct ms_stack_tree {
    uint32_t *parent, *frame; /* by node; 0 is the root, which is no frame; a parent precedes its children */
    uint32_t *leaf;           /* by site: its last node */
    size_t count;
};

int ms_stack_tree_open(struct ms_stack_tree *tree,
                       const struct ms_model *model); /* 0, or -1 without memory */
void ms_stack_tree_close(struct ms_stack_tree *tree);

#endif
