/*
 * Libraries: code that belongs to no context and makes a module in each context that uses it. Kernels are
 * handles of the library; their functions live in those modules.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/code/code.h"

static void dispose_library(void *object)
{
    struct CUlib_st *library = object;

    sim_image_free(&library->image);
}

CUresult sim_library_module(struct CUlib_st *library, struct CUctx_st *ctx, struct CUmod_st **module_p)
{
    struct CUmod_st *module = library->modules;

    while (module && module->ctx_id != ctx->id)
        module = module->next;
    if (!module) {
        module = sim_object_new(sizeof *module, SIM_MODULE, sim_module_dispose);
        if (!module)
            return CUDA_ERROR_OUT_OF_MEMORY;
        module->ctx_id = ctx->id;
        if (sim_heap_own(ctx, SIM_FOR_LAZY, library->image.bytes, &module->code) != CUDA_SUCCESS) {
            sim_object_put(module);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        module->library = library;
        module->next = library->modules;
        library->modules = module;
        sim_object_publish(module);
    }
    *module_p = module;
    return CUDA_SUCCESS;
}

static CUresult load_library(CUlibrary *library_p, const void *data)
{
    struct CUlib_st *library;

    if (!library_p)
        return CUDA_ERROR_INVALID_VALUE;
    library = sim_object_new(sizeof *library, SIM_LIBRARY, dispose_library);
    if (!library)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = sim_image_read(data, &library->image);
    if (status != CUDA_SUCCESS) {
        sim_object_put(library);
        return status;
    }
    sim_object_publish(library);
    *library_p = library;
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryLoadData)
(CUlibrary *library_p, const void *data, CUjit_option *jit_options, void **jit_values, unsigned jit_count,
 CUlibraryOption *options, void **values, unsigned count)
{
    SIM_ENTER(cuLibraryLoadData);
    if ((jit_count && (!jit_options || !jit_values)) || (count && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    return load_library(library_p, data);
}

SIM_API(cuLibraryLoadFromFile)
(CUlibrary *library_p, const char *path, CUjit_option *jit_options, void **jit_values, unsigned jit_count,
 CUlibraryOption *options, void **values, unsigned count)
{
    SIM_ENTER(cuLibraryLoadFromFile);
    char *data = NULL;
    CUresult status = sim_image_file(path, &data);

    (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    if (status == CUDA_SUCCESS)
        status = load_library(library_p, data);
    free(data);
    return status;
}

SIM_API(cuLibraryUnload)(CUlibrary handle)
{
    SIM_ENTER(cuLibraryUnload);
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_code_lock();
    if (sim_object_retire(library)) {
        sim_function_retire(library->kernels);
        while (library->modules) {
            struct CUmod_st *module = library->modules;
            library->modules = module->next;
            sim_module_end(module);
        }
        sim_object_put(library);
    }
    sim_code_unlock();
    sim_object_put(library);
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernel)(CUkernel *kernel_p, CUlibrary handle, const char *name)
{
    SIM_ENTER(cuLibraryGetKernel);
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);
    struct sim_function *kernel;
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (kernel_p && name) {
        sim_code_lock();
        status = sim_function_of(&library->kernels, &library->image, name, SIM_KERNEL, &kernel);
        if (status == CUDA_SUCCESS) {
            kernel->library = library;
            *kernel_p = (CUkernel)kernel;
        }
        sim_code_unlock();
    }
    sim_object_put(library);
    return status;
}

SIM_API(cuLibraryGetKernelCount)(unsigned *count_p, CUlibrary handle)
{
    SIM_ENTER(cuLibraryGetKernelCount);
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (count_p) {
        sim_code_lock();
        *count_p = sim_function_all(&library->kernels, &library->image, SIM_KERNEL);
        sim_code_unlock();
    }
    sim_object_put(library);
    return count_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuLibraryEnumerateKernels)(CUkernel *kernels, unsigned count, CUlibrary handle)
{
    SIM_ENTER(cuLibraryEnumerateKernels);
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_code_lock();
    sim_function_all(&library->kernels, &library->image, SIM_KERNEL);
    for (struct sim_function *k = library->kernels; k && kernels && count; k = k->next, count--) {
        k->library = library;
        *kernels++ = (CUkernel)k;
    }
    sim_code_unlock();
    sim_object_put(library);
    return kernels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuLibraryGetModule)(CUmodule *module_p, CUlibrary handle)
{
    SIM_ENTER_CTX(cuLibraryGetModule);
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (module_p) {
        sim_code_lock();
        status = sim_library_module(library, ctx, module_p);
        sim_code_unlock();
    }
    sim_object_put(library);
    return status;
}

static CUresult library_variable(struct CUctx_st *ctx, CUdeviceptr *address_p, size_t *bytes_p,
                                 CUlibrary handle, const char *name)
{
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);
    struct CUmod_st *module;
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (name && (address_p || bytes_p)) {
        sim_code_lock();
        status = sim_library_module(library, ctx, &module);
        if (status == CUDA_SUCCESS)
            status = sim_variable_find(module, ctx, name, address_p, bytes_p);
        sim_code_unlock();
    }
    sim_object_put(library);
    return status;
}

/* True if the library has a kernel of that name, and says so in its image. */
static bool is_kernel(CUlibrary handle, const char *name)
{
    struct CUlib_st *library = sim_object_get(handle, SIM_LIBRARY);

    if (!library)
        return false;
    bool found = sim_image_find(&library->image, name, true) != NULL;
    sim_object_put(library);
    return found;
}

SIM_API(cuLibraryGetGlobal)(CUdeviceptr *address_p, size_t *bytes_p, CUlibrary handle, const char *name)
{
    SIM_ENTER_CTX(cuLibraryGetGlobal);
    CUresult status = library_variable(ctx, address_p, bytes_p, handle, name);

    return status == CUDA_ERROR_NOT_FOUND && is_kernel(handle, name) ? CUDA_ERROR_INVALID_VALUE : status;
}

/* The simulator's device memory is host memory: the host may read and write a managed variable where it
 * is. */
SIM_API(cuLibraryGetManaged)(CUdeviceptr *address_p, size_t *bytes_p, CUlibrary handle, const char *name)
{
    SIM_ENTER_CTX(cuLibraryGetManaged);
    return library_variable(ctx, address_p, bytes_p, handle, name);
}
