/* walk.c - taking the stack of the calling thread: which walk, how deep, the one by frame pointers, and
 * whether Python frames come with it.
 *
 * Floor 1. No lock, no allocation, reentrant. Whatever a frame pointer register held may be followed here, so
 * a word is read only where it is known that it can be (memory.h). What a walk notes lies on no program's
 * stack: in a buffer of base/thread/aux_stack.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/thread/aux_stack.h"
#include "unwind/python/merge.h"
#include "unwind/python/python.h"
#include "unwind/stack.h"
#include "unwind/native/unwind.h"

/* The frames that a walk notes, their stack ids, and what it meets of the latest walk. */
struct notes {
    uintptr_t frames[MS_STACK_DEPTH_MAX];
    ms_stack_id ids[MS_STACK_DEPTH_MAX];
    struct ms_recalling recalling;
};
_Static_assert(sizeof(struct notes) <= MS_AUX_STACK_BUFFER_BYTES, "they lie in a buffer");

/* Frames of a stack that is taken while more threads walk than there are buffers for. */
enum { DEPTH_WITHOUT = 16 };

static _Atomic int configured_walk = MS_WALK_UNWIND;
static _Atomic unsigned configured_depth = 64;

/* A frame pointer points at the caller's frame pointer, followed by the return address. Callers lie higher.
 * Goes on from the frame that returns to `caller`; frames of ours below it are passed over. */
static MS_NOINLINE MS_RAW unsigned walk_pointers(uintptr_t frame, uintptr_t caller, uintptr_t *frames,
                                                 unsigned max)
{
    struct ms_reach reach = {0, 0};
    unsigned count = 0, inner = 0;
    uintptr_t next, pc;
    if (!ms_reach_load(&reach, frame + sizeof frame, &pc))
        return 0;
    bool found = ms_strip(pc) == caller;
    while (count < max) {
        if (!ms_reach_load(&reach, frame, &next) || next <= frame || next - frame > MS_WALK_FRAME_BYTES_MAX ||
            next % sizeof next != 0 || !ms_reach_load(&reach, next + sizeof next, &pc))
            break;
        pc = ms_strip(pc);
        if (pc < MS_PAGE_BYTES)
            break;
        if (found)
            frames[count++] = pc;
        else if ((found = pc == caller) == false && ++inner > MS_WALK_INNER_MAX)
            break;
        frame = next;
    }
    return count;
}

MS_NOINLINE unsigned ms_stack_walk(enum ms_walk walk, const void *frame, const void *caller,
                                   uintptr_t *frames, unsigned max)
{
    uintptr_t first = ms_strip((uintptr_t)caller);
    int saved_errno = errno;
    unsigned count = 0;
    if (walk == MS_WALK_OFF || max == 0)
        return 0;
    if (walk == MS_WALK_UNWIND)
        count = ms_unwind_walk(frame, first, frames, max);
    /* Asked for, or the tables do not lead to the caller (it was entered without a frame, by hand-written
     * code). */
    if (count == 0) {
        frames[count++] = first;
#ifdef __aarch64__
        /* A wrapper that left by a tail call is not on the stack any more. */
        frame = __builtin_frame_address(0);
#endif
        if (walk == MS_WALK_FP)
            count += walk_pointers((uintptr_t)frame, first, frames + 1, max - 1);
    }
    errno = saved_errno;
    return count;
}

/* The first `count` frames stay remembered; the others and the latest stack are forgotten. */
static void forget_from(struct ms_recall *recall, unsigned count)
{
    recall->latest.frame = NULL;
    recall->count = (uint16_t)count;
}

void ms_stack_forget(void)
{
    if (ms_thread.own != &ms_own_none)
        forget_from(ms_recall_of(&ms_thread), 0);
}

void ms_stack_configure(enum ms_walk walk, unsigned depth)
{
    depth = depth < 1 ? 1 : depth;
    depth = depth > MS_STACK_DEPTH_MAX ? MS_STACK_DEPTH_MAX : depth;
    ms_stack_forget();
    atomic_store_explicit(&configured_walk, (int)walk, memory_order_relaxed);
    atomic_store_explicit(&configured_depth, depth, memory_order_relaxed);
}

MS_RAW bool ms_recall_leads_on_unlisted(struct ms_recall *recall)
{
    struct ms_recall_link *link = recall->links;
    unsigned last = recall->latest.last, changed;
    if (!ms_recall_leads_on(recall, last, &changed))
        return false;
    if (last - recall->is_whole > MS_RECALL_LINKS)
        return true;
    for (unsigned i = last; i > recall->is_whole; i--, link++) {
        *link = (struct ms_recall_link){
            .pc_at = (const uintptr_t *)(recall->top + (uintptr_t)(intptr_t)recall->pcs_at[i]),
            .pc = recall->pcs[i - 1]};
        link->fp_at = link->pc_at;
        link->fp = link->pc;
        if (recall->fps_at[i]) {
            link->fp_at = (const uintptr_t *)(recall->top + (uintptr_t)(intptr_t)recall->fps_at[i]);
            link->fp = recall->fps[i - 1];
        }
    }
    recall->latest.end = link == recall->links ? NULL : link;
    return true;
}

/* The frames that were walked, from the innermost on, are remembered on top of those that were met. */
static void walk_remember(const struct ms_recalling *recalling, const ms_stack_id *ids, unsigned inner)
{
    struct ms_recall *recall = recalling->recall;
    unsigned count = recalling->known + inner;
    forget_from(recall, recalling->known);
    if (!recalling->known) {
        recall->generation = recalling->generation;
        recall->top = recalling->top;
        recall->latest.depth = recalling->max;
        recall->is_whole = recalling->is_whole;
    }
    if (!recalling->top || count > MS_RECALL_MAX)
        return;
    for (unsigned place = recalling->known; place < count; place++) {
        const struct ms_recall_step *step = &recalling->steps[count - 1 - place];
        if (step->sp >= recall->top || recall->top - step->sp > INT32_MAX)
            return;
        recall->pcs[place] = step->pc;
        recall->fps[place] = step->fp;
        recall->sps[place] = (int32_t)(step->sp - recall->top);
        recall->pcs_at[place] = (int32_t)(step->pc_at - recall->top);
        recall->fps_at[place] = step->fp_at ? (int32_t)(step->fp_at - recall->top) : 0;
        recall->ids[place] = ids[count - 1 - place];
        recall->count = (uint16_t)(place + 1);
    }
}

/* The stack that was taken now, from `frame`, is so many of the frames that are remembered. */
static void know_as_latest(struct ms_recall *recall, unsigned count, const void *frame)
{
    unsigned last = count - 1, depth = recall->latest.depth;
    recall->latest.frame = NULL;
    recall->latest.end = NULL;
    if (!count || (recall->is_whole ? count > depth : count != depth) ||
        recall->top + (uintptr_t)(intptr_t)recall->sps[last] != (uintptr_t)((const uintptr_t *)frame + 2))
        return;
    recall->latest.last = last;
    recall->latest.id = recall->ids[last];
    recall->latest.pc = recall->pcs[last];
    recall->latest.fp = recall->fps[last];
    recall->latest.frame = frame;
}

/* 0 if the walk did not find the caller, or there was no room. */
static ms_stack_id capture_recalling(struct notes *notes, const void *frame, uintptr_t caller, unsigned depth)
{
    struct ms_recalling *recalling = &notes->recalling;
    struct ms_recall *recall = ms_recall_of(&ms_thread);
    int saved_errno = errno;
    recalling->recall = recall;
    unsigned count = ms_unwind_walk_recalling(frame, caller, notes->frames, depth, recalling);
    unsigned inner = recalling->known ? count - 1 : count;
    ms_stack_id id = recalling->known ? recall->ids[recalling->known - 1] : 0;
    if (inner) {
        id = ms_stack_intern_below(id, notes->frames, inner, notes->ids);
        if (id)
            walk_remember(recalling, notes->ids, inner);
        else
            forget_from(recall, recalling->known);
    }
    know_as_latest(recall, inner ? recall->count : recalling->known, frame);
    errno = saved_errno;
    return id;
}

static MS_NOINLINE ms_stack_id capture_without_notes(enum ms_walk walk, const void *frame, const void *caller,
                                                     unsigned depth)
{
    uintptr_t frames[DEPTH_WITHOUT];
    ms_stack_id ids[DEPTH_WITHOUT];
    unsigned count =
        ms_stack_walk(walk, frame, caller, frames, depth < DEPTH_WITHOUT ? depth : DEPTH_WITHOUT);
    return count ? ms_stack_intern_below(0, frames, count, ids) : 0;
}

static MS_NOINLINE ms_stack_id capture_by_walking(enum ms_walk walk, const void *frame, const void *caller,
                                                  unsigned depth, bool is_recalling)
{
    struct notes *notes = ms_aux_stack_take();
    ms_stack_id id = 0;
    if (!notes)
        return capture_without_notes(walk, frame, caller, depth);
    if (is_recalling)
        id = capture_recalling(notes, frame, ms_strip((uintptr_t)caller), depth);
    if (!id) {
        unsigned count = ms_stack_walk(walk, frame, caller, notes->frames, depth);
        id = count ? ms_stack_intern_below(0, notes->frames, count, notes->ids) : 0;
    }
    ms_aux_stack_give(notes);
    return id;
}

/* A signal may come anywhere; what it captures is walked in full. */
static MS_NOINLINE ms_stack_id capture_anew(enum ms_walk walk, const void *frame, const void *caller,
                                            unsigned depth)
{
    struct ms_recall *recall;
    ms_stack_id id;
    if (walk == MS_WALK_OFF)
        return 0;
    if (walk != MS_WALK_UNWIND || depth > MS_RECALL_MAX || !ms_own_mine())
        return capture_by_walking(walk, frame, caller, depth, false);
    recall = ms_recall_of(&ms_thread);
    if (recall->is_busy)
        return capture_by_walking(walk, frame, caller, depth, false);
    recall->is_busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    id = capture_by_walking(walk, frame, caller, depth, true);
    atomic_signal_fence(memory_order_seq_cst);
    recall->is_busy = false;
    return id;
}

static MS_NOINLINE ms_stack_id with_python(ms_stack_id id, enum ms_walk walk, const void *frame,
                                           const void *caller, unsigned depth)
{
    return id ? ms_merge_capture(id, &(struct ms_merge_call){walk, depth, frame, ms_strip((uintptr_t)caller)})
              : 0;
}

/* Returns the stack of last time if it is still the same, else 0. */
static inline MS_RAW ms_stack_id recall_whole(const void *frame, const void *caller, unsigned depth)
{
    struct ms_recall *recall = ms_recall_of(&ms_thread);
    ms_stack_id id;
    if (MS_UNLIKELY(recall->is_busy || ms_objects_stale() || recall->latest.depth != depth))
        return 0;
    recall->is_busy = true; /* the depth is never 0: something is remembered */
    atomic_signal_fence(memory_order_seq_cst);
    id = ms_recall_again(recall, frame, ms_strip((uintptr_t)caller));
    atomic_signal_fence(memory_order_seq_cst);
    recall->is_busy = false;
    return id;
}

MS_RAW ms_stack_id ms_stack_capture(const void *frame, const void *caller)
{
    enum ms_walk walk = (enum ms_walk)atomic_load_explicit(&configured_walk, memory_order_relaxed);
    unsigned depth = atomic_load_explicit(&configured_depth, memory_order_relaxed);
    ms_stack_id id = MS_LIKELY(walk == MS_WALK_UNWIND) ? recall_whole(frame, caller, depth) : 0;
    if (MS_UNLIKELY(!id))
        id = capture_anew(walk, frame, caller, depth);
    return MS_LIKELY(!atomic_load_explicit(&ms_python_is_here, memory_order_relaxed))
               ? id
               : with_python(id, walk, frame, caller, depth);
}
