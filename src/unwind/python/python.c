/* python.c - taking the calling thread's Python stack.
 *
 * Floor 1. No lock and no allocation for a stack that is remembered, or whose parts are all known. A thread
 * has its own memory of its latest stack (python_thread.h); a signal handler that interrupts a capture in the
 * same thread gets none. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/at_fork.h"
#include "base/thread/guard.h"
#include "unwind/frame.h"
#include "unwind/python/python_life.h"
#include "unwind/python/python_thread.h"

/* The process's first thread; 0 until asked for. */
static _Atomic uint32_t process_id;

static bool is_first_thread(void)
{
    uint32_t pid = atomic_load_explicit(&process_id, memory_order_relaxed);
    if (MS_UNLIKELY(pid == 0)) {
        pid = (uint32_t)getpid();
        atomic_store_explicit(&process_id, pid, memory_order_relaxed);
    }
    return ms_thread_id() == pid;
}

static bool is_running(const struct ms_python_symbols *symbols)
{
    return symbols->is_initialized() && !symbols->is_finalizing();
}

/* Up to 3.11 `current` is whoever holds the interpreter's lock, which in a sub-interpreter may be another
 * state of this thread's than the first. */
static bool python_is_ours(const struct ms_python_layout *layout, uintptr_t state)
{
    uint64_t thread_id;
    if (!layout->state_thread_id)
        return true;
    return ms_memory_copy(state + layout->state_thread_id, &thread_id, sizeof thread_id) &&
           thread_id == (uint64_t)pthread_self();
}

/* The calling thread's state, 0 if it has none; whether it holds the interpreter's lock. */
static uintptr_t thread_state(const struct ms_python_interpreter *interpreter, bool *is_attached_p)
{
    const struct ms_python_symbols *symbols = &interpreter->symbols;
    uintptr_t holder = symbols->current ? (uintptr_t)symbols->current() : 0;
    *is_attached_p = true;
    if (MS_LIKELY(holder && !interpreter->layout.state_thread_id))
        return holder;
    uintptr_t first = (uintptr_t)symbols->this_thread();
    *is_attached_p = holder != 0 && (holder == first || python_is_ours(&interpreter->layout, holder));
    return *is_attached_p ? holder : first;
}

static MS_RAW bool find_head(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                             uintptr_t state, struct ms_python_head *head)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    uint64_t word;
    *head = (struct ms_python_head){0, 0, false};
    if (!ms_python_read_word(reader, state + layout->state_frame, &word))
        return false;
    head->frame = (uintptr_t)word;
    if (!layout->has_cframe || !word)
        return true;
    head->cframe = layout->chain == MS_PYTHON_CHAIN_CFRAMES ? (uintptr_t)word : 0;
    if (!ms_python_read_word(reader, (uintptr_t)word + layout->cframe_frame, &word))
        return false;
    head->frame = (uintptr_t)word;
    return true;
}

/* Forgets what is remembered of another interpreter, or of another life of this one; where code objects have
 * no numbers, also what was remembered when one went since. Numbers do where the thread is in the main
 * interpreter, of which it is known that it has not ended since. */
static MS_RAW bool keep_to_interpreter(const struct ms_python_interpreter *interpreter,
                                       struct ms_python_thread *thread, uintptr_t state, uint64_t deaths,
                                       bool *codes_stay_p)
{
    uint64_t interp = 0, life = atomic_load_explicit(&ms_python_life, memory_order_acquire);
    if (interpreter->layout.state_interp &&
        !ms_python_read_word(&thread->reader, state + interpreter->layout.state_interp, &interp))
        return false;
    if (MS_UNLIKELY(thread->interp != interp || thread->life != life ||
                    thread->generation != interpreter->generation)) {
        thread->generation = interpreter->generation;
        thread->life = life;
        thread->interp = (uintptr_t)interp;
        thread->count = 0;
        memset(thread->known_at, 0, sizeof thread->known_at);
    }
    if (deaths && deaths != thread->deaths)
        thread->count = 0;
    thread->deaths = deaths;
    *codes_stay_p =
        deaths || (life && interp == atomic_load_explicit(&ms_python_life_main, memory_order_relaxed));
    return true;
}

/* Puts what was walked upon what is remembered of the outer frames; returns how many frames are new. */
static unsigned put_fresh(const struct ms_python_layout *layout, struct ms_python_thread *thread,
                          unsigned fresh, unsigned joined)
{
    unsigned frames = joined ? thread->records[joined - 1].frames : 0, new = 0;
    for (unsigned i = fresh; i-- > 0; joined++) {
        struct ms_python_record *record = &thread->records[joined];
        *record = thread->fresh[i];
        if (record->is_told) {
            unsigned place = MS_PYTHON_DEPTH_MAX - ++frames;
            thread->told[place] = (struct ms_python_frame){record->print.row, record->offset, record->entry};
            thread->values[place] = (uintptr_t)(ms_frame_python(record->print.row, record->offset) |
                                                (record->entry ? MS_FRAME_ENDS_EVAL : 0));
            new ++;
        }
        record->frames = (uint16_t)frames;
        ms_python_remember(layout, thread, joined);
    }
    thread->count = (uint16_t)joined;
    thread->frames = (uint16_t)frames;
    return new;
}

static unsigned count_told(const struct ms_python_thread *thread, unsigned fresh, unsigned joined)
{
    unsigned count = joined ? thread->records[joined - 1].frames : 0;
    for (unsigned i = 0; i < fresh; i++)
        count += thread->fresh[i].is_told;
    return count;
}

static ms_stack_id intern(struct ms_python_thread *thread, unsigned new)
{
    unsigned place = MS_PYTHON_DEPTH_MAX - thread->frames;
    ms_stack_id outer = thread->frames > new ? thread->ids[place + new] : 0;
    if (!new)
        return outer;
    return ms_stack_intern_below(outer, thread->values + place, new, thread->ids + place);
}

static ms_stack_id capture_anew(const struct ms_python_interpreter *interpreter,
                                struct ms_python_thread *thread, struct ms_python_head head,
                                enum ms_python *state_p)
{
    unsigned fresh = 0, joined = 0;
    enum ms_python_walk walked = ms_python_walk(interpreter, thread, head, &fresh, &joined);
    /* So many more frames than before that not all can be told. */
    if (joined &&
        (joined + fresh > MS_PYTHON_RECORDS_MAX || count_told(thread, fresh, joined) > MS_PYTHON_DEPTH_MAX)) {
        thread->count = 0;
        walked = ms_python_walk(interpreter, thread, head, &fresh, &joined);
    }
    thread->frames = 0;
    if (walked == MS_PYTHON_ODD || !is_running(&interpreter->symbols)) {
        thread->count = 0;
        *state_p = walked == MS_PYTHON_ODD && is_running(&interpreter->symbols) ? MS_PYTHON_UNSURE
                                                                                : MS_PYTHON_ABSENT;
        return 0;
    }
    ms_stack_id id = intern(thread, put_fresh(&interpreter->layout, thread, fresh, joined));
    if (!id || walked == MS_PYTHON_CUT)
        thread->count = 0;
    *state_p = thread->frames ? MS_PYTHON_READ : MS_PYTHON_NONE;
    return id;
}

static MS_RAW bool is_remembered(const struct ms_python_interpreter *interpreter,
                                 struct ms_python_thread *thread, struct ms_python_head head)
{
    if (!thread->count)
        return false;
    const struct ms_python_record *last = &thread->records[thread->count - 1];
    return last->at == head.frame && last->cframe == head.cframe && thread->frames &&
           ms_python_is_same(interpreter, thread, thread->count - 1, head.codes_stay);
}

/* Begins to watch for code objects that go, or whose numbers are given anew, where that is not known. */
static MS_NOINLINE void watch(const struct ms_python_interpreter *interpreter, bool is_attached)
{
    if (is_attached)
        ms_python_life_watch(interpreter);
    ms_python_deaths_watch(interpreter);
}

static ms_stack_id capture(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                           uintptr_t state, bool is_attached, enum ms_python *state_p)
{
    struct ms_python_head head;
    thread->reader.is_copying = !is_attached && !is_first_thread();
    if (MS_UNLIKELY(!(thread->life | thread->deaths) || thread->generation != interpreter->generation))
        watch(interpreter, is_attached);
    uint64_t deaths = ms_python_deaths(interpreter);
    if (!find_head(interpreter, &thread->reader, state, &head) ||
        !keep_to_interpreter(interpreter, thread, state, deaths, &head.codes_stay)) {
        *state_p = MS_PYTHON_UNSURE;
        thread->frames = 0;
        return 0;
    }
    if (MS_LIKELY(is_remembered(interpreter, thread, head))) {
        *state_p = MS_PYTHON_READ;
        return thread->ids[MS_PYTHON_DEPTH_MAX - thread->frames];
    }
    return capture_anew(interpreter, thread, head, state_p);
}

ms_stack_id ms_python_capture(enum ms_python *state_p)
{
    const struct ms_python_interpreter *interpreter;
    int saved_errno = errno;
    bool is_attached;
    uintptr_t state = 0;
    ms_stack_id id = 0;
    *state_p = MS_PYTHON_ABSENT;
    interpreter = ms_python_interpreter();
    if (interpreter && is_running(&interpreter->symbols)) {
        *state_p = MS_PYTHON_NONE;
        state = thread_state(interpreter, &is_attached);
    }
    if (state) {
        struct ms_python_thread *thread = ms_python_thread();
        *state_p = MS_PYTHON_UNSURE;
        if (thread && !thread->is_busy) {
            thread->is_busy = true;
            atomic_signal_fence(memory_order_seq_cst);
            id = capture(interpreter, thread, state, is_attached, state_p);
            atomic_signal_fence(memory_order_seq_cst);
            thread->is_busy = false;
        }
    }
    errno = saved_errno;
    return id;
}

const struct ms_python_frame *ms_python_frames(unsigned *count_p)
{
    const struct ms_python_thread *thread = ms_python_thread_if_any();
    *count_p = thread ? thread->frames : 0;
    return thread ? thread->told + MS_PYTHON_DEPTH_MAX - thread->frames : NULL;
}

static void python_reset(void)
{
    atomic_store_explicit(&process_id, 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_STACK, python_reset);
