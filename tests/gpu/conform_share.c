/*
 * conform_share.c: memory shared with another process by file descriptors: handles of mapped memory, and
 * pools with the pointers into them; and events shared by legacy handles. The other process inherits the
 * descriptors.
 */
#include "conform.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (2 * KIT_MIB)

/* What the other process is told, as hexadecimal digits on its command line. */
struct told {
    int handle_fd, pool_fd;
    CUmemPoolPtrExportData pointer;
    CUipcEventHandle event;
    bool has_event;
};

static void inherit(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, fcntl(fd, F_GETFD) & ~FD_CLOEXEC);
}

static void share_event(struct told *told)
{
    CUevent plain, event;

    kit_must(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    say_status("event_export_plain", cuIpcGetEventHandle(&told->event, plain));
    CUresult status = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    say("event_create", "%d", (int)status);
    if (status != CUDA_SUCCESS)
        return;
    status = cuIpcGetEventHandle(&told->event, event);
    say("event_export", "%d", (int)status);
    told->has_event = status == CUDA_SUCCESS;
    cuEventRecord(event, NULL);
}

static CUdeviceptr share_pool(struct told *told, CUmemoryPool *pool_p)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemPoolProps closed = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool other;
    CUdeviceptr d = 0;

    kit_must(cuMemPoolCreate(&other, &closed));
    say_status("pool_export_closed", cuMemPoolExportToShareableHandle(
                                         &told->pool_fd, other, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    kit_must(cuMemPoolDestroy(other));
    kit_must(cuMemPoolCreate(pool_p, &props));
    kit_must(cuMemAllocFromPoolAsync(&d, BYTES, *pool_p, NULL));
    kit_must(cuMemsetD8Async(d, 21, BYTES, NULL));
    kit_must(cuCtxSynchronize());
    say_status("pool_export", cuMemPoolExportToShareableHandle(&told->pool_fd, *pool_p,
                                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    say_status("pointer_export", cuMemPoolExportPointer(&told->pointer, d));
    return d;
}

void conform_share(int argc, char **argv)
{
    struct told told = {.handle_fd = -1, .pool_fd = -1};
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pool;
    char text[2 * sizeof told + 1];

    (void)argc;
    (void)argv;
    kit_begin();
    CUdeviceptr mapped = conform_map(BYTES, &handle);
    kit_must(cuMemsetD8_v2(mapped, 11, BYTES));
    kit_must(cuCtxSynchronize());
    say_status("handle_export", cuMemExportToShareableHandle(&told.handle_fd, handle,
                                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUdeviceptr pooled = share_pool(&told, &pool);
    share_event(&told);
    inherit(told.handle_fd);
    inherit(told.pool_fd);
    for (size_t i = 0; i < sizeof told; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)&told)[i]);
    say("other_ends", "%d", kit_child(".sharer", text));
    say("other_wrote_mapped", "%d", conform_byte(mapped));
    say("other_wrote_pooled", "%d", conform_byte(pooled));
    say_status("free_pooled", cuMemFreeAsync(pooled, NULL));
    say_status("destroy_pool", cuMemPoolDestroy(pool));
    say_status("synchronize", cuCtxSynchronize());
}

/* --- the other process ---------------------------------------------------------------------------------- */

static void open_handle(const struct told *told)
{
    CUmemAccessDesc access = {.location = conform_prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr d = 0;

    CUresult status = cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)told->handle_fd,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    say("handle_import", "%d", (int)status);
    if (status != CUDA_SUCCESS)
        return;
    kit_must(cuMemAddressReserve(&d, BYTES, 0, 0, 0));
    say_status("handle_map", cuMemMap(d, BYTES, 0, handle, 0));
    kit_must(cuMemSetAccess(d, BYTES, &access, 1));
    say("handle_content", "%d", conform_byte(d));
    kit_must(cuMemsetD8_v2(d, 12, BYTES));
    kit_must(cuCtxSynchronize());
    kit_must(cuMemUnmap(d, BYTES));
    kit_must(cuMemRelease(handle));
}

static void open_pool(const struct told *told)
{
    CUmemPoolPtrExportData pointer = told->pointer;
    CUmemoryPool pool = NULL;
    CUdeviceptr d = 0, fresh = 0;
    size_t bytes = 0;

    CUresult status = cuMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)told->pool_fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    say("pool_import", "%d", (int)status);
    if (status != CUDA_SUCCESS)
        return;
    say_status("pool_import_alloc", cuMemAllocFromPoolAsync(&fresh, BYTES, pool, NULL));
    say_status("pointer_import", cuMemPoolImportPointer(&d, pool, &pointer));
    say("pointer_content", "%d", conform_byte(d));
    say_status("pointer_range", cuMemGetAddressRange_v2(&fresh, &bytes, d));
    say("pointer_range_is", "%zu", bytes);
    kit_must(cuMemsetD8_v2(d, 22, BYTES));
    kit_must(cuCtxSynchronize());
    say_status("pointer_free", cuMemFreeAsync(d, NULL));
    say_status("pool_destroy", cuMemPoolDestroy(pool));
    say_status("synchronize", cuCtxSynchronize());
}

void conform_sharer(int argc, char **argv)
{
    struct told told;

    if (argc < 1 || strlen(argv[0]) != 2 * sizeof told)
        kit_give_up("told nothing");
    for (size_t i = 0; i < sizeof told; i++)
        if (sscanf(argv[0] + 2 * i, "%2hhx", (unsigned char *)&told + i) != 1)
            kit_give_up("told nothing");
    kit_begin();
    open_handle(&told);
    open_pool(&told);
    if (told.has_event) {
        CUevent event;
        CUresult status = cuIpcOpenEventHandle(&event, told.event);
        say("event_open", "%d", (int)status);
        if (status == CUDA_SUCCESS)
            say_status("event_wait", cuStreamWaitEvent(NULL, event, 0));
    }
    say_status("synchronize_at_end", cuCtxSynchronize());
}
