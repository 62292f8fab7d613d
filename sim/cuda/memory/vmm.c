/*
 * Virtual memory management, the physical half: handles. A handle is an extent of the device's file, or a
 * file of its own if it was made to be shared. Its memory lives while it has references or mappings
 * (vmmmap.c). Lock: memory, for writing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/cuda/books.h"
#include "sim/cuda/memory/vmm.h"

static struct sim_phys *handles;

static size_t granularity(void)
{
    return sim_config.granularity_bytes;
}

/** The handle of a number, or NULL. */
struct sim_phys *sim_phys_find(CUmemGenericAllocationHandle number)
{
    struct sim_phys *phys = handles;

    while (phys && (phys->number != number || !phys->refs))
        phys = phys->next;
    return phys;
}

/** Enters a handle with one reference; its memory is there already. */
void sim_phys_enter(struct sim_phys *phys)
{
    phys->number = sim_next_id();
    phys->refs = 1;
    phys->next = handles;
    handles = phys;
}

/** Frees a handle's memory when nothing refers to it and nothing maps it. */
void sim_phys_settle(struct sim_phys *phys)
{
    struct sim_phys **link = &handles;

    if (phys->refs || phys->maps)
        return;
    while (*link != phys)
        link = &(*link)->next;
    *link = phys->next;
    if (phys->arena == &phys->own)
        sim_arena_close(&phys->own);
    else
        sim_arena_give(phys->arena, phys->offset, phys->bytes);
    if (phys->charged)
        sim_heap_refund(&sim_devices[phys->prop.location.id], phys->bytes);
    free(phys);
}

/** Handles that somebody has, or maps. */
void sim_phys_count(const struct sim_device *device, struct sim_books *books)
{
    for (const struct sim_phys *phys = handles; phys; phys = phys->next)
        if (phys->charged && phys->prop.location.id == device->ordinal)
            books->asked += phys->bytes;
}

/** Checks what a handle is to be made of. */
CUresult sim_phys_check(const CUmemAllocationProp *prop)
{
    if (!prop ||
        (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED && prop->type != CU_MEM_ALLOCATION_TYPE_MANAGED) ||
        prop->win32HandleMetaData)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_PERMITTED;
    if (prop->type == CU_MEM_ALLOCATION_TYPE_MANAGED ||
        (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_NOT_SUPPORTED;
    switch ((int)prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
        return !prop->requestedHandleTypes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return !prop->location.id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Memory for a handle: in the device's file, or in one that can be passed on. */
static CUresult back(struct sim_phys *phys)
{
    bool on_device = phys->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    struct sim_device *device = on_device ? sim_device(phys->prop.location.id) : NULL;
    CUresult status = device ? sim_heap_charge(device, phys->bytes) : CUDA_SUCCESS;

    if (status != CUDA_SUCCESS)
        return status;
    phys->charged = device != NULL;
    if (device && !phys->prop.requestedHandleTypes) {
        status = sim_heap_arena(device, &phys->arena);
        if (status == CUDA_SUCCESS && phys->arena->fd < 0)
            status = CUDA_ERROR_NOT_SUPPORTED; /* without a file there is no second view */
        if (status == CUDA_SUCCESS && !sim_arena_take(phys->arena, phys->bytes, granularity(), &phys->offset))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        char name[64];
        snprintf(name, sizeof name, "memsim.vmm.%d", device ? device->ordinal : SIM_HOST);
        phys->arena = &phys->own;
        status = sim_arena_open(&phys->own, name, phys->bytes);
        if (status == CUDA_SUCCESS && (phys->own.fd < 0 || phys->own.bytes != phys->bytes)) {
            sim_arena_close(&phys->own);
            status = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (status != CUDA_SUCCESS && device)
        sim_heap_refund(device, phys->bytes);
    return status;
}

SIM_API(cuMemCreate)
(CUmemGenericAllocationHandle *handle_p, size_t bytes, const CUmemAllocationProp *prop,
 unsigned long long flags)
{
    SIM_ENTER(cuMemCreate);
    CUresult status = sim_phys_check(prop);

    if (!handle_p || !bytes || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (status != CUDA_SUCCESS)
        return status;
    if (bytes % granularity())
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_phys *phys = calloc(1, sizeof *phys);
    if (!phys)
        return CUDA_ERROR_OUT_OF_MEMORY;
    phys->prop = *prop;
    phys->bytes = bytes;
    sim_memory_write_lock();
    status = back(phys);
    if (status == CUDA_SUCCESS) {
        sim_phys_enter(phys);
        *handle_p = phys->number;
    }
    sim_memory_unlock();
    if (status != CUDA_SUCCESS)
        free(phys);
    return status;
}

SIM_API(cuMemRelease)(CUmemGenericAllocationHandle handle)
{
    SIM_ENTER(cuMemRelease);
    sim_memory_write_lock();
    struct sim_phys *phys = sim_phys_find(handle);
    if (phys) {
        phys->refs--;
        sim_phys_settle(phys);
    }
    sim_memory_unlock();
    return phys ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuMemRetainAllocationHandle)(CUmemGenericAllocationHandle *handle_p, void *address)
{
    SIM_ENTER(cuMemRetainAllocationHandle);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!handle_p)
        return status;
    sim_memory_write_lock();
    struct sim_block *block = sim_block_at((uintptr_t)address);
    if (block && block->kind == SIM_BLOCK_MAPPED) {
        struct sim_phys *phys = block->owner;
        phys->refs++;
        *handle_p = phys->number;
        status = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return status;
}

SIM_API(cuMemGetAllocationGranularity)
(size_t *bytes_p, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
    SIM_ENTER(cuMemGetAllocationGranularity);
    if (!bytes_p || !prop || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes_p = granularity(); /* whatever the properties are: nobody looks whether there can be such memory */
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationPropertiesFromHandle)
(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    SIM_ENTER(cuMemGetAllocationPropertiesFromHandle);
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    struct sim_phys *phys = sim_phys_find(handle);
    if (phys)
        *prop = phys->prop;
    sim_memory_unlock();
    return phys ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
