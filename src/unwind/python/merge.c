/* merge.c - one stack of a native one and a Python one: which stack a pair of them makes, and the marks where
 * it makes none.
 *
 * Floor 1. The native stack and the Python stack of a call are known again by themselves (recall.h,
 * python.h); which pair made which stack stands in a table of fixed size that is read and written without a
 * lock and may forget. Only a pair that is not there is put together anew: the native stack is walked once
 * more, this time with the extent of each frame, and the Python frames come where the loop that ran them is
 * (pair.h). What that takes lies in a buffer of base/thread/aux_stack.h. A signal handler that interrupts a
 * merge gets no Python frames. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/at_fork.h"
#include "base/thread/aux_stack.h"
#include "unwind/frame.h"
#include "unwind/python/merge.h"
#include "unwind/python/pair.h"
#include "unwind/python/python.h"
#include "unwind/tree.h"
#include "unwind/native/unwind.h"

/* The table of pairs: as many as make the stacks of a large program; what finds its line full takes another's
 * place. */
enum { LINES_LOG = 12, WAYS = 4, ID_BITS = 21, NAME_BYTES = 16 };
_Static_assert(MS_TABLE_NODES_ROWS <= 1 << ID_BITS, "three ids make a key");

/* A reader that sees halves of two pairs knows. Whoever reads an id reads the frames that it is of: it is
 * stored with release. */
struct pair {
    _Atomic uint64_t check, id;
};

static struct line {
    struct pair ways[WAYS];
} MS_CACHELINE lines[1 << LINES_LOG];
static _Atomic bool is_used;

/* The Python stack that any thread took latest: another one joins its frames to its own. */
static _Atomic ms_stack_id latest_python;

static MS_TLS struct {
    bool is_busy;
    ms_stack_id id, name; /* name: the mark with the thread's name, as a stack */
    uint64_t key;         /* of the latest pair */
} own;

/* The frames and stack ids that are needed to put a pair together. */
struct notes {
    uintptr_t frames[MS_STACK_DEPTH_MAX + 1], sps[MS_STACK_DEPTH_MAX + 1];
    uintptr_t merged[MS_PAIRED_MAX + MS_PSEUDO_COUNT];
    ms_stack_id ids[MS_PAIRED_MAX + MS_PSEUDO_COUNT];
};
_Static_assert(sizeof(struct notes) <= MS_AUX_STACK_BUFFER_BYTES, "they lie in a buffer");

static uint64_t merge_key_of(ms_stack_id native, ms_stack_id python, ms_stack_id name)
{
    return native | (uint64_t)python << ID_BITS | (uint64_t)name << 2 * ID_BITS;
}

static uint64_t merge_spread(uint64_t value)
{
    value *= 0x9e3779b97f4a7c15u;
    return (value ^ value >> 32) * 0xd6e8feb86659fd93u;
}

static struct line *merge_line_of(uint64_t key)
{
    return &lines[merge_spread(key) >> (64 - LINES_LOG)];
}

static ms_stack_id merge_find(uint64_t key)
{
    struct line *line = merge_line_of(key);
    for (unsigned way = 0; way < WAYS; way++) {
        uint64_t id = atomic_load_explicit(&line->ways[way].id, memory_order_acquire);
        uint64_t check = atomic_load_explicit(&line->ways[way].check, memory_order_relaxed);
        if (id && (check ^ merge_spread(id)) == key)
            return (ms_stack_id)id;
    }
    return 0;
}

static void merge_put(uint64_t key, ms_stack_id id)
{
    struct line *line = merge_line_of(key);
    unsigned way = 0;
    while (way < WAYS && atomic_load_explicit(&line->ways[way].id, memory_order_relaxed))
        way++;
    if (way == WAYS)
        way = id % WAYS;
    atomic_store_explicit(&line->ways[way].check, key ^ merge_spread(id), memory_order_relaxed);
    atomic_store_explicit(&line->ways[way].id, id, memory_order_release);
    atomic_store_explicit(&is_used, true, memory_order_relaxed);
}

/* The frames of a stack, innermost first. What a stack of Python alone knows besides them is left out. */
static unsigned take_frames(ms_stack_id id, uintptr_t *frames, unsigned max)
{
    unsigned count = 0;
    uintptr_t frame;
    uint32_t generation;
    while (id && count < max && ms_stack_node(id, &id, &frame, &generation) == 0)
        frames[count++] = ms_frame_plain(frame);
    return count;
}

/* The native stack, the marks, and the Python stack. */
static ms_stack_id merge_join(struct notes *notes, ms_stack_id native, const uintptr_t *marks,
                              unsigned mark_count, ms_stack_id python)
{
    unsigned count = take_frames(native, notes->merged, MS_STACK_DEPTH_MAX);
    for (unsigned i = 0; i < mark_count; i++)
        notes->merged[count++] = marks[i];
    count += take_frames(python, notes->merged + count, MS_PYTHON_DEPTH_MAX);
    return ms_stack_intern_below(0, notes->merged, count, notes->ids);
}

/* Fills `merged` with the frames where they belong; 0 if that does not come out. */
static unsigned merge_place(struct notes *notes, const struct ms_merge_call *call)
{
    struct ms_pairing pairing = {
        .frames = notes->frames, .sps = notes->sps, .stack_end = ms_memory_stack_end()};
    pairing.python = ms_python_frames(&pairing.python_count);
    if (call->walk != MS_WALK_UNWIND || !pairing.python_count)
        return 0;
    /* If native and Python frames are paired by their count (entry is 1), all native ones are taken. */
    unsigned max = pairing.python[0].entry == 1 ? MS_STACK_DEPTH_MAX : call->depth;
    unsigned count = ms_unwind_walk_extents(call->frame, call->caller, notes->frames, notes->sps, max + 1);
    pairing.is_cut = count > max;
    pairing.count = pairing.is_cut ? max : count;
    pairing.shown = pairing.count < call->depth ? pairing.count : call->depth;
    pairing.end = pairing.is_cut ? notes->sps[max] : 0;
    ms_python_loop(&pairing.loop, &pairing.loop_end);
    return ms_pair_frames(&pairing, notes->merged);
}

unsigned ms_merge_frames(const struct ms_merge_call *call, uintptr_t *merged)
{
    struct notes *notes = ms_aux_stack_take();
    if (!notes)
        return 0;
    unsigned count = merge_place(notes, call);
    memcpy(merged, notes->merged, count * sizeof *merged);
    ms_aux_stack_give(notes);
    return count;
}

static MS_NOINLINE ms_stack_id merge_anew(uint64_t key, ms_stack_id native, ms_stack_id python,
                                          const struct ms_merge_call *call)
{
    static const uintptr_t apart = (uintptr_t)MS_FRAME_PSEUDO << 56 | (uintptr_t)MS_PSEUDO_APART << 32;
    struct notes *notes = ms_aux_stack_take();
    if (!notes)
        return native;
    unsigned merged = merge_place(notes, call);
    ms_stack_id id = merged ? ms_stack_intern_below(0, notes->merged, merged, notes->ids)
                            : merge_join(notes, native, &apart, 1, python);
    ms_aux_stack_give(notes);
    if (!id)
        return native;
    merge_put(key, id);
    return id;
}

static ms_stack_id merge_pair(ms_stack_id native, ms_stack_id python, const struct ms_merge_call *call)
{
    uint64_t key = merge_key_of(native, python, 0);
    if (MS_UNLIKELY(atomic_load_explicit(&latest_python, memory_order_relaxed) != python))
        atomic_store_explicit(&latest_python, python, memory_order_release);
    if (MS_LIKELY(own.key == key))
        return own.id;
    ms_stack_id id = merge_find(key);
    if (!id)
        id = merge_anew(key, native, python, call);
    own.key = key;
    own.id = id;
    return id;
}

/* The mark with the calling thread's name as it is now; 0 without room. */
static ms_stack_id name_thread(void)
{
    char name[NAME_BYTES + 1] = "";
    int saved_errno = errno;
    ms_stack_id id;
    prctl(PR_GET_NAME, name, 0, 0, 0);
    errno = saved_errno;
    uintptr_t mark = (uintptr_t)ms_frame_pseudo(MS_PSEUDO_THREAD, ms_code_intern_text(name));
    return ms_stack_intern_below(0, &mark, 1, &id);
}

static MS_NOINLINE ms_stack_id infer_anew(ms_stack_id native, ms_stack_id python)
{
    uintptr_t marks[] = {0, (uintptr_t)ms_frame_pseudo(MS_PSEUDO_INFERRED, 0)};
    own.name = name_thread();
    struct notes *notes = own.name && take_frames(own.name, marks, 1) ? ms_aux_stack_take() : NULL;
    if (!notes)
        return native;
    ms_stack_id id = merge_join(notes, native, marks, 2, python);
    ms_aux_stack_give(notes);
    if (!id)
        return native;
    merge_put(merge_key_of(native, python, own.name), id);
    return id;
}

/* A thread without Python frames of its own: by its name, and the process's latest. */
static ms_stack_id infer(ms_stack_id native)
{
    ms_stack_id python = atomic_load_explicit(&latest_python, memory_order_acquire), id = 0;
    if (!python)
        return native;
    if (own.name)
        id = merge_find(merge_key_of(native, python, own.name));
    return id ? id : infer_anew(native, python);
}

/* There were Python frames, and none is believed. */
static MS_NOINLINE ms_stack_id doubt(ms_stack_id native)
{
    const uintptr_t unsure = (uintptr_t)ms_frame_pseudo(MS_PSEUDO_UNSURE, 0);
    ms_stack_id mark, id = ms_stack_intern_below(0, &unsure, 1, &mark);
    if (!id)
        return native;
    uint64_t key = merge_key_of(native, mark, 0);
    if ((id = merge_find(key)) != 0)
        return id;
    struct notes *notes = ms_aux_stack_take();
    if (!notes)
        return native;
    id = merge_join(notes, native, &unsure, 1, 0);
    ms_aux_stack_give(notes);
    if (!id)
        return native;
    merge_put(key, id);
    return id;
}

ms_stack_id ms_merge_capture(ms_stack_id native, const struct ms_merge_call *call)
{
    enum ms_python state;
    ms_stack_id id = native;
    if (MS_UNLIKELY(own.is_busy))
        return doubt(native);
    own.is_busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    ms_stack_id python = ms_python_capture(&state);
    if (MS_LIKELY(state == MS_PYTHON_READ && python))
        id = merge_pair(native, python, call);
    else if (state == MS_PYTHON_NONE)
        id = infer(native);
    else if (state == MS_PYTHON_UNSURE)
        id = doubt(native);
    atomic_signal_fence(memory_order_seq_cst);
    own.is_busy = false;
    return id;
}

static void merge_reset(void)
{
    own.key = 0;
    own.name = 0;
    own.is_busy = false;
    atomic_store_explicit(&latest_python, 0, memory_order_relaxed);
    if (!atomic_load_explicit(&is_used, memory_order_relaxed))
        return;
    for (unsigned i = 0; i < 1 << LINES_LOG; i++) {
        for (unsigned way = 0; way < WAYS; way++) {
            if (atomic_load_explicit(&lines[i].ways[way].id, memory_order_relaxed))
                atomic_store_explicit(&lines[i].ways[way].id, 0, memory_order_relaxed);
        }
    }
    atomic_store_explicit(&is_used, false, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_STACK, merge_reset);
