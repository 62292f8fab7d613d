/* execution.c - memory that is freed while a stream of an execution context uses it. Says whether the stream
 * was done when hipFree was back: of a stream that was made as ever, and then of one of the context. */
#include <stdio.h>

#include "vendor/abi/hip_fn.h"

static void say_free(const char *which, hipStream_t stream)
{
    void *block;
    int status = hipMalloc(&block, 1 << 20);

    status |= hipMemsetAsync(block, 7, 1 << 20, stream) | hipFree(block);
    printf("%s: %d, %s\n", which, status, hipStreamQuery(stream) == hipSuccess ? "done" : "going on");
}

int main(void)
{
    static int context;
    hipStream_t own, its;
    int status = hipStreamCreateWithFlags(&own, hipStreamNonBlocking);

    say_free("a stream", own);
    status |= hipExecutionCtxStreamCreate(&its, (hipExecutionCtx_t)&context, hipStreamNonBlocking, 0);
    say_free("a stream of a context", its);
    return status;
}
