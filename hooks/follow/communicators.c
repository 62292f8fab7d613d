/* communicators.c - see communicators.h.
 *
 * Runs in the program's threads, behind a light frame (name.h), with the guard closed while the tree of
 * stacks is written. Owns a count. */
#include "hooks/follow/communicators.h"

#include <stdatomic.h>
#include <stdio.h>

#include "hooks/follow/buffers.h"
#include "unwind/frame.h"
#include "unwind/python/python.h"

/* Programs that make them again and again would fill the table of texts: the others have a mark without
 * one. */
enum { NAMED_MAX = 4096, NAME_BYTES = 64 };

static _Atomic uint64_t made;
/* Those that the thread has begun in the group that it is in. */
static MS_TLS struct in_group {
    uint64_t first, last;
    int count, rank, ranks;
} in_group;

static void communicators_name_of(char *name, uint64_t first, int count, int rank, int ranks)
{
    if (count > 1)
        snprintf(name, NAME_BYTES, "%llu to %llu", (unsigned long long)first,
                 (unsigned long long)first + (unsigned)count - 1);
    else if (ranks > 0)
        snprintf(name, NAME_BYTES, "%llu, rank %d of %d", (unsigned long long)first, rank, ranks);
    else
        snprintf(name, NAME_BYTES, "%llu", (unsigned long long)first);
}

/* Below the call's stack stands which they are. */
static void communicators_mark(struct ms_call *call, uint64_t first, int count, int rank, int ranks)
{
    char name[NAME_BYTES];
    uintptr_t mark;
    ms_stack_id id;

    communicators_name_of(name, first, count, rank, ranks);
    mark = (uintptr_t)ms_frame_pseudo(MS_PSEUDO_COMMUNICATOR,
                                      first <= NAMED_MAX ? ms_code_intern_text(name) : 0);
    id = ms_stack_intern_below(call->stack, &mark, 1, &id);
    if (id)
        call->stack = id;
}

/* In a group nothing is taken before it ends. */
static void note_in_group(uint64_t first, int count, int rank, int ranks)
{
    if (!in_group.count)
        in_group = (struct in_group){.first = first, .rank = rank, .ranks = ranks};
    in_group.count += count;
    in_group.last = first + (unsigned)count - 1;
}

void ms_communicators_begin(struct ms_call *call, int count, int rank, int ranks)
{
    uint64_t first;

    if (call->passes || ms_thread.outermost != call || !call->stack)
        return;
    count = count > 0 ? count : 1;
    ms_guard_enter();
    first = atomic_fetch_add_explicit(&made, (uint64_t)count, memory_order_relaxed) + 1;
    if (ms_hold_groups())
        note_in_group(first, count, rank, ranks);
    communicators_mark(call, first, count, rank, ranks);
    ms_guard_leave();
}

void ms_communicators_group_ends(struct ms_call *call)
{
    const struct in_group was = in_group;

    if (ms_hold_groups() > 1)
        return;
    in_group.count = 0;
    /* where another thread has made some in between, their numbers do not say which they are */
    if (was.count && ms_thread.outermost == call && call->stack &&
        was.last - was.first + 1 == (unsigned)was.count)
        communicators_mark(call, was.first, was.count, was.rank, was.ranks);
}
