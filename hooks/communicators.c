/* communicators.c - see communicators.h.
 *
 * Runs in the program's threads, behind a light frame (name.h), with the guard closed while the tree of
 * stacks is written. Owns a count. */
#include "hooks/communicators.h"

#include <stdatomic.h>
#include <stdio.h>

#include "stack/frame.h"
#include "stack/python.h"

/* Programs that make them again and again would fill the table of texts: the others have a mark without one.
 */
enum { NAMED_MAX = 4096, NAME_BYTES = 64 };

static _Atomic uint64_t made;

static void name_of(char *name, uint64_t first, int count, int rank, int ranks)
{
    if (count > 1)
        snprintf(name, NAME_BYTES, "%llu to %llu", (unsigned long long)first,
                 (unsigned long long)first + (unsigned)count - 1);
    else if (ranks > 0)
        snprintf(name, NAME_BYTES, "%llu, rank %d of %d", (unsigned long long)first, rank, ranks);
    else
        snprintf(name, NAME_BYTES, "%llu", (unsigned long long)first);
}

void ms_communicators_begin(struct ms_call *call, int count, int rank, int ranks)
{
    char name[NAME_BYTES];
    uint64_t first;
    uintptr_t mark;
    ms_stack_id id;

    if (call->passes || ms_thread.outermost != call || !call->stack)
        return;
    ms_guard_enter();
    first = atomic_fetch_add_explicit(&made, (uint64_t)(count > 0 ? count : 1), memory_order_relaxed) + 1;
    name_of(name, first, count, rank, ranks);
    mark = (uintptr_t)ms_frame_mark(MS_MARK_COMMUNICATOR, first <= NAMED_MAX ? ms_code_intern_text(name) : 0);
    id = ms_stack_intern_below(call->stack, &mark, 1, &id);
    if (id)
        call->stack = id;
    ms_guard_leave();
}
