/*
 * The attributes of a pointer: every one, for every kind of block, and for pointers that the driver does not
 * know.
 */
#include <string.h>

#include "sim/cuda/memory/pool.h"
#include "sim/cuda/memory/vmm.h"

/* The place of an answer has the type that the attribute asks for. */
static void put_int(void *data, int value)
{
    *(int *)data = value;
}

static void put_bool(void *data, bool value)
{
    *(_Bool *)data = value;
}

static void put_address(void *data, uintptr_t value)
{
    *(CUdeviceptr *)data = value;
}

static bool is_managed(const struct sim_block *block)
{
    return block->kind == SIM_BLOCK_MANAGED ||
           (block->pool && block->pool->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED);
}

static bool is_host(const struct sim_block *block)
{
    return block->kind == SIM_BLOCK_HOST || block->kind == SIM_BLOCK_REGISTERED ||
           (block->device == SIM_HOST && !is_managed(block));
}

static unsigned handle_types(const struct sim_block *block)
{
    if (block->kind == SIM_BLOCK_MAPPED)
        return ((struct sim_phys *)block->owner)->prop.requestedHandleTypes;
    return block->pool ? block->pool->props.handleTypes : CU_MEM_HANDLE_TYPE_NONE;
}

static int access_flags(const struct sim_block *block, const struct CUctx_st *ctx)
{
    unsigned bit = ctx ? 1U << ctx->device->ordinal : 1;

    return block->writable & bit   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
           : block->readable & bit ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                   : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

static void reservation(const struct sim_block *block, CUdeviceptr *base_p, size_t *bytes_p)
{
    struct sim_range *range = sim_range_find(sim_windows, block->range.start);
    bool own = block->kind == SIM_BLOCK_MAPPED && range;

    *base_p = own ? range->start : block->range.start;
    *bytes_p = own ? range->bytes : block->range.bytes;
}

/* Attributes that say where the memory is. */
static CUresult place(const struct sim_block *block, CUpointer_attribute attribute, CUdeviceptr address,
                      void *data)
{
    CUdeviceptr base;
    size_t bytes;

    reservation(block, &base, &bytes);
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put_address(data, (uintptr_t)address);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host(block) && !is_managed(block))
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        put_address(data, block->range.start);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = block->range.bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put_address(data, (uintptr_t)base);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult known(const struct sim_block *block, CUpointer_attribute attribute, CUdeviceptr address,
                      const struct CUctx_st *ctx, void *data)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = block->ctx;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_int(data, is_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put_bool(data, block->sync_memops);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = block->id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put_bool(data, is_managed(block));
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_int(data, block->device != SIM_HOST ? block->device : ctx ? ctx->device->ordinal : 0);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        put_bool(data, block->kind == SIM_BLOCK_DEVICE);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put_bool(data, true);
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = handle_types(block);
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        put_bool(data, false);
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put_int(data, access_flags(block, ctx));
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = block->pool;
        break;
    default:
        return place(block, attribute, address, data);
    }
    return CUDA_SUCCESS;
}

static CUresult get(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct CUctx_st *ctx = NULL;
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!data || !address || (int)attribute < 1 || attribute > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
        return status;
    if (sim_context_peek(&ctx) != CUDA_SUCCESS)
        ctx = NULL;
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(address);
    if (block && !block->claimed && !sim_block_is_idle_node(block))
        status = known(block, attribute, address, ctx, data);
    sim_memory_unlock();
    return status;
}

SIM_API(cuPointerGetAttribute)(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    SIM_ENTER(cuPointerGetAttribute);
    return get(data, attribute, address);
}

/* True if the driver knows an address; one that it does not know is the host's, as far as it can tell. */
static bool is_known(CUdeviceptr address)
{
    unsigned type;

    return get(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS;
}

static size_t answer_bytes(CUpointer_attribute attribute)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return sizeof(_Bool);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return sizeof(int);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return 16;
    default:
        return sizeof(uint64_t);
    }
}

/* Asked for several at once, what has no answer is 0, and an unknown pointer is no error. */
SIM_API(cuPointerGetAttributes)
(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    SIM_ENTER(cuPointerGetAttributes);
    if (!count || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!data[i] || (int)attributes[i] < 1 ||
            attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
            return CUDA_ERROR_INVALID_VALUE;
        memset(data[i], 0, answer_bytes(attributes[i]));
        if (get(data[i], attributes[i], address) == CUDA_SUCCESS)
            continue;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            put_int(data[i], CU_DEVICE_INVALID);
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && !is_known(address))
            *(void **)data[i] = (void *)(uintptr_t)address;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuPointerSetAttribute)(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    SIM_ENTER(cuPointerSetAttribute);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return status;
    sim_memory_write_lock();
    struct sim_block *block = sim_block_at(address);
    if (block && block->kind == SIM_BLOCK_MAPPED) {
        status = CUDA_ERROR_NOT_SUPPORTED; /* as drivers answer for memory mapped by handle */
    } else if (block && !block->claimed && !is_host(block)) {
        block->sync_memops = *(const unsigned *)value != 0;
        status = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return status;
}
