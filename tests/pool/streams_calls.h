/* streams_calls.h - a program's requests and frees in the order of streams, as hooks make them of the pool,
 * told to the driver of streams.h. */
#ifndef MS_TESTS_POOL_STREAMS_CALLS_H
#define MS_TESTS_POOL_STREAMS_CALLS_H

#include "streams.h"

/** A block that the stream has used right away; 0 if the pool did not serve it. */
static inline uint64_t model_take(const struct ms_gpu *gpu, uint64_t pool, uint64_t bytes, uint64_t stream)
{
    struct ms_pool_block block;
    struct ms_stream *s = ms_stream_of(gpu, stream);
    if (!s || ms_stream_captures(s) ||
        ms_stream_alloc(s, pool, bytes, MS_POOL_ANYHOW, &block) != MS_POOL_SERVED)
        return 0;
    model_given(stream, block.address, bytes);
    model_used(stream, block.address, bytes);
    return block.address;
}

/** 0, the status of a free that is refused, or -1 for what is not the pool's. */
static inline int model_give(const struct ms_gpu *gpu, uint64_t address, uint64_t stream)
{
    struct ms_pool_block block;
    int status = 0;
    struct ms_stream *s = ms_stream_of(gpu, stream);
    enum ms_pool_verdict verdict = ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status);
    if (verdict != MS_POOL_SERVED)
        return verdict == MS_POOL_PASSED ? -1 : status;
    model_freed(stream, address, block.granted, block.requested);
    ms_stream_free_end(&block, s);
    return 0;
}

#endif
