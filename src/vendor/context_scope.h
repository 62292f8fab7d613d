/* context_scope.h - how memshim calls the vendor for its own ends.
 *
 * A program may capture a graph in one thread while another allocates. Of the calls that a capture forbids
 * most do no harm while the calling thread's capture mode is relaxed, whoever captures, in whatever mode
 * (CUDA driver API, cuThreadExchangeStreamCaptureMode). So each call that the program did not make itself
 * is made inside a visit; docs/internals/vendor-calls.md lists them all, with the few for which that is
 * not enough. Floor 1: no lock, no allocation. */
#ifndef MS_VENDOR_CONTEXT_SCOPE_H
#define MS_VENDOR_CONTEXT_SCOPE_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "vendor/gpu.h"

/** Captures that are open in the process, whosever they are, as far as somebody has seen them begin; changed
 * by pool/clock/captures.c alone. What no mode makes harmless is not done while there are any. */
extern MS_HIDDEN _Atomic int ms_open_captures;

/** Not 0: somebody called a function that may begin a capture and that no row knows (hooks/lookup/unknown.h),
 * and may again. For good, and for all makers. hooks/ways_*.S set it too. */
extern _Atomic uint32_t ms_captures_unseen;
static inline bool ms_captures_are_unseen(void)
{
    return atomic_load_explicit(&ms_captures_unseen, memory_order_acquire) != 0;
}

/** True if a capture may be open anywhere, seen or not. */
static inline bool ms_captures_may_be_open(void)
{
    return atomic_load_explicit(&ms_open_captures, memory_order_relaxed) > 0 || ms_captures_are_unseen();
}

/** True if the stream captures, or may. An error counts: that of the legacy stream says that a blocking one
 * captures, and harms none (CUDA driver API, cuStreamIsCapturing). */
bool ms_gpu_captures(const struct ms_gpu *gpu, CUstream stream);
/** The number that a stream has for good; false if there is none to be had. One that captures is not asked: a
 * driver breaks the capture then, whatever the thread's mode is (docs/user/hardware.md). */
bool ms_gpu_stream_id(const struct ms_gpu *gpu, CUstream stream, unsigned long long *id_p);
/** True if a status says that a capture was in the way. */
static inline bool ms_gpu_is_of_captures(int status)
{
    return status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

struct ms_context_scope {
    const struct ms_gpu *gpu;
    CUstreamCaptureMode mode; /* the thread's own */
    bool pushed;
};

/** From here to the end `context` is the calling thread's current one (0: whichever is) and its capture mode
 * is relaxed. */
void ms_context_scope_begin(struct ms_context_scope *visit, const struct ms_gpu *gpu, uint64_t context);
/** Both are what they were. */
void ms_context_scope_end(struct ms_context_scope *visit);

#endif
