/*
 * Pools between processes: the pool's file goes over as a descriptor, and each pointer as an offset into it.
 * An imported pool allocates nothing; what is imported from it is memory of the exporter's.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/memory/pool.h"

/* The form of a shared pointer on its way to another process. */
struct pointer_data {
    char magic[8];
    uint64_t inode; /* of the pool's file: a pointer belongs to one pool */
    uint64_t offset, bytes;
};

static const char magic[8] = "memsimp";

SIM_API(cuMemPoolExportToShareableHandle)
(void *handle_p, CUmemoryPool handle, CUmemAllocationHandleType type, unsigned long long flags)
{
    SIM_ENTER(cuMemPoolExportToShareableHandle);
    struct CUmemPoolHandle_st *pool = handle_p ? sim_object_get(handle, SIM_POOL) : NULL;
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (pool && !flags && !pool->imported && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        pool->props.handleTypes == type) {
        int fd = sim_arena_valid_fd(&pool->own) ? fcntl(pool->own.fd, F_DUPFD_CLOEXEC, 3) : -1;
        status = fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
        if (fd >= 0)
            *(int *)handle_p = fd;
    }
    if (pool)
        sim_object_put(pool);
    return status;
}

SIM_API(cuMemPoolImportFromShareableHandle)
(CUmemoryPool *pool_p, void *handle, CUmemAllocationHandleType type, unsigned long long flags)
{
    SIM_ENTER(cuMemPoolImportFromShareableHandle);
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    CUresult status;

    if (!pool_p || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = sim_memfd_reopen((int)(intptr_t)handle, "pool.");
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_device(sim_memfd_number(fd)))
        props.location.id = sim_memfd_number(fd);
    struct CUmemPoolHandle_st *pool = sim_pool_new_over(&props, fd, &status);
    if (!pool)
        return status;
    sim_object_publish(pool);
    *pool_p = pool;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolExportPointer)(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
    SIM_ENTER(cuMemPoolExportPointer);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!data)
        return status;
    sim_memory_read_lock();
    struct sim_block *block = sim_block_base(address);
    if (block && block->kind == SIM_BLOCK_POOL && block->pool->props.handleTypes) {
        struct pointer_data out = {.inode = block->pool->own.inode,
                                   .offset = address - (uintptr_t)block->pool->own.base,
                                   .bytes = block->range.bytes};
        memcpy(out.magic, magic, sizeof magic);
        memset(data, 0, sizeof *data);
        memcpy(data, &out, sizeof out);
        status = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return status;
}

static CUresult enter(struct CUmemPoolHandle_st *pool, const struct pointer_data *in, CUdeviceptr *address_p)
{
    if (!pool->imported || memcmp(in->magic, magic, sizeof magic) || in->inode != pool->own.inode ||
        in->offset >= pool->own.bytes || in->bytes > pool->own.bytes - in->offset)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_block *block =
        sim_block_new(SIM_BLOCK_IMPORTED, (uintptr_t)pool->own.base + in->offset, in->bytes);
    if (!block)
        return CUDA_ERROR_ALREADY_MAPPED;
    block->device = pool->device->ordinal;
    block->pool = sim_object_ref(pool);
    block->readable = pool->readable;
    block->writable = pool->writable;
    *address_p = block->range.start;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolImportPointer)(CUdeviceptr *address_p, CUmemoryPool handle, CUmemPoolPtrExportData *data)
{
    SIM_ENTER(cuMemPoolImportPointer);
    struct CUmemPoolHandle_st *pool = address_p && data ? sim_object_get(handle, SIM_POOL) : NULL;
    struct pointer_data in;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&in, data, sizeof in);
    sim_memory_write_lock();
    CUresult status = enter(pool, &in, address_p);
    sim_memory_unlock();
    sim_object_put(pool);
    return status;
}

struct drop_op {
    struct sim_op op;
    struct sim_block *block;
};

static CUresult run_drop(struct sim_op *op, struct sim_queue *queue)
{
    struct sim_block *block = ((struct drop_op *)op)->block;
    struct CUmemPoolHandle_st *pool = block->pool;

    (void)queue;
    sim_memory_write_lock();
    sim_block_drop(block);
    sim_memory_unlock();
    sim_object_put(pool);
    return CUDA_SUCCESS;
}

/** Ends an imported pointer when the queue gets there. The block is claimed by the caller. */
CUresult sim_pool_drop_import(struct sim_block *block, struct sim_queue *queue)
{
    struct drop_op *op = sim_op_new(sizeof *op, run_drop);

    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->op.always = true;
    op->block = block;
    sim_queue_push(queue, &op->op);
    return CUDA_SUCCESS;
}
