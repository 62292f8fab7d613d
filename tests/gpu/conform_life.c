/*
 * conform_life.c: the lives of contexts: what is gone with one that is destroyed or reset, and what one that
 * has failed answers. The parts that break their context do so at their end or are nothing else.
 */
#include "conform.h"

static void counters(const char *when, CUdevice device)
{
    unsigned flags = 0;
    int active = 0;

    kit_must(cuDevicePrimaryCtxGetState(device, &flags, &active));
    say(when, "active %d, flags %u", active, flags);
}

static void plain_context(CUcontext primary)
{
    CUcontext plain, now = NULL;
    CUdeviceptr d, base, outside = conform_get(KIT_MIB);
    size_t before = conform_free_bytes(), bytes = 0;
    unsigned long long one = 0, two = 0;

    say_status("create", cuCtxCreate_v2(&plain, 0, 0));
    kit_must(cuCtxGetCurrent(&now));
    say_yes("created_is_current", now == plain);
    kit_must(cuCtxGetId(plain, &one));
    d = conform_get(64 * KIT_MIB);
    say_yes("memory_of_other_is_reached", cuMemsetD8_v2(outside, 1, 16) == CUDA_SUCCESS);
    say_status("pop", cuCtxPopCurrent_v2(&now));
    kit_must(cuCtxGetCurrent(&now));
    say_yes("popped_to_primary", now == primary);
    say_status("use_from_primary", cuMemsetD8_v2(d, 1, 16));
    kit_must(cuCtxSynchronize());
    say_status("range_from_primary", cuMemGetAddressRange_v2(&base, &bytes, d));
    say_status("destroy", cuCtxDestroy_v2(plain));
    say_yes("memory_comes_back", before - conform_free_bytes() < 32 * KIT_MIB);
    say_status("range_after_destroy", cuMemGetAddressRange_v2(&base, &bytes, d));
    say_status("free_after_destroy", cuMemFree_v2(d));
    kit_must(cuCtxCreate_v2(&plain, 0, 0));
    kit_must(cuCtxGetId(plain, &two));
    say_yes("ids_differ", one != two);
    kit_must(cuCtxDestroy_v2(plain));
    kit_must(cuCtxGetCurrent(&now));
    say_yes("destroyed_current_gives_way", now == primary);
    kit_must(cuCtxSetCurrent(primary));
    say_status("free_own", cuMemFree_v2(outside));
}

void conform_context(int argc, char **argv)
{
    CUcontext primary = kit_begin(), again = NULL;
    CUdeviceptr d, base;
    size_t bytes = 0;

    (void)argc;
    (void)argv;
    plain_context(primary);
    say_status("retain_again", cuDevicePrimaryCtxRetain(&again, 0));
    say_yes("retained_is_same", again == primary);
    counters("state", 0);
    say_status("release_one", cuDevicePrimaryCtxRelease_v2(0));
    d = conform_get(KIT_MIB);
    say_status("alloc_while_one_is_left", cuMemGetAddressRange_v2(&base, &bytes, d));
    say_status("release_last", cuDevicePrimaryCtxRelease_v2(0));
    counters("state_after_release", 0);
    say_status("release_too_often", cuDevicePrimaryCtxRelease_v2(0));
    say_status("alloc_after_release", cuMemAlloc_v2(&d, 4096));
    kit_must(cuDevicePrimaryCtxRetain(&again, 0));
    kit_must(cuCtxSetCurrent(again));
    say_status("range_after_new_life", cuMemGetAddressRange_v2(&base, &bytes, d));
    say_status("alloc_in_new_life", cuMemAlloc_v2(&d, 4096));
}

void conform_reset(int argc, char **argv)
{
    struct cudaPointerAttributes attributes = {0};
    size_t before = 0, after = 0, total = 0;
    cudaStream_t stream;
    void *p = NULL, *q = NULL;

    (void)argc;
    (void)argv;
    say_status("reset_before_all", cudaDeviceReset());
    kit_must(cudaFree(NULL));
    kit_must(cudaMemGetInfo(&before, &total));
    kit_must(cudaMalloc(&p, 512 * KIT_MIB));
    kit_must(cudaStreamCreate(&stream));
    kit_must(cudaMallocAsync(&q, 256 * KIT_MIB, stream));
    kit_must(cudaStreamSynchronize(stream));
    say_status("reset", cudaDeviceReset());
    say_status("last_error", cudaGetLastError());
    say_status("attributes_after", cudaPointerGetAttributes(&attributes, p));
    say("type_after", "%d", attributes.type);
    cudaGetLastError();
    kit_must(cudaMemGetInfo(&after, &total));
    say_yes("memory_comes_back", after + 384 * KIT_MIB > before);
    say_yes("memory_of_pool_comes_back", after + 128 * KIT_MIB > before);
    say_status("free_old", cudaFree(p));
    cudaGetLastError();
    say_status("alloc_new", cudaMalloc(&p, KIT_MIB));
    say_status("set_new", cudaMemset(p, 1, KIT_MIB));
    say_status("alloc_async_new", cudaMallocAsync(&q, KIT_MIB, NULL));
    say_status("free_async_new", cudaFreeAsync(q, NULL));
    say_status("synchronize_new", cudaDeviceSynchronize());
    say_status("free_new", cudaFree(p));
    say_status("reset_again", cudaDeviceReset());
}

/* --- contexts that have failed -------------------------------------------------------------------------- */

static void after_error(CUdeviceptr d, CUevent event, CUstream stream)
{
    CUdeviceptr fresh = 1, base;
    size_t left = 0, total = 0;
    void *p = (void *)1;

    say_status("synchronize_again", cuCtxSynchronize());
    say_status("alloc", cuMemAlloc_v2(&fresh, KIT_MIB));
    say_yes("alloc_leaves_pointer", fresh == 1);
    say_status("free", cuMemFree_v2(d));
    say_status("info", cuMemGetInfo_v2(&left, &total));
    say_status("range", cuMemGetAddressRange_v2(&base, &total, d));
    say_status("stream_query", cuStreamQuery(stream));
    say_status("event_query", cuEventQuery(event));
    say_status("set", cuMemsetD8_v2(d, 1, 16));
    say_status("alloc_async", cuMemAllocAsync(&fresh, KIT_MIB, stream));
    say_status("runtime_malloc", cudaMalloc(&p, KIT_MIB));
    say_status("runtime_free", cudaFree((void *)(uintptr_t)d));
    say_status("runtime_last_error", cudaGetLastError());
    say_status("runtime_last_error_again", cudaGetLastError());
}

static void fail(bool trap)
{
    CUdeviceptr d;
    CUstream stream;
    CUevent event;

    kit_begin();
    kit_must(cudaFree(NULL));
    d = conform_get(KIT_MIB);
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuEventRecord(event, stream));
    kit_must(cuCtxSynchronize());
    CUfunction kernel = kit_kernel("memsim_trap");
    if (!kernel)
        kit_give_up("no kernels can be loaded here");
    CUresult status =
        trap ? cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) : kit_fill(16, 1, 1, stream);
    say("launch", "%d", (int)status);
    say_status("synchronize", cuStreamSynchronize(stream));
    after_error(d, event, stream);
    say_status("reset", cudaDeviceReset());
    void *p = NULL;
    say_status("malloc_after_reset", cudaMalloc(&p, KIT_MIB));
    CUcontext fresh;
    say_status("context_after_reset", cuCtxCreate_v2(&fresh, 0, 0));
}

void conform_illegal(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fail(false);
}

void conform_trap(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fail(true);
}
