/* recall.h - what this thread's latest stack looked like, so that the next one is walked only as far as it
 * differs.
 *
 * Floor 1, for src/unwind alone, and by latest_stack.h for calls that are answered quickly. A program
 * allocates again and again from nearly the same place: most of its stack is the one that was walked a moment
 * ago. A frame is the same as a remembered one if its registers are (address, stack and frame pointer); and
 * then so are all further out, if the words that led from each of them to its caller (the return address, and
 * where it was saved the frame pointer) are still what they were. Looking at those words costs a tenth of a
 * walk, and what stack the frames make is known.
 *
 * Only what lies on the thread's own stack is remembered, which stays while the thread lives, and only plain
 * frames: no signal frames, no realigned stacks, nothing without tables. It holds for one generation of
 * loaded objects. Not for other threads, nor for a walk that interrupted another in the same thread. */
#ifndef MS_UNWIND_NATIVE_RECALL_H
#define MS_UNWIND_NATIVE_RECALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/objects/objects.h"
#include "base/thread/thread_own.h"
#include "unwind/stack.h"

enum { MS_RECALL_MAX = 64, MS_RECALL_LINKS = 24 };

/** Two words on the stack that led from a frame to the next, and what they said; the same twice where the
 * frame pointer was not saved. */
struct ms_recall_link {
    const uintptr_t *pc_at;
    uintptr_t pc;
    const uintptr_t *fp_at;
    uintptr_t fp;
};

/** Frames by their number from the outermost, 0, on. Places on the stack are given in bytes from its upper
 * end, below zero. */
struct ms_recall {
    struct {               /* the stack as a whole, by its innermost frame, which is looked at first */
        const void *frame; /* of the hook that was called; NULL: it is not known */
        uintptr_t pc, fp;
        uint32_t last;  /* number of the innermost frame */
        uint32_t depth; /* frames that a walk takes at most, as it was */
        ms_stack_id id;
        const struct ms_recall_link *end; /* of what is to be looked at, once that is listed; else NULL */
    } latest;
    struct ms_recall_link links[MS_RECALL_LINKS];
    uint64_t generation;
    uintptr_t top;
    uint16_t count;
    bool is_whole; /* frame 0 is the end of the stack, not only of what was wanted */
    bool is_busy;
    uintptr_t pcs[MS_RECALL_MAX], fps[MS_RECALL_MAX];
    int32_t sps[MS_RECALL_MAX];
    int32_t pcs_at[MS_RECALL_MAX];  /* where the address in the caller was found; nothing for frame 0 */
    int32_t fps_at[MS_RECALL_MAX];  /* where the caller's frame pointer was; 0: not on the stack */
    ms_stack_id ids[MS_RECALL_MAX]; /* the stack from this frame outwards */
};
_Static_assert(sizeof(struct ms_recall) == MS_OWN_RECALL_BYTES, "its place in thread_own.h");
/** The calling thread's, which only who has one of its own writes to: where nothing is remembered, nothing is
 * found. */
static inline struct ms_recall *ms_recall_of(const struct ms_thread *me)
{
    return (struct ms_recall *)(uintptr_t)me->own->recall;
}

/** A frame that was walked now, and how it led to its caller. */
struct ms_recall_step {
    uintptr_t pc, sp, fp, pc_at, fp_at;
};

/** A walk in progress. */
struct ms_recalling {
    struct ms_recall *recall;
    uint64_t generation;
    unsigned left;  /* frames that may still be met */
    unsigned known; /* frames that were met: the walk ended there */
    unsigned max;
    uintptr_t top; /* of the stack that was walked; 0: not to be remembered */
    bool is_whole;
    struct ms_recall_step steps[MS_RECALL_MAX];
};

static inline MS_RAW uintptr_t ms_recall_word(const struct ms_recall *recall, int32_t at)
{
    return *(const uintptr_t *)(recall->top + (uintptr_t)(intptr_t)at);
}

/** The frames outside frame `from` are what they were: each word that led from one to the next says the same.
 * Else *changed_p is the frame that leads elsewhere. What begins a thread calls one function in its life. */
static inline MS_RAW bool ms_recall_leads_on(const struct ms_recall *recall, unsigned from,
                                             unsigned *changed_p)
{
    for (unsigned i = from; i > recall->is_whole; i--) {
        int32_t fp_at = recall->fps_at[i];
        if (ms_recall_word(recall, recall->pcs_at[i]) != recall->pcs[i - 1] ||
            (fp_at && ms_recall_word(recall, fp_at) != recall->fps[i - 1])) {
            *changed_p = i;
            return false;
        }
    }
    return true;
}

/** True if all that led outwards from the latest stack's innermost frame says what it said; it is listed
 * then, so that the next look is a shorter one. Deep stacks are not listed. */
MS_RAW bool ms_recall_leads_on_unlisted(struct ms_recall *recall);
static inline MS_RAW bool ms_recall_latest_leads_on(struct ms_recall *recall)
{
    const struct ms_recall_link *link = recall->links, *end = recall->latest.end;
    if (MS_UNLIKELY(!end))
        return ms_recall_leads_on_unlisted(recall);
    do {
        if (*link->pc_at != link->pc || *link->fp_at != link->fp)
            return false;
    } while (++link < end);
    return true;
}

/** The commonest case of all: the very call that was walked latest, from the same stack, while no object
 * went. Nothing but `frame`, which is a hook's own, is read before the registers are known to be those of a
 * frame that was remembered on this thread's stack. Returns the stack, or 0. */
static inline MS_RAW ms_stack_id ms_recall_again(struct ms_recall *recall, const void *frame,
                                                 uintptr_t caller)
{
#ifdef __x86_64__
    const uintptr_t *words = frame;
    if (recall->latest.frame != frame || recall->latest.pc != caller || words[1] != caller ||
        recall->latest.fp != words[0] || recall->generation != ms_objects_unloads())
        return 0;
    return ms_recall_latest_leads_on(recall) ? recall->latest.id : 0;
#else
    (void)recall, (void)frame, (void)caller;
    return 0;
#endif
}

#endif
