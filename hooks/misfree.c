/* misfree.c - see misfree.h.
 *
 * Runs in the program's threads, inside a section. No lock of its own, no allocation. */
#include "hooks/misfree.h"

#include "hooks/graph_memory.h"
#include "pool/pool.h"

static void count(const struct ms_misfree *misfree, unsigned row, const void *frame, const void *caller)
{
    ms_ledger_misfree(misfree, (uint16_t)row, ms_stack_capture(frame, caller));
}

/* Under the name, and with the stack, of the outermost frame, whose function has not returned. */
static const struct ms_call *named(const struct ms_call *call)
{
    return ms_thread.outermost ? ms_thread.outermost : call;
}

/* What a library's free does inside is its own; when it has failed, it is asked about what the program gave
 * it. */
static bool is_inside_buffer(const struct ms_call *call)
{
    return named(call) != call && ms_rows[named(call)->row]->class == MS_CLASS_BUFFER_FREE;
}

static void count_call(const struct ms_misfree *misfree, const struct ms_call *call)
{
    count(misfree, named(call)->row, named(call)->frame, named(call)->caller);
}

/* Somebody else has the address by now: a graph, or memory that is mapped there. */
static bool is_taken(uint64_t address)
{
    uint64_t number, begin;
    bool mapped;

    return ms_graph_memory_is_unknown(address) || (ms_handle_at(address, &number, &begin, &mapped) && mapped);
}

MS_NOINLINE void ms_misfree_of_call(const struct ms_call *call, enum ms_space space, uint64_t key)
{
    struct ms_misfree misfree;

    if (key && !is_inside_buffer(call) && !(space == MS_SPACE_ADDRESS && is_taken(key)) &&
        ms_ledger_misfree_find(space, key, false, &misfree))
        count_call(&misfree, call);
}

MS_NOINLINE void ms_misfree_of_handle(const struct ms_call *call, uint64_t key)
{
    struct ms_misfree misfree;

    if (is_inside_buffer(call) || !ms_ledger_misfree_find(MS_SPACE_HANDLE, key, true, &misfree))
        return;
    misfree.given = call->args.key;
    count_call(&misfree, call);
}

/* Recorded by its address where the pool has it, and else as the memory that is mapped there. */
MS_NOINLINE void ms_misfree_of_buffer(const struct ms_call *call)
{
    uint64_t number, begin, key = call->args.key;
    struct ms_misfree misfree;
    bool mapped;

    if (!key || is_inside_buffer(call))
        return;
    if (!ms_handle_at(key, &number, &begin, &mapped)) {
        ms_misfree_of_call(call, MS_SPACE_ADDRESS, key);
        return;
    }
    if ((mapped && begin == key) || !ms_ledger_misfree_find(MS_SPACE_HANDLE, number, true, &misfree))
        return;
    misfree.rule = mapped ? MS_MISFREE_INTERIOR : MS_MISFREE_DOUBLE;
    misfree.space = MS_SPACE_ADDRESS;
    misfree.given = key;
    misfree.begin = begin;
    count_call(&misfree, call);
}

/* What is live was refused for another reason: the state of the context, a capture, a stream. */
static bool is_live(uint64_t address)
{
    struct ms_pool_block block;

    return ms_pool_find(address, &block) && block.address == address;
}

MS_NOINLINE void ms_misfree_served(const struct ms_call *outer, unsigned row, const void *frame,
                                   const void *caller, uint64_t address)
{
    struct ms_misfree misfree;

    if (is_live(address) || !ms_ledger_misfree_find(MS_SPACE_ADDRESS, address, false, &misfree))
        return;
    if (outer)
        count(&misfree, outer->row, outer->frame, outer->caller);
    else
        count(&misfree, row, frame, caller);
}
