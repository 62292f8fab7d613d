/*
 * Functions and kernels: handles, names, attributes, occupancy. What only a compiler would know (registers,
 * static shared memory) is the same modest figure for all.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/code/code.h"

#define REGISTERS        32
#define STATIC_SHARED    0
#define SHARED_DEFAULT   49152
#define THREADS_BLOCK    1024
#define ARCHITECTURE     90
#define SHARED_SEGMENT   128
#define CLUSTER_PORTABLE 8

static void dispose_function(void *object)
{
    sim_params_free(&((struct sim_function *)object)->params);
}

CUresult sim_function_of(struct sim_function **list, const struct sim_image *image, const char *name,
                         enum sim_kind kind, struct sim_function **function_p)
{
    struct sim_function *function = *list;

    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    if (!function) {
        const struct sim_name *known = sim_image_find(image, name, true);
        if (!known)
            return CUDA_ERROR_NOT_FOUND;
        function = sim_object_new(sizeof *function + strlen(name) + 1, kind, dispose_function);
        if (!function || !sim_params_copy(&function->params, &known->params)) {
            if (function)
                sim_object_put(function);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        strcpy(function->name, name);
        function->carveout = -1;
        function->dynamic_bytes = SHARED_DEFAULT - STATIC_SHARED;
        function->next = *list;
        *list = function;
        sim_object_publish(function);
    }
    *function_p = function;
    return CUDA_SUCCESS;
}

unsigned sim_function_all(struct sim_function **list, const struct sim_image *image, enum sim_kind kind)
{
    struct sim_function *function;
    unsigned count = 0;

    for (const struct sim_name *name = image->names; name; name = name->next)
        if (name->entry)
            sim_function_of(list, image, name->text, kind, &function);
    for (function = *list; function; function = function->next)
        count++;
    return count;
}

void sim_function_retire(struct sim_function *list)
{
    while (list) {
        struct sim_function *next = list->next;
        if (sim_object_retire(list))
            sim_object_put(list);
        list = next;
    }
}

CUresult sim_function_get(CUfunction handle, struct CUctx_st *ctx, struct sim_function **function_p)
{
    struct sim_function *function = sim_object_get(handle, SIM_FUNCTION);

    if (function && ctx && function->module->ctx_id != ctx->id) {
        sim_object_put(function);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!function)
        function = sim_object_get(handle, SIM_KERNEL);
    *function_p = function;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* --- attributes ----------------------------------------------------------------------------------------- */

static CUresult get_attribute(const struct sim_function *function, CUfunction_attribute name, int *value_p)
{
    switch ((int)name) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value_p = THREADS_BLOCK;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value_p = REGISTERS;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value_p = STATIC_SHARED;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value_p = ARCHITECTURE;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value_p = function->dynamic_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value_p = function->carveout;
        return CUDA_SUCCESS;
    default:
        *value_p = 0;
        return (int)name >= 0 && name < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set_attribute(struct sim_function *function, CUfunction_attribute name, int value)
{
    switch ((int)name) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 ||
            value > sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - STATIC_SHARED)
            return CUDA_ERROR_INVALID_VALUE;
        __atomic_store_n(&function->dynamic_bytes, value, __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        __atomic_store_n(&function->carveout, value, __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return CUDA_SUCCESS; /* clusters change nothing here */
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuFuncGetAttribute)(int *value_p, CUfunction_attribute name, CUfunction handle)
{
    SIM_ENTER(cuFuncGetAttribute);
    struct sim_function *function;
    CUresult status = value_p ? sim_function_get(handle, NULL, &function) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    status = get_attribute(function, name, value_p);
    sim_object_put(function);
    return status;
}

SIM_API(cuFuncSetAttribute)(CUfunction handle, CUfunction_attribute name, int value)
{
    SIM_ENTER(cuFuncSetAttribute);
    struct sim_function *function;
    CUresult status = sim_function_get(handle, NULL, &function);

    if (status != CUDA_SUCCESS)
        return status;
    status = set_attribute(function, name, value);
    sim_object_put(function);
    return status;
}

SIM_API(cuKernelGetAttribute)(int *value_p, CUfunction_attribute name, CUkernel handle, CUdevice device)
{
    SIM_ENTER(cuKernelGetAttribute);
    struct sim_function *kernel;

    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value_p)
        return CUDA_ERROR_INVALID_VALUE;
    kernel = sim_object_get(handle, SIM_KERNEL);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = get_attribute(kernel, name, value_p);
    sim_object_put(kernel);
    return status;
}

SIM_API(cuKernelSetAttribute)(CUfunction_attribute name, int value, CUkernel handle, CUdevice device)
{
    SIM_ENTER(cuKernelSetAttribute);
    struct sim_function *kernel;

    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    kernel = sim_object_get(handle, SIM_KERNEL);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = set_attribute(kernel, name, value);
    sim_object_put(kernel);
    return status;
}

/* A preference for which nothing here has a use: only the handle is looked at. */
static CUresult prefer(const void *handle, bool kernel_only)
{
    struct sim_function *function = kernel_only ? NULL : sim_object_get(handle, SIM_FUNCTION);

    if (!function)
        function = sim_object_get(handle, SIM_KERNEL);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_object_put(function);
    return CUDA_SUCCESS;
}

SIM_API(cuFuncSetCacheConfig)(CUfunction handle, CUfunc_cache config)
{
    SIM_ENTER(cuFuncSetCacheConfig);
    return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : prefer(handle, false);
}

SIM_API(cuFuncSetSharedMemConfig)(CUfunction handle, CUsharedconfig config)
{
    SIM_ENTER(cuFuncSetSharedMemConfig);
    return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                              : prefer(handle, false);
}

SIM_API(cuKernelSetCacheConfig)(CUkernel handle, CUfunc_cache config, CUdevice device)
{
    SIM_ENTER(cuKernelSetCacheConfig);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : prefer(handle, true);
}

/* --- names and owners ----------------------------------------------------------------------------------- */

SIM_API(cuFuncGetName)(const char **name_p, CUfunction handle)
{
    SIM_ENTER(cuFuncGetName);
    struct sim_function *function;
    CUresult status = name_p && handle ? sim_function_get(handle, NULL, &function) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *name_p = function->name; /* good for as long as the handle */
    sim_object_put(function);
    return CUDA_SUCCESS;
}

SIM_API(cuKernelGetName)(const char **name_p, CUkernel handle)
{
    SIM_ENTER(cuKernelGetName);
    struct sim_function *function;
    CUresult status =
        name_p ? sim_function_get((CUfunction)handle, NULL, &function) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *name_p = function->name;
    sim_object_put(function);
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetModule)(CUmodule *module_p, CUfunction handle)
{
    SIM_ENTER(cuFuncGetModule);
    struct sim_function *function = sim_object_get(handle, SIM_FUNCTION);

    if (!function)
        return handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    if (module_p)
        *module_p = function->module;
    sim_object_put(function);
    return module_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuKernelGetLibrary)(CUlibrary *library_p, CUkernel handle)
{
    SIM_ENTER(cuKernelGetLibrary);
    struct sim_function *kernel = sim_object_get(handle, SIM_KERNEL);

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (library_p)
        *library_p = kernel->library;
    sim_object_put(kernel);
    return library_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuKernelGetFunction)(CUfunction *function_p, CUkernel handle)
{
    SIM_ENTER_CTX(cuKernelGetFunction);
    struct sim_function *kernel = sim_object_get(handle, SIM_KERNEL), *function;
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    struct CUmod_st *module;

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (function_p) {
        sim_code_lock();
        status = sim_library_module(kernel->library, ctx, &module);
        if (status == CUDA_SUCCESS)
            status = sim_function_of(&module->functions, &kernel->library->image, kernel->name, SIM_FUNCTION,
                                     &function);
        if (status == CUDA_SUCCESS) {
            function->module = module;
            *function_p = (CUfunction)function;
        }
        sim_code_unlock();
    }
    sim_object_put(kernel);
    return status;
}

SIM_API(cuFuncIsLoaded)(CUfunctionLoadingState *state_p, CUfunction handle)
{
    SIM_ENTER(cuFuncIsLoaded);
    if (!state_p)
        return CUDA_ERROR_INVALID_VALUE;
    *state_p = CU_FUNCTION_LOADING_STATE_LOADED;
    return prefer(handle, false);
}

SIM_API(cuFuncLoad)(CUfunction handle)
{
    SIM_ENTER(cuFuncLoad);
    return prefer(handle, false);
}

/* --- occupancy ------------------------------------------------------------------------------------------ */

static size_t reserved_bytes(void)
{
    return (size_t)sim_card_attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
}

static size_t shared_bytes(void)
{
    return (size_t)sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
}

static int blocks_that_fit(int threads, size_t dynamic_bytes)
{
    size_t shared = reserved_bytes() + STATIC_SHARED +
                    (dynamic_bytes + SHARED_SEGMENT - 1) / SHARED_SEGMENT * SHARED_SEGMENT;
    int by_threads =
        sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / ((threads + 31) / 32 * 32);
    int most = sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    size_t by_shared = shared ? shared_bytes() / shared : (size_t)most;
    int least = by_threads < most ? by_threads : most;

    return by_shared < (size_t)least ? (int)by_shared : least;
}

static CUresult occupancy(int *blocks_p, CUfunction handle, int threads, size_t dynamic_bytes)
{
    struct sim_function *function;
    CUresult status = sim_function_get(handle, NULL, &function);

    if (status != CUDA_SUCCESS)
        return status;
    if (!blocks_p || threads <= 0 || threads > THREADS_BLOCK)
        status = CUDA_ERROR_INVALID_VALUE;
    else
        *blocks_p =
            dynamic_bytes > (size_t)function->dynamic_bytes ? 0 : blocks_that_fit(threads, dynamic_bytes);
    sim_object_put(function);
    return status;
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor)
(int *blocks_p, CUfunction handle, int threads, size_t dynamic_bytes)
{
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    return occupancy(blocks_p, handle, threads, dynamic_bytes);
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
(int *blocks_p, CUfunction handle, int threads, size_t dynamic_bytes, unsigned flags)
{
    SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    return flags & ~1U ? CUDA_ERROR_INVALID_VALUE : occupancy(blocks_p, handle, threads, dynamic_bytes);
}

/* The largest block that keeps a multiprocessor full, and how many of them the device holds. */
static CUresult potential(int *grid_p, int *threads_p, CUfunction handle, CUoccupancyB2DSize size_of,
                          size_t dynamic_bytes, int limit)
{
    struct sim_function *function;
    int best = 0, best_threads = 0;

    if (!grid_p || !threads_p || limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = sim_function_get(handle, NULL, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (limit == 0 || limit > THREADS_BLOCK)
        limit = THREADS_BLOCK;
    for (int threads = limit >= 32 ? limit / 32 * 32 : limit; threads > 0; threads -= 32) {
        size_t bytes = size_of ? size_of(threads) : dynamic_bytes;
        int blocks = bytes > (size_t)function->dynamic_bytes ? 0 : blocks_that_fit(threads, bytes);
        if (blocks * threads > best * best_threads) {
            best = blocks;
            best_threads = threads;
        }
    }
    sim_object_put(function);
    *grid_p = best * sim_card_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    *threads_p = best_threads;
    return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxPotentialBlockSize)
(int *grid_p, int *threads_p, CUfunction handle, CUoccupancyB2DSize size_of, size_t dynamic_bytes, int limit)
{
    SIM_ENTER(cuOccupancyMaxPotentialBlockSize);
    return potential(grid_p, threads_p, handle, size_of, dynamic_bytes, limit);
}

SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags)
(int *grid_p, int *threads_p, CUfunction handle, CUoccupancyB2DSize size_of, size_t dynamic_bytes, int limit,
 unsigned flags)
{
    SIM_ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags);
    if (flags & ~1U)
        return CUDA_ERROR_INVALID_VALUE;
    return potential(grid_p, threads_p, handle, size_of, dynamic_bytes, limit);
}

SIM_API(cuOccupancyAvailableDynamicSMemPerBlock)(size_t *bytes_p, CUfunction handle, int blocks, int threads)
{
    SIM_ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
    struct sim_function *function;

    if (!bytes_p || blocks <= 0 || threads <= 0 || threads > THREADS_BLOCK ||
        blocks > blocks_that_fit(threads, 0))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = sim_function_get(handle, NULL, &function);
    if (status != CUDA_SUCCESS)
        return status;
    size_t each = (shared_bytes() / (size_t)blocks - reserved_bytes()) / SHARED_SEGMENT * SHARED_SEGMENT;
    size_t free_bytes = each > STATIC_SHARED ? each - STATIC_SHARED : 0;
    *bytes_p = free_bytes < (size_t)function->dynamic_bytes ? free_bytes : (size_t)function->dynamic_bytes;
    sim_object_put(function);
    return CUDA_SUCCESS;
}

/* A cluster needs its blocks at once; the multiprocessors are the only thing that limits them here. */
SIM_API(cuOccupancyMaxActiveClusters)(int *clusters_p, CUfunction handle, const CUlaunchConfig *config)
{
    SIM_ENTER(cuOccupancyMaxActiveClusters);
    unsigned size = 1;
    int blocks = 0;

    if (!clusters_p || !config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            size = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                   config->attrs[i].value.clusterDim.z;
    if (!size || size > CLUSTER_PORTABLE)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    CUresult status =
        occupancy(&blocks, handle, (int)(config->blockDimX * config->blockDimY * config->blockDimZ),
                  config->sharedMemBytes);
    if (status == CUDA_SUCCESS)
        *clusters_p = blocks * sim_card_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) / (int)size;
    return status;
}

SIM_API(cuOccupancyMaxPotentialClusterSize)(int *size_p, CUfunction handle, const CUlaunchConfig *config)
{
    SIM_ENTER(cuOccupancyMaxPotentialClusterSize);
    if (!size_p || !config)
        return CUDA_ERROR_INVALID_VALUE;
    *size_p = CLUSTER_PORTABLE;
    return prefer(handle, false);
}
