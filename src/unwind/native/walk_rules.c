/* walk_rules.c - the walk by cached rules: the hot path of taking a stack.
 *
 * Floor 1. No lock, no allocation, reentrant; an address never seen before costs a visit to rules.c. Nothing
 * on the stack is believed: a word is read only where ms_reach_load knows that it can be, the stack pointer
 * must grow from frame to frame, and the number of frames is bounded. Garbage ends the walk. */
#include <stddef.h>

#include "base/objects/objects.h"
#include "unwind/native/rules.h"
#include "unwind/native/unwind.h"

struct walk {
    uintptr_t pc, sp, fp;
    bool interrupted; /* pc is the next instruction, not the one after a call */
    uintptr_t saved;  /* if interrupted: where the signal frame has saved the registers */
    bool sp_is_guess; /* aarch64: what a frame pointer leads to says nothing of the stack pointer */
    struct ms_reach reach;
};

/* The order in which the kernel saves registers, by libunwind's numbers. */
#if defined(__x86_64__)
static const uint8_t saved_at[MS_RULE_REGS] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};
enum { FP = 6, LR = 0 };
#else
static const uint8_t saved_at[MS_RULE_REGS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                               11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                               22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
enum { FP = 29, LR = 30 };
#endif

static MS_RAW bool load_saved(struct walk *walk, unsigned reg, uintptr_t *value_p)
{
    return walk->interrupted &&
           ms_reach_load(&walk->reach, walk->saved + saved_at[reg] * sizeof *value_p, value_p);
}

/* By frame pointer, for code that keeps no tables: machine code made at run time, as a rule. The pointer must
 * lead upwards on the same stack. */
static MS_NOINLINE MS_RAW bool step_by_pointer(struct walk *walk)
{
    uintptr_t fp = walk->fp, pc, next;
    if (fp % sizeof fp != 0 || fp < walk->sp || fp - walk->sp > MS_WALK_FRAME_BYTES_MAX)
        return false;
    if (fp - walk->reach.lo >= walk->reach.span && !ms_memory_is_run(walk->sp, fp + 2 * sizeof fp))
        return false;
    if (!ms_reach_load(&walk->reach, fp, &next) || !ms_reach_load(&walk->reach, fp + sizeof fp, &pc))
        return false;
    walk->pc = ms_strip(pc);
    walk->fp = next;
    walk->sp = fp + 2 * sizeof fp;
    walk->interrupted = false;
#ifdef __aarch64__
    walk->sp_is_guess = true;
#endif
    return true;
}

/* The CFA, and what a rule may call the slot. */
static MS_RAW bool find_cfa(struct walk *walk, ms_rule rule, uintptr_t *cfa_p, uintptr_t *slot_p)
{
    unsigned kind = ms_rule_kind(rule);
    if (kind == MS_RULE_REG) {
        *slot_p = walk->fp;
        if (!load_saved(walk, ms_rule_reg(rule), cfa_p))
            return false;
        *cfa_p += (uintptr_t)ms_rule_reg_bytes(rule);
        return true;
    }
    bool by_sp = kind == MS_RULE_SP || kind == MS_RULE_SP_SLOT;
    *cfa_p = *slot_p = (by_sp ? walk->sp : walk->fp) + (uintptr_t)ms_rule_cfa_bytes(rule);
    return kind == MS_RULE_SP || kind == MS_RULE_FP || ms_reach_load(&walk->reach, *slot_p, cfa_p);
}

/* Signal frames, realigned stacks, what a signal has interrupted. */
static MS_NOINLINE MS_RAW bool step_rarely(struct walk *walk, ms_rule rule)
{
    unsigned kind = ms_rule_kind(rule);
    uintptr_t cfa, slot, pc, fp = walk->fp;
    bool signal = rule & MS_RULE_SIGNAL, leaf = rule & MS_RULE_RA_IN_LR;
    if (kind == MS_RULE_END || kind == MS_RULE_STOP)
        return false;
    if (kind == MS_RULE_GUESS || (walk->sp_is_guess && (kind == MS_RULE_SP || kind == MS_RULE_SP_SLOT)))
        return step_by_pointer(walk);
    if (!find_cfa(walk, rule, &cfa, &slot))
        return false;
    uintptr_t ra_at = (rule & MS_RULE_RA_BY_SLOT ? slot : cfa) + (uintptr_t)ms_rule_ra_bytes(rule);
    uintptr_t fp_at = (rule & MS_RULE_FP_BY_SLOT ? slot : cfa) + (uintptr_t)((int64_t)ms_rule_fp(rule) * 8);
    if (leaf ? !load_saved(walk, LR, &pc) : !ms_reach_load(&walk->reach, ra_at, &pc))
        return false;
    if (ms_rule_fp(rule) == MS_RULE_FP_LOST)
        fp = 0;
    else if (ms_rule_fp(rule) != MS_RULE_FP_KEPT && !ms_reach_load(&walk->reach, fp_at, &fp))
        return false;
    /* A handler may run on a stack of its own. */
    if (!signal && (cfa < walk->sp || (cfa == walk->sp && !leaf)))
        return false;
    *walk = (struct walk){.pc = ms_strip(pc),
                          .sp = cfa,
                          .fp = fp,
                          .interrupted = signal,
                          .saved = fp_at - saved_at[FP] * sizeof fp,
                          .reach = walk->reach};
    return true;
}

/* To the caller's frame; false at the end of what can be known. */
static inline MS_RAW bool step(struct walk *walk, ms_rule rule)
{
    unsigned plain = rule & 0xff;
    uintptr_t cfa, pc, fp = walk->fp;
    if (plain == MS_RULE_SP && !walk->sp_is_guess)
        cfa = walk->sp + (uintptr_t)ms_rule_cfa_bytes(rule);
    else if (plain == MS_RULE_FP)
        cfa = walk->fp + (uintptr_t)ms_rule_cfa_bytes(rule);
    else
        return step_rarely(walk, rule);
    int16_t fp_words = ms_rule_fp(rule);
    if (cfa <= walk->sp || !ms_reach_load(&walk->reach, cfa + (uintptr_t)ms_rule_ra_bytes(rule), &pc))
        return false;
    if (fp_words == MS_RULE_FP_LOST)
        fp = 0;
    else if (fp_words != MS_RULE_FP_KEPT &&
             !ms_reach_load(&walk->reach, cfa + (uintptr_t)((int64_t)fp_words * 8), &fp))
        return false;
    walk->pc = ms_strip(pc);
    walk->sp = cfa;
    walk->fp = fp;
    walk->interrupted = false;
#ifdef __aarch64__
    walk->sp_is_guess = false;
#endif
    return true;
}

/* --- what the latest walk saw (recall.h) --- */

/* True if the walk has come to a frame that is remembered with all outside it; `count` frames were taken,
 * this one included. */
static inline MS_RAW bool recalls(struct ms_recalling *recalling, const struct walk *walk, unsigned count)
{
    const struct ms_recall *recall = recalling->recall;
    intptr_t at = (intptr_t)(walk->sp - recall->top);
    unsigned left = recalling->left, changed;
    while (left && recall->sps[left - 1] < at)
        left--;
    recalling->left = left;
    /* A signal that came right behind a call finds the registers that the call found, and is another
     * frame. */
    if (!left || recall->sps[left - 1] != at || recall->pcs[left - 1] != walk->pc ||
        recall->fps[left - 1] != walk->fp || walk->interrupted)
        return false;
    unsigned all = count - 1 + left;
    if (recall->is_whole ? all > recalling->max : all != recalling->max)
        return false;
    if (!ms_recall_leads_on(recall, left - 1, &changed)) {
        recalling->left = changed; /* frames inside that one lead elsewhere too */
        return false;
    }
    recalling->known = left;
    return true;
}

static inline MS_RAW void note_frame(struct ms_recalling *recalling, const struct walk *walk, unsigned number)
{
    if (number < MS_RECALL_MAX)
        recalling->steps[number] = (struct ms_recall_step){.pc = walk->pc, .sp = walk->sp, .fp = walk->fp};
    else
        recalling->top = 0;
}

/* How the frame led to where the walk is now. */
static inline MS_RAW void note_step(struct ms_recalling *recalling, const struct walk *walk, unsigned number,
                                    ms_rule rule)
{
    int16_t fp_words = ms_rule_fp(rule);
    if ((rule & 0xff) != MS_RULE_SP && (rule & 0xff) != MS_RULE_FP) {
        recalling->top = 0;
    } else if (number < MS_RECALL_MAX) {
        struct ms_recall_step *step = &recalling->steps[number];
        step->pc_at = walk->sp + (uintptr_t)ms_rule_ra_bytes(rule);
        step->fp_at = fp_words == MS_RULE_FP_KEPT || fp_words == MS_RULE_FP_LOST
                          ? 0
                          : walk->sp + (uintptr_t)((int64_t)fp_words * 8);
    }
}

static inline void end_recalling(struct ms_recalling *recalling, ms_rule rule)
{
    recalling->is_whole = true;
    if (ms_rule_kind(rule) != MS_RULE_END) /* it came to a wrong end */
        recalling->top = 0;
}

/* The loaded objects that a walk's rules are for. */
struct loaded {
    uint64_t generation;
    bool is_checked; /* asked of the loader since the walk began: what lies on this stack was loaded before
                        that */
};

/* Learns what the walk needs next. An object may have been unloaded since the rules were learned that led
 * here: then 0 is returned, and the walk starts again. */
static MS_NOINLINE ms_rule walk_rules_learn(const struct walk *walk, struct loaded *loaded)
{
    if (!loaded->is_checked) {
        uint64_t before = loaded->generation;
        ms_objects_refresh();
        *loaded = (struct loaded){ms_objects_unloads(), true};
        if (loaded->generation != before)
            return 0;
    }
    return ms_rule_learn(walk->pc, walk->interrupted, loaded->generation);
}

/* From `start` on; *lost_p is set, and nothing else said, if rules became outdated on the way. */
static inline MS_RAW unsigned walk_from(const struct walk *start, uintptr_t caller, uintptr_t *frames,
                                        unsigned max, struct loaded *loaded, bool *lost_p,
                                        struct ms_recalling *recalling, uintptr_t *sps)
{
    struct walk walk = *start;
    struct ms_rule_line *lines = ms_rules_start();
    unsigned count = 0, inner = 0;
    if (!lines)
        return 0;
    for (;;) {
        if (sps && (count || walk.pc == caller))
            sps[count] = walk.sp;
        if (count || walk.pc == caller)
            frames[count++] = walk.pc + walk.interrupted; /* as stack.h has it */
        else if (++inner > MS_WALK_INNER_MAX)
            return 0;
        if (recalling && count) {
            if (recalls(recalling, &walk, count))
                return count;
            note_frame(recalling, &walk, count - 1);
        }
        if (count == max)
            return count;
        ms_rule rule = ms_rule_find(lines, ms_rule_hash(walk.pc, walk.interrupted, loaded->generation));
        if (MS_UNLIKELY(!rule) && !(rule = walk_rules_learn(&walk, loaded))) {
            *lost_p = true;
            return 0;
        }
        /* Not an address of code: it came from a wrong turn. */
        if (MS_UNLIKELY(rule == MS_RULE_STOP)) {
            if (recalling)
                recalling->top = 0;
            return count > 1 ? count - 1 : count;
        }
        if (!step(&walk, rule) || walk.pc < MS_PAGE_BYTES) {
            if (recalling)
                end_recalling(recalling, rule);
            return count;
        }
        if (recalling && count)
            note_step(recalling, &walk, count - 1, rule);
    }
}

static MS_RAW void reach_around(struct walk *walk, uintptr_t at)
{
    /* Memory that cannot be had now is asked for word by word. */
    if (!ms_reach_for(&walk->reach, at))
        walk->reach = (struct ms_reach){0, 0};
}

/* If `frame` is a frame of the usual form, the walk begins right at the caller. */
static MS_RAW bool start_at_caller(struct walk *walk, const void *frame, uintptr_t caller)
{
#ifdef __x86_64__
    const uintptr_t *words = frame;
    if (words[1] != caller)
        return false;
    *walk = (struct walk){.pc = caller, .sp = (uintptr_t)(words + 2), .fp = words[0]};
    reach_around(walk, (uintptr_t)words);
    return true;
#else
    (void)walk, (void)frame, (void)caller;
    return false;
#endif
}

/* Else it begins with our own frames, and drops them. */
static MS_RAW void start_here(struct walk *walk, const void *own_frame, const void *own_cfa,
                              uintptr_t own_caller)
{
    *walk = (struct walk){
        .pc = ms_strip(own_caller), .sp = (uintptr_t)own_cfa, .fp = *(const uintptr_t *)own_frame};
    reach_around(walk, (uintptr_t)own_frame);
}

/* In the frame of its caller. */
static inline __attribute__((always_inline)) MS_RAW void find_start(struct walk *start, const void *frame,
                                                                    uintptr_t caller)
{
    if (start_at_caller(start, frame, caller))
        return;
    const uintptr_t *own_frame = __builtin_frame_address(0);
#ifdef __x86_64__
    start_here(start, own_frame, own_frame + 2, (uintptr_t)__builtin_return_address(0));
#else
    start_here(start, own_frame, __builtin_dwarf_cfa(), (uintptr_t)__builtin_return_address(0));
#endif
}

static inline __attribute__((always_inline)) MS_RAW unsigned
walk_whole(const void *frame, uintptr_t caller, uintptr_t *frames, uintptr_t *sps, unsigned max)
{
    struct walk start;
    if (MS_UNLIKELY(ms_objects_stale()))
        ms_objects_refresh();
    struct loaded loaded = {ms_objects_unloads(), false};
    find_start(&start, frame, caller);
    bool lost = false;
    unsigned count = walk_from(&start, caller, frames, max, &loaded, &lost, NULL, sps);
    /* Not lost again: the loader was asked. */
    return lost ? walk_from(&start, caller, frames, max, &loaded, &lost, NULL, sps) : count;
}

MS_NOINLINE MS_RAW unsigned ms_unwind_walk(const void *frame, uintptr_t caller, uintptr_t *frames,
                                           unsigned max)
{
    return walk_whole(frame, caller, frames, NULL, max);
}

MS_NOINLINE MS_RAW unsigned ms_unwind_walk_extents(const void *frame, uintptr_t caller, uintptr_t *frames,
                                                   uintptr_t *sps, unsigned max)
{
    return walk_whole(frame, caller, frames, sps, max);
}

/* The frames that are remembered hold while the same objects are loaded, and on the same stack. */
static MS_RAW void begin_recalling(struct ms_recalling *recalling, const struct walk *start, unsigned max)
{
    const struct ms_recall *recall = recalling->recall;
    uintptr_t end = start->reach.lo + start->reach.span + sizeof end - 1;
    bool is_own = start->reach.span && end == ms_memory_stack_end();
    recalling->generation = ms_objects_unloads();
    recalling->known = 0;
    recalling->max = max;
    recalling->top = is_own ? end : 0;
    recalling->is_whole = false;
    recalling->left = is_own && recall->top == end && recall->generation == recalling->generation &&
                              recall->latest.depth == max
                          ? recall->count
                          : 0;
}

MS_NOINLINE MS_RAW unsigned ms_unwind_walk_recalling(const void *frame, uintptr_t caller, uintptr_t *frames,
                                                     unsigned max, struct ms_recalling *recalling)
{
    struct walk start;
    if (MS_UNLIKELY(ms_objects_stale()))
        ms_objects_refresh();
    struct loaded loaded = {ms_objects_unloads(), false};
    find_start(&start, frame, caller);
    begin_recalling(recalling, &start, max);
    bool lost = false;
    unsigned count = walk_from(&start, caller, frames, max, &loaded, &lost, recalling, NULL);
    if (MS_LIKELY(!lost))
        return count;
    begin_recalling(recalling, &start, max);
    return walk_from(&start, caller, frames, max, &loaded, &lost, recalling, NULL);
}
