/* The simulated driver: streams that wait for a word in memory and write one. */
#include "driver.h"

static void waits(void)
{
    CUstream a, b;
    CUdeviceptr p;
    uint32_t *word;
    uint64_t wide = 0;

    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemsetD8_v2(p, 0, 64));
    must(cuMemHostAlloc((void **)&word, 64, 0));
    memset(word, 0, 64);
    must(cuCtxSynchronize());

    answers(cuStreamWaitValue32_v2(a, (uintptr_t)word, 5, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    must(cuMemsetD32Async(p, 1, 1, a));
    pause_ms(10);
    answers(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    __atomic_store_n(word, 4, __ATOMIC_RELEASE);
    pause_ms(10);
    answers(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    __atomic_store_n(word, 6, __ATOMIC_RELEASE);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);

    answers(cuStreamWaitValue64_v2(a, p + 8, 0x100000001, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    must(cuStreamWriteValue64_v2(a, p + 16, 7, 0));
    answers(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    answers(cuStreamWriteValue64_v2(b, p + 8, 0x100000001, 0), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(&wide, p + 16, 8));
    is_u64(wide, 7, "a stream goes on when another has written");

    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = p;
    ops[0].writeValue.value = 0xf0;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = p;
    ops[1].waitValue.value = 0x10;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_AND;
    answers(cuStreamBatchMemOp_v2(a, 2, ops, 0), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    answers(cuStreamWaitValue32_v2(a, p, 0xf0, CU_STREAM_WAIT_VALUE_NOR), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);

    answers(cuStreamWaitValue32_v2(a, p + 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuStreamWaitValue32_v2(a, p, 0, 16), CUDA_ERROR_INVALID_VALUE);
    answers(cuStreamWaitValue32_v2(a, p, 0, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuStreamWriteValue32_v2(a, 0x1000, 0, 0), CUDA_ERROR_INVALID_VALUE);
    must(cuStreamDestroy_v2(a));
    must(cuStreamDestroy_v2(b));
    must(cuMemFree_v2(p));
    must(cuMemFreeHost(word));
}

int main(void)
{
    plan(0);
    begin();
    waits();
    return done();
}
