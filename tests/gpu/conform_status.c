/*
 * conform_status.c: status codes: of the driver, of the runtime with its last error, and of threads without a
 * context. Nothing is passed here that hardware may answer with a crash.
 */
#include "conform.h"

#include <pthread.h>

static void allocations(void)
{
    CUdeviceptr d = 1;
    size_t left, total, pitch;
    void *host;

    kit_must(cuMemGetInfo_v2(&left, &total));
    say_status("alloc_no_pointer", cuMemAlloc_v2(NULL, 16));
    say_status("alloc_zero", cuMemAlloc_v2(&d, 0));
    say_status("alloc_beyond_total", cuMemAlloc_v2(&d, total + 1024 * KIT_MIB));
    say_status("alloc_size_max", cuMemAlloc_v2(&d, SIZE_MAX));
    say_yes("alloc_failed_leaves_pointer", d == 1);
    say_status("alloc_after_failure", cuMemAlloc_v2(&d, KIT_MIB));
    say_status("free", cuMemFree_v2(d));
    say_status("free_null", cuMemFree_v2(0));
    say_status("pitch_bad_element", cuMemAllocPitch_v2(&d, &pitch, 100, 10, 3));
    say_status("pitch_zero_width", cuMemAllocPitch_v2(&d, &pitch, 0, 10, 4));
    say_status("pitch_zero_height", cuMemAllocPitch_v2(&d, &pitch, 100, 0, 4));
    say_status("host_zero", cuMemHostAlloc(&host, 0, 0));
    say_status("host_bad_flags", cuMemHostAlloc(&host, 4096, 0x80));
    say_status("host_no_pointer", cuMemHostAlloc(NULL, 4096, 0));
    say_status("managed_zero", cuMemAllocManaged(&d, 0, CU_MEM_ATTACH_GLOBAL));
    say_status("managed_bad_flags", cuMemAllocManaged(&d, 4096, 0));
    say_status("register_null", cuMemHostRegister_v2(NULL, 4096, 0));
    say_status("register_zero", cuMemHostRegister_v2(&d, 0, 0));
    say_status("unregister_unknown", cuMemHostUnregister(&total));
    say_status("free_host_unknown", cuMemFreeHost(&total));
}

static void copies(void)
{
    CUdeviceptr d = conform_get(KIT_MIB), base;
    unsigned char bytes[64] = {0};
    size_t size;
    int value;

    say_status("copy_to_null", cuMemcpyHtoD_v2(0, bytes, sizeof bytes));
    say_status("copy_nothing", cuMemcpyHtoD_v2(d, bytes, 0));
    say_status("copy_nothing_to_null", cuMemcpyHtoD_v2(0, bytes, 0));
    say_status("copy_from_null", cuMemcpyDtoH_v2(bytes, 0, sizeof bytes));
    say_status("copy_to_host_as_device", cuMemcpyDtoD_v2((uintptr_t)bytes, d, sizeof bytes));
    say_status("set_null", cuMemsetD8_v2(0, 1, 16));
    say_status("set_nothing", cuMemsetD8_v2(d, 1, 0));
    say_status("set_misaligned", cuMemsetD32_v2(d + 2, 1, 4));
    say_status("range_of_null", cuMemGetAddressRange_v2(&base, &size, 0));
    say_status("range_of_stack", cuMemGetAddressRange_v2(&base, &size, (uintptr_t)bytes));
    say_status("attribute_of_stack",
               cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)bytes));
    say_status("attribute_of_null", cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
    say_status("attribute_unknown", cuPointerGetAttribute(&value, (CUpointer_attribute)999, d));
    kit_must(cuMemFree_v2(d));
}

static void objects(void)
{
    CUdevice device;
    CUstream stream;
    CUevent event;
    CUcontext ctx;
    CUmodule module;
    int value;
    size_t bytes;

    say_status("init_again", cuInit(0));
    say_status("init_flags", cuInit(1));
    say_status("device_negative", cuDeviceGet(&device, -1));
    say_status("device_unknown", cuDeviceGet(&device, 99));
    say_status("device_attribute_unknown", cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0));
    say_status("device_total_unknown", cuDeviceTotalMem_v2(&bytes, 99));
    say_status("stream_bad_flags", cuStreamCreate(&stream, 0x77));
    say_status("stream_no_pointer", cuStreamCreate(NULL, 0));
    say_status("event_bad_flags", cuEventCreate(&event, 0x7777));
    say_status("event_interprocess_with_timing", cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    say_status("context_bad_flags", cuCtxCreate_v2(&ctx, 0x70000, 0));
    say_status("context_bad_device", cuCtxCreate_v2(&ctx, 0, 99));
    say_status("retain_bad_device", cuDevicePrimaryCtxRetain(&ctx, 99));
    say_status("module_null", cuModuleLoadData(&module, NULL));
    say_status("info_no_pointers", cuMemGetInfo_v2(NULL, NULL));
    kit_must(cuEventCreate(&event, CU_EVENT_DEFAULT));
    say_status("event_not_recorded_query", cuEventQuery(event));
    say_status("event_not_recorded_synchronize", cuEventSynchronize(event));
    say_status("event_destroy", cuEventDestroy_v2(event));
}

void conform_status(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    kit_begin();
    objects();
    allocations();
    copies();
}

/* --- the runtime and its last error --------------------------------------------------------------------- */

static void last_error(void)
{
    struct cudaPointerAttributes attributes = {0};
    void *p = (void *)1;
    int local = 0;

    say_status("malloc_size_max", cudaMalloc(&p, SIZE_MAX));
    say_yes("malloc_failed_leaves_pointer", p == (void *)1);
    say_status("peek_after", cudaPeekAtLastError());
    say_status("last_after", cudaGetLastError());
    say_status("last_again", cudaGetLastError());
    say_status("malloc_after_failure", cudaMalloc(&p, KIT_MIB));
    say_status("last_after_success", cudaGetLastError());
    say_status("free_wrong", cudaFree(&local));
    say_status("last_after_wrong_free", cudaGetLastError());
    say_status("free", cudaFree(p));
    say_status("free_null", cudaFree(NULL));
    say_status("free_host_null", cudaFreeHost(NULL));
    say_status("attributes_of_stack", cudaPointerGetAttributes(&attributes, &local));
    say("attributes_of_stack_type", "%d", attributes.type);
    say_status("attributes_of_null", cudaPointerGetAttributes(&attributes, NULL));
    cudaGetLastError();
}

static void arguments(void)
{
    struct cudaPitchedPtr pitched;
    void *p = (void *)1;
    size_t pitch = 0;
    char bytes[16] = {0};
    int device = -1;

    p = (void *)1;
    say_status("malloc_zero", cudaMalloc(&p, 0));
    say_yes("malloc_zero_is_null", p == NULL);
    say_status("malloc_no_pointer", cudaMalloc(NULL, 16));
    say_status("malloc_host_zero", cudaMallocHost(&p, 0));
    say_status("host_alloc_bad_flags", cudaHostAlloc(&p, 64, 0x80));
    say_status("managed_zero", cudaMallocManaged(&p, 0, cudaMemAttachGlobal));
    say_status("managed_bad_flags", cudaMallocManaged(&p, 64, 0));
    say_status("pitch_zero", cudaMallocPitch(&p, &pitch, 0, 0));
    say_status("malloc3d_zero", cudaMalloc3D(&pitched, (struct cudaExtent){0, 0, 0}));
    say_status("set_device_unknown", cudaSetDevice(99));
    say_status("get_device", cudaGetDevice(&device));
    say("device", "%d", device);
    kit_must(cudaMalloc(&p, 64));
    say_status("copy_bad_kind", cudaMemcpy(p, bytes, 16, (enum cudaMemcpyKind)99));
    say_status("copy_null", cudaMemcpy(p, NULL, 16, cudaMemcpyHostToDevice));
    say_status("copy_nothing", cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    say_status("set_null", cudaMemset(NULL, 0, 16));
    say_status("malloc_async_no_pointer", cudaMallocAsync(NULL, 16, NULL));
    say_status("stream_bad_flags", cudaStreamCreateWithFlags((cudaStream_t *)&pitched.ptr, 0x77));
    say_status("ipc_of_null", cudaIpcGetMemHandle((cudaIpcMemHandle_t *)&pitched, NULL));
    cudaGetLastError();
    say_status("free_at_end", cudaFree(p));
    say_status("last_at_end", cudaGetLastError());
}

void conform_runtime(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    say_status("first_call", cudaFree(NULL));
    last_error();
    arguments();
}

/* --- threads -------------------------------------------------------------------------------------------- */

static CUdeviceptr shared;
static CUcontext context;

static void *without_context(void *data)
{
    CUdeviceptr d = 0;
    CUcontext current = (CUcontext)1;
    size_t left, total;

    (void)data;
    say_status("current", cuCtxGetCurrent(&current));
    say_yes("current_is_null", current == NULL);
    say_status("alloc", cuMemAlloc_v2(&d, 4096));
    say_status("info", cuMemGetInfo_v2(&left, &total));
    say_status("synchronize", cuCtxSynchronize());
    say_status("set_current", cuCtxSetCurrent(context));
    say_status("alloc_then", cuMemAlloc_v2(&d, 4096));
    say_status("free_own", cuMemFree_v2(d));
    say_status("free_of_other_thread", cuMemFree_v2(shared));
    return NULL;
}

static void *free_without_context(void *data)
{
    (void)data;
    say_status("free_without_context", cuMemFree_v2(shared));
    say_status("runtime_brings_context", cudaDeviceSynchronize());
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, NULL) != 0)
        kit_give_up("no thread could be started");
    pthread_join(thread, NULL);
}

void conform_thread(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    context = kit_begin();
    shared = conform_get(KIT_MIB);
    run(without_context);
    shared = conform_get(KIT_MIB);
    run(free_without_context);
}
