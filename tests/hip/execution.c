/* execution.c - memory that hipFree frees while a stream uses it. Says whether the stream was done when it
 * was back: of a stream that was made as ever; of one that has ended, in whose memory a pool's block was; and
 * then of one of an execution context. */
#include <stdio.h>

#include "vendor/abi/hip_fn.h"

/* Requests that follow find blocks at hand in the thread, and take the fast path where it is allowed. */
static int warm(void)
{
    int status = 0;
    void *block;

    for (int i = 0; i < 100; i++)
        status |= hipMalloc(&block, 4096) | hipFree(block);
    return status;
}

static void say_free(const char *which, hipStream_t stream)
{
    void *block;
    int status = hipMalloc(&block, 4096);

    status |= hipMemsetAsync(block, 7, 4096, stream) | hipFree(block);
    printf("%s: %d, %s\n", which, status, hipStreamQuery(stream) == hipSuccess ? "done" : "going on");
}

/* The block is of another stream, which waits for nothing. */
static void say_ended(hipStream_t own)
{
    hipStream_t other;
    hipEvent_t end;
    void *block;
    int status = hipMallocAsync(&block, 1 << 20, own) | hipStreamSynchronize(own);

    status |= hipStreamCreateWithFlags(&other, hipStreamNonBlocking) | hipEventCreate(&end);
    status |= hipMemsetAsync(block, 7, 1 << 20, other) | hipEventRecord(end, other) | hipStreamDestroy(other);
    status |= hipFree(block);
    printf("a stream that has ended: %d, %s\n", status,
           hipEventQuery(end) == hipSuccess ? "done" : "going on");
}

int main(void)
{
    static int context;
    hipStream_t own, its;
    int status = hipStreamCreateWithFlags(&own, hipStreamNonBlocking);

    status |= warm();
    say_free("a stream", own);
    say_ended(own);
    status |= warm();
    status |= hipExecutionCtxStreamCreate(&its, (hipExecutionCtx_t)&context, hipStreamNonBlocking, 0);
    say_free("a stream of a context", its);
    return status;
}
