/* streams.h - what a thread has at hand for requests and frees in the order of streams: for each of its
 * latest streams the stream arena of one pool.
 *
 * Floor 2.5, for src/fastpath alone. It lies in what a thread has for itself (thread_own.h), by the stream's
 * handle, and is good as long as no stream, pool or current pool has changed (ms_stream_changes), and both
 * locks are the thread's own. */
#ifndef MS_FASTPATH_STREAMS_H
#define MS_FASTPATH_STREAMS_H

#include "base/thread/thread_own.h"
#include "fastpath/inside.h"
#include "pool/stream/stream_arena.h"

/* As many sets as a program may use streams in turn (bench's many_streams), each of two that differ in a bit
 * of the place. */
enum { MS_FAST_STREAMS_BITS = 5, MS_FAST_STREAMS = 2 << MS_FAST_STREAMS_BITS };

struct ms_fast_stream {
    struct ms_fast_heap at;
    uint64_t stream, pool; /* as the program names them */
    uint64_t context;      /* that has to be current, where each has its own such stream; 0: any may be */
    uint64_t changes;      /* ms_stream_changes when it was learned */
};
_Static_assert(MS_FAST_STREAMS * sizeof(struct ms_fast_stream) == MS_OWN_STREAMS_BYTES,
               "its place in thread_own.h");

/** The place of a stream, where another may be; of a thread that has such places. */
static MS_INLINE const struct ms_fast_stream *ms_fast_stream_at(const struct ms_thread *me, uint64_t stream)
{
    uint64_t set = stream * 0x9e3779b97f4a7c15u >> (64 - MS_FAST_STREAMS_BITS);
    const struct ms_fast_stream *at = (const struct ms_fast_stream *)(const void *)me->own->streams + 2 * set;
    return MS_LIKELY(at->stream == stream) ? at : at + 1;
}

/** NULL if the thread has nothing at hand for the stream, or what that depends on has changed. A capture may
 * make a call a node of a graph. */
static MS_INLINE const struct ms_fast_stream *ms_fast_stream_of(const struct ms_thread *me,
                                                                const struct ms_gpu *gpu, uint64_t stream)
{
    if (MS_UNLIKELY(!me->own->streams))
        return NULL;
    const struct ms_fast_stream *of = ms_fast_stream_at(me, stream);
    if (MS_UNLIKELY(!of->at.heap || of->stream != stream ||
                    of->changes != atomic_load_explicit(&ms_stream_changes, memory_order_acquire) ||
                    ms_captures_may_be_open()))
        return NULL;
    return MS_LIKELY(!of->context) || fast_is_current(me, gpu, of->context) ? of : NULL;
}

/** learn.c: its two locks are the chosen ones, and the context's heap is put aside. */
void ms_fast_stream_choose_another(struct ms_thread *me, const struct ms_fast_stream *of);
static MS_INLINE void ms_fast_stream_choose(struct ms_thread *me, const struct ms_fast_stream *of)
{
    if (MS_UNLIKELY(me->fast.chosen != &of->at))
        ms_fast_stream_choose_another(me, of);
}

#endif
