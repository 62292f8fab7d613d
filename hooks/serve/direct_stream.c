/* direct_stream.c - cudaMallocAsync, cudaMallocFromPoolAsync and cudaFreeAsync, answered in the runtime's own
 * hook.
 *
 * See direct.h. Runs in the program's threads, inside a hook scope. No lock of its own. A created stream's
 * handle is the same for the runtime and the driver; of the default ones the driver says which context is
 * current. What belongs into a graph goes the whole way. */
#include "hooks/serve/direct.h"

#include "vendor/gpu.h"
#include "hooks/serve/serve_call.h"
#include "record/live/uses.h"
#include "pool/stream/stream.h"

static MS_INLINE struct ms_stream *stream_of(const struct ms_gpu *gpu, uint64_t handle)
{
    struct ms_stream *stream = ms_stream_of(gpu, handle);

    return stream && !ms_stream_captures(stream) && ms_serve_context_is_served(ms_stream_context(stream))
               ? stream
               : NULL;
}

bool ms_direct_alloc_async(unsigned row, enum ms_directly which, const void *frame, const void *caller,
                           uint64_t *out, uint64_t bytes, uint64_t pool, uint64_t handle)
{
    const struct ms_gpu *gpu = ms_direct_mine(which)->gpu;
    const struct request request = {row, gpu, frame, caller, bytes, bytes, handle};
    struct ms_hook_scope scope;
    struct ms_pool_block given MS_CACHELINE;
    struct ms_stream *stream;
    bool served;

    if (!out || !bytes || !ms_direct_is_ordinary())
        return false;
    enter(&scope, NULL);
    stream = stream_of(gpu, handle);
    served = stream && ms_stream_hit(stream, pool, bytes, &given);
    if (MS_LIKELY(served)) {
        record(&request, NULL, &given);
        ms_ledger_call_answered((uint16_t)row, bytes);
        *out = given.address;
        if (ms_direct_may_learn())
            ms_fast_learn_ordered(&ms_thread, gpu, (struct ms_fast_order){handle, pool});
    }
    leave(&scope, NULL);
    return served;
}

bool ms_direct_free_async(unsigned row, uint64_t address, uint64_t handle)
{
    const struct ms_gpu *gpu = ms_direct_driver(MS_DIRECTLY_CURRENT);
    struct ms_hook_scope scope;
    struct ms_pool_block block MS_CACHELINE;
    struct ms_stream *stream;
    bool served;

    if (!address || !gpu || !ms_direct_is_ordinary() || ms_uses_wanted()) /* whose stack is to be known */
        return false;
    enter(&scope, NULL);
    ms_serve_expect_free(address);
    stream = stream_of(gpu, handle);
    served = stream && ms_stream_free_hit(address, &block);
    if (MS_LIKELY(served)) {
        ms_ledger_unserve(block.record_id, block.address, NULL);
        ms_stream_free_end(&block, stream);
        ms_ledger_call_answered((uint16_t)row, 0);
    }
    leave(&scope, NULL);
    return served;
}
