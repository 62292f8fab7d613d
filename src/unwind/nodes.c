/* nodes.c - reading the tree of stacks.
 *
 * Floor 1. No lock: nodes are only appended. */
#include "unwind/tree.h"

int ms_stack_node(ms_stack_id id, ms_stack_id *parent_p, uintptr_t *frame_p, uint32_t *generation_p)
{
    if (id == 0 || id > ms_stack_count())
        return -1;
    const struct ms_stack_node *node = ms_stack_node_at(id);
    if (node->parent >= id) /* only in a damaged file */
        return -1;
    *parent_p = node->parent;
    *frame_p = (uintptr_t)node->frame;
    *generation_p = node->generation;
    return 0;
}

uint32_t ms_stack_count(void)
{
    uint64_t rows = ms_table_rows(MS_TABLE_NODES);
    return rows ? (uint32_t)rows - 1 : 0;
}

uint64_t ms_stack_dropped(void)
{
    return ms_table_dropped(MS_TABLE_NODES);
}
