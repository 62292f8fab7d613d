/*
 * Physical memory handles between processes, as descriptors of the file behind them. The file keeps the
 * memory alive.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/memory/vmm.h"

SIM_API(cuMemExportToShareableHandle)
(void *handle_p, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
 unsigned long long flags)
{
    SIM_ENTER(cuMemExportToShareableHandle);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!handle_p || flags)
        return status;
    sim_memory_read_lock();
    struct sim_phys *phys = sim_phys_find(handle);
    if (phys && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        (phys->prop.requestedHandleTypes & type)) {
        int fd = sim_arena_valid_fd(phys->arena) ? fcntl(phys->arena->fd, F_DUPFD_CLOEXEC, 3) : -1;
        status = fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
        if (fd >= 0)
            *(int *)handle_p = fd;
    }
    sim_memory_unlock();
    return status;
}

/* The device is the one of the exporter's ordinal, if this process has it. */
static int device_of(int fd)
{
    int ordinal = sim_memfd_number(fd);

    return sim_device(ordinal) ? ordinal : 0;
}

SIM_API(cuMemImportFromShareableHandle)
(CUmemGenericAllocationHandle *handle_p, void *shared, CUmemAllocationHandleType type)
{
    SIM_ENTER(cuMemImportFromShareableHandle);
    if (!handle_p)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int fd = sim_memfd_reopen((int)(intptr_t)shared, "vmm.");
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_phys *phys = calloc(1, sizeof *phys);
    if (!phys) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    phys->prop = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device_of(fd)},
    };
    phys->arena = &phys->own;
    sim_memory_write_lock();
    CUresult status = sim_arena_adopt(&phys->own, fd);
    if (status == CUDA_SUCCESS) {
        phys->bytes = phys->own.bytes;
        sim_phys_enter(phys);
        *handle_p = phys->number;
    }
    sim_memory_unlock();
    if (status != CUDA_SUCCESS)
        free(phys);
    return status;
}
