/* tree.h - a row of the table of stack nodes.
 *
 * Floor 1; between tree.c, which adds them, and nodes.c, which reads them, in another process's ledger
 * too. */
#ifndef MS_UNWIND_TREE_H
#define MS_UNWIND_TREE_H

#include "base/store/store.h"
#include "unwind/stack.h"

struct ms_stack_node {
    uint64_t frame;
    uint32_t parent;
    uint32_t generation; /* of the object that holds `frame`, so that its successor at this address is told
                            apart */
};
_Static_assert(sizeof(struct ms_stack_node) == MS_TABLE_NODES_ROW_BYTES,
               "a row of the ledger; row 0 is no stack");

static inline struct ms_stack_node *ms_stack_node_at(ms_stack_id id)
{
    return &MS_ROWS(NODES, struct ms_stack_node)[id];
}

#endif
