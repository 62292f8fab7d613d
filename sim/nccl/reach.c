/*
 * Reaching into the windows of other ranks: what a rank exported when it registered its buffer is opened
 * through its process's descriptors, imported and mapped here, once, and goes with the window. One's own
 * part is the buffer itself. So it needs the same user and a shared /proc, and devices that can reach each
 * other; who is out of reach has no address.
 *
 * What the functions answer: NVIDIA/nccl, docs/userguide/source/api/device.rst and nccl_device/core.h
 * (2.30), "Device API / Host-accessible device pointer functions": no address, and success, for a rank
 * outside of the load-store-accessible team, and where nothing is multicast.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/nccl/nccl.h"

/* Two threads may reach for the same part. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult import(const struct sim_offer *offer, CUmemGenericAllocationHandle *handle_p)
{
    char path[64];
    CUresult status;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", offer->pid, offer->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_NOT_FOUND;
    status = SIM_DRV(cuMemImportFromShareableHandle, handle_p, (void *)(intptr_t)file,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(file);
    return status;
}

static CUresult map(struct sim_offer *offer, CUdevice device)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    CUresult status = SIM_DRV(cuMemAddressReserve, &address, offer->span, 0, 0, 0);

    if (status != CUDA_SUCCESS)
        return status;
    status = SIM_DRV(cuMemMap, address, offer->span, 0, offer->handle, 0);
    if (status == CUDA_SUCCESS) {
        status = SIM_DRV(cuMemSetAccess, address, offer->span, &access, 1);
        if (status != CUDA_SUCCESS)
            SIM_DRV(cuMemUnmap, address, offer->span);
    }
    if (status != CUDA_SUCCESS)
        SIM_DRV(cuMemAddressFree, address, offer->span);
    else
        offer->mapped = address;
    return status;
}

static CUresult reach(struct sim_window *window, struct sim_offer *offer)
{
    CUresult status;
    CUcontext ours;

    if (offer->mapped)
        return CUDA_SUCCESS;
    status = SIM_DRV(cuCtxPushCurrent_v2, window->comm->context);
    if (status != CUDA_SUCCESS)
        return status;
    status = import(offer, &offer->handle);
    if (status == CUDA_SUCCESS) {
        status = map(offer, window->comm->ordinal);
        if (status != CUDA_SUCCESS)
            SIM_DRV(cuMemRelease, offer->handle);
    }
    SIM_DRV(cuCtxPopCurrent_v2, &ours);
    return status;
}

ncclResult_t sim_reach(struct sim_window *window, int rank, size_t offset, CUdeviceptr *address_p)
{
    struct sim_offer *offer;

    *address_p = 0;
    if (rank < 0 || rank >= window->comm->ranks)
        return sim_fail(ncclInvalidArgument, "rank %d is none of the communicator's %d", rank,
                        window->comm->ranks);
    if (!window->offers)
        return sim_fail(ncclInvalidArgument, "the window is not symmetric");
    if (rank == window->comm->rank) {
        *address_p = window->begin + offset;
        return ncclSuccess;
    }
    offer = &window->offers[rank];
    pthread_mutex_lock(&lock);
    if (reach(window, offer) == CUDA_SUCCESS)
        *address_p = offer->mapped + offer->offset + offset;
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

void sim_reach_end(struct sim_window *window)
{
    for (int i = 0; window->offers && i < window->comm->ranks; i++) {
        struct sim_offer *offer = &window->offers[i];

        if (!offer->mapped)
            continue;
        SIM_DRV(cuMemUnmap, offer->mapped, offer->span);
        SIM_DRV(cuMemRelease, offer->handle);
        SIM_DRV(cuMemAddressFree, offer->mapped, offer->span);
    }
}

static ncclResult_t answer(const char *function, ncclWindow_t handle, size_t offset, int rank,
                           void **pointer_p)
{
    struct sim_window *window = sim_window_of(handle);
    CUdeviceptr address;

    if (!window)
        return sim_fail(ncclInvalidArgument, "%s : not a window", function);
    if (!pointer_p)
        return sim_fail(ncclInvalidArgument, "%s : outPtr argument is NULL", function);
    SIM_TRY(sim_reach(window, rank, offset, &address));
    *pointer_p = (void *)(uintptr_t)address;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, GetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void **pointer_p))
{
    return answer("GetPeerDevicePointer", window, offset, peer, pointer_p);
}

/* All ranks lie on one machine, so they are one team, in the order of their ranks. */
SIM_NCCL(ncclResult_t, GetLsaDevicePointer, (ncclWindow_t window, size_t offset, int rank, void **pointer_p))
{
    return answer("GetLsaDevicePointer", window, offset, rank, pointer_p);
}

/* There is no multicast, and no address then. */
SIM_NCCL(ncclResult_t, GetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void **pointer_p))
{
    (void)offset;
    if (!sim_window_of(window))
        return sim_fail(ncclInvalidArgument, "GetLsaMultimemDevicePointer : not a window");
    if (!pointer_p)
        return sim_fail(ncclInvalidArgument, "GetLsaMultimemDevicePointer : outPtr argument is NULL");
    *pointer_p = NULL;
    return ncclSuccess;
}
