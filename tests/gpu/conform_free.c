/*
 * conform_free.c: what a free accepts, what it waits for, and what becomes of memory that is still worked
 * on. */
#include "conform.h"

#include <pthread.h>

static CUdeviceptr block;

static void get_block(void *data)
{
    (void)data;
    block = conform_get(4 * KIT_MIB);
}

static void free_block(void *data)
{
    (void)data;
    kit_must(cuMemFree_v2(block));
}

static void *free_elsewhere(void *data)
{
    (void)data;
    say_status("in_other_thread", cudaFree((void *)(uintptr_t)block));
    return NULL;
}

static void wrong_pointers(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr mapped = conform_map(2 * KIT_MIB, &handle), d = conform_get(3 * KIT_MIB);
    void *pinned = NULL;
    int local;

    kit_must(cuMemHostAlloc(&pinned, 4096, 0));
    say_status("interior", cuMemFree_v2(d + 512));
    say_status("interior_last", cuMemFree_v2(d + 3 * KIT_MIB - 1));
    say_status("still_there", cuMemsetD8_v2(d, 1, 16));
    say_status("own", cuMemFree_v2(d));
    say_status("twice", cuMemFree_v2(d));
    say_status("stack", cuMemFree_v2((uintptr_t)&local));
    say_status("mapped", cuMemFree_v2(mapped));
    say_status("pinned_as_device", cuMemFree_v2((uintptr_t)pinned));
    d = conform_get(1000);
    say_status("device_as_pinned", cuMemFreeHost((void *)(uintptr_t)d));
    say_status("small_interior", cuMemFree_v2(d + 256));
    say_status("small", cuMemFree_v2(d));
    say_status("small_twice", cuMemFree_v2(d));
    say_status("null", cuMemFree_v2(0));
    say_status("context_after", cuCtxSynchronize());
}

static void by_other_calls(void)
{
    CUstream stream;
    CUdeviceptr d;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    d = conform_get(KIT_MIB);
    say_status("plain_by_async", cuMemFreeAsync(d, stream));
    kit_must(cuStreamSynchronize(stream));
    kit_must(cuMemAllocAsync(&d, KIT_MIB, stream));
    say_status("async_by_plain", cuMemFree_v2(d));
    kit_must(cuMemAllocAsync(&d, KIT_MIB, stream));
    say_status("async", cuMemFreeAsync(d, stream));
    say_status("async_twice", cuMemFreeAsync(d, stream));
    say_status("async_then_plain", cuMemFree_v2(d));
    say_status("async_null", cuMemFreeAsync(0, stream));
    kit_must(cuMemAllocManaged(&d, KIT_MIB, CU_MEM_ATTACH_GLOBAL));
    say_status("managed", cuMemFree_v2(d));
    say_status("managed_twice", cuMemFree_v2(d));
    kit_must(cuStreamSynchronize(stream));
}

/* A block is freed while a kernel that was launched before still has to write to it: that is no error. */
static void while_pending(void)
{
    struct kit_hold hold;
    CUstream stream;
    pthread_t thread;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const struct kit_question question = {get_block, free_block, NULL, NULL};
    say("waits_for_stream", "%s", kit_waits(stream, &question));
    say("waits_for_legacy_stream", "%s", kit_waits(CU_STREAM_LEGACY, &question));
    get_block(NULL);
    kit_must(cuMemsetD8Async(block, 1, 4 * KIT_MIB, stream));
    kit_must(kit_fill(block, 7, 1024, stream));
    say_status("with_work_pending", cuMemFree_v2(block));
    say_status("that_work", cuStreamSynchronize(stream));
    get_block(NULL);
    kit_must(kit_hold(&hold, stream));
    kit_must(kit_fill(block, 7, 16, stream));
    kit_release(&hold);
    free_block(NULL);
    say_status("held_work", cuStreamSynchronize(stream));
    get_block(NULL);
    if (pthread_create(&thread, NULL, free_elsewhere, NULL) != 0)
        kit_give_up("no thread could be started");
    pthread_join(thread, NULL);
}

/* What comes after a free may get the same memory, but never while the work before the free still writes to
 * it. */
static void reuse_is_safe(void)
{
    struct kit_hold hold;
    CUstream stream;
    bool safe = true;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 20; i++) {
        CUdeviceptr old = conform_get(256 * KIT_KIB), fresh;
        kit_must(kit_hold(&hold, stream));
        kit_must(kit_fill(old, 0x11111111, 64 * KIT_KIB, stream));
        kit_release(&hold);
        kit_must(cuMemFree_v2(old));
        fresh = conform_get(256 * KIT_KIB);
        kit_must(cuMemsetD8_v2(fresh, 0x22, 256 * KIT_KIB));
        kit_must(cuStreamSynchronize(stream));
        safe = safe && conform_byte(fresh) == 0x22 && conform_byte(fresh + 256 * KIT_KIB - 1) == 0x22;
        kit_must(cuMemFree_v2(fresh));
    }
    say_yes("reuse_is_safe", safe);
}

void conform_free(int argc, char **argv)
{
    CUcontext own = kit_begin(), other;

    (void)argc;
    (void)argv;
    wrong_pointers();
    by_other_calls();
    while_pending();
    reuse_is_safe();
    get_block(NULL);
    if (cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS) {
        say_status("in_other_context", cuMemFree_v2(block));
        kit_must(cuCtxDestroy_v2(other));
        kit_must(cuCtxSetCurrent(own));
    }
}

/* Touching what was freed: in a process of its own, as hardware may take the context for it. */
void conform_stale(int argc, char **argv)
{
    CUdeviceptr d;

    (void)argc;
    (void)argv;
    kit_begin();
    d = conform_get(4 * KIT_MIB);
    kit_must(cuMemFree_v2(d));
    kit_must(cuCtxSynchronize());
    say_yes("read", conform_byte(d) >= 0);
    say_yes("set", cuMemsetD8_v2(d, 1, 16) == CUDA_SUCCESS);
}
