/*
 * Modules and the variables in them. A module belongs to a context, alone or as its part of a library. A
 * variable is device memory of that context, zeroed; initial values are not read.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/code/code.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sim_code_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_code_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void free_variables(struct CUmod_st *module)
{
    while (module->variables) {
        struct sim_variable *next = module->variables->next;
        free(module->variables);
        module->variables = next;
    }
}

void sim_module_dispose(void *object)
{
    struct CUmod_st *module = object;

    free_variables(module);
    sim_image_free(&module->own);
}

/* --- variables ------------------------------------------------------------------------------------------ */

static CUresult make_variable(struct CUmod_st *module, struct CUctx_st *ctx, const char *name, size_t bytes,
                              struct sim_variable **variable_p)
{
    struct sim_variable *variable = calloc(1, sizeof *variable + strlen(name) + 1);
    struct sim_block *block;

    if (!variable)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = sim_heap_take(ctx, SIM_FOR_LAZY, bytes, &block);
    if (status != CUDA_SUCCESS) {
        free(variable);
        return status;
    }
    variable->address = block->range.start;
    variable->bytes = bytes;
    strcpy(variable->name, name);
    memset((void *)(uintptr_t)variable->address, 0, bytes);
    variable->next = module->variables;
    module->variables = *variable_p = variable;
    return CUDA_SUCCESS;
}

/* With the code lock held. */
CUresult sim_variable_find(struct CUmod_st *module, struct CUctx_st *ctx, const char *name,
                           CUdeviceptr *address_p, size_t *bytes_p)
{
    const struct sim_image *image = module->library ? &module->library->image : &module->own;
    const struct sim_name *known = sim_image_find(image, name, false);
    struct sim_variable *variable = module->variables;
    CUresult status = CUDA_SUCCESS;

    while (variable && strcmp(variable->name, name) != 0)
        variable = variable->next;
    if (!variable && !known)
        return CUDA_ERROR_NOT_FOUND;
    if (!variable)
        status = make_variable(module, ctx, name, known->bytes, &variable);
    if (status != CUDA_SUCCESS)
        return status;
    if (address_p)
        *address_p = variable->address;
    if (bytes_p)
        *bytes_p = variable->bytes;
    return CUDA_SUCCESS;
}

/* The memory of a module that ends while its context lives. */
static void drop_variables(struct CUmod_st *module)
{
    for (struct sim_variable *variable = module->variables; variable; variable = variable->next) {
        sim_memory_write_lock();
        struct sim_block *block = sim_block_base(variable->address);
        if (block && block->ctx_id == module->ctx_id)
            sim_heap_free(block);
        sim_memory_unlock();
    }
}

/* --- modules -------------------------------------------------------------------------------------------- */

static CUresult load_module(CUmodule *module_p, const void *data)
{
    struct CUctx_st *ctx;
    struct CUmod_st *module;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    if (!module_p)
        return CUDA_ERROR_INVALID_VALUE;
    module = sim_object_new(sizeof *module, SIM_MODULE, sim_module_dispose);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->ctx_id = ctx->id;
    status = sim_image_read(data, &module->own);
    if (status != CUDA_SUCCESS) {
        sim_object_put(module);
        return status;
    }
    status = sim_heap_own(ctx, SIM_FOR_MODULE, module->own.bytes, &module->code);
    if (status != CUDA_SUCCESS) {
        sim_object_put(module);
        return status;
    }
    sim_object_publish(module);
    *module_p = module;
    return CUDA_SUCCESS;
}

/* The module behind a handle in its own context, referenced. */
static CUresult get_module(CUmodule handle, struct CUctx_st **ctx_p, struct CUmod_st **module_p)
{
    CUresult status = sim_context_current(ctx_p);

    if (status != CUDA_SUCCESS)
        return status;
    *module_p = sim_object_get(handle, SIM_MODULE);
    if (!*module_p)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((*module_p)->ctx_id == (*ctx_p)->id)
        return CUDA_SUCCESS;
    sim_object_put(*module_p);
    return CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuModuleLoad)(CUmodule *module_p, const char *path)
{
    SIM_ENTER(cuModuleLoad);
    char *data = NULL;
    CUresult status = sim_image_file(path, &data);

    if (status == CUDA_SUCCESS)
        status = load_module(module_p, data);
    free(data);
    return status;
}

SIM_API(cuModuleLoadData)(CUmodule *module_p, const void *data)
{
    SIM_ENTER(cuModuleLoadData);
    return load_module(module_p, data);
}

SIM_API(cuModuleLoadDataEx)
(CUmodule *module_p, const void *data, unsigned count, CUjit_option *options, void **values)
{
    SIM_ENTER(cuModuleLoadDataEx);
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    return load_module(module_p, data); /* nothing is compiled: options have nothing to say */
}

SIM_API(cuModuleLoadFatBinary)(CUmodule *module_p, const void *data)
{
    SIM_ENTER(cuModuleLoadFatBinary);
    return load_module(module_p, data);
}

/* Kernels of the module that are still queued keep no memory of it alive, so the context's work is waited
 * for. */
void sim_module_end(struct CUmod_st *module)
{
    sim_function_retire(module->functions);
    module->functions = NULL;
    drop_variables(module);
    sim_heap_disown(module->ctx_id, module->code);
    if (sim_object_retire(module))
        sim_object_put(module);
}

SIM_API(cuModuleUnload)(CUmodule handle)
{
    SIM_ENTER(cuModuleUnload);
    struct CUctx_st *ctx;
    struct CUmod_st *module;
    CUresult status = get_module(handle, &ctx, &module);

    if (status != CUDA_SUCCESS)
        return status;
    if (module->library) {
        status = CUDA_ERROR_INVALID_HANDLE; /* it goes with its library */
    } else {
        sim_context_drain(ctx);
        sim_code_lock();
        sim_module_end(module);
        sim_code_unlock();
    }
    sim_object_put(module);
    return status;
}

SIM_API(cuModuleGetLoadingMode)(CUmoduleLoadingMode *mode_p)
{
    SIM_ENTER(cuModuleGetLoadingMode);
    if (!mode_p)
        return CUDA_ERROR_INVALID_VALUE;
    *mode_p = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static const struct sim_image *image_of(const struct CUmod_st *module)
{
    return module->library ? &module->library->image : &module->own;
}

SIM_API(cuModuleGetFunction)(CUfunction *function_p, CUmodule handle, const char *name)
{
    SIM_ENTER(cuModuleGetFunction);
    struct CUctx_st *ctx;
    struct CUmod_st *module;
    struct sim_function *function;
    CUresult status = get_module(handle, &ctx, &module);

    if (status != CUDA_SUCCESS)
        return status;
    if (function_p && name) {
        sim_code_lock();
        status = sim_function_of(&module->functions, image_of(module), name, SIM_FUNCTION, &function);
        if (status == CUDA_SUCCESS) {
            function->module = module;
            *function_p = (CUfunction)function;
        }
        sim_code_unlock();
    } else {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    sim_object_put(module);
    return status;
}

SIM_API(cuModuleGetFunctionCount)(unsigned *count_p, CUmodule handle)
{
    SIM_ENTER(cuModuleGetFunctionCount);
    struct CUctx_st *ctx;
    struct CUmod_st *module;
    CUresult status = count_p && handle ? get_module(handle, &ctx, &module) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    sim_code_lock();
    *count_p = sim_function_all(&module->functions, image_of(module), SIM_FUNCTION);
    sim_code_unlock();
    sim_object_put(module);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleEnumerateFunctions)(CUfunction *functions, unsigned count, CUmodule handle)
{
    SIM_ENTER(cuModuleEnumerateFunctions);
    struct CUctx_st *ctx;
    struct CUmod_st *module;
    CUresult status = functions && handle ? get_module(handle, &ctx, &module) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    sim_code_lock();
    sim_function_all(&module->functions, image_of(module), SIM_FUNCTION);
    for (struct sim_function *f = module->functions; f; f = f->next) {
        f->module = module;
        if (count) {
            *functions++ = (CUfunction)f;
            count--;
        }
    }
    sim_code_unlock();
    sim_object_put(module);
    return CUDA_SUCCESS;
}

static CUresult module_variable(CUdeviceptr *address_p, size_t *bytes_p, CUmodule handle, const char *name)
{
    struct CUctx_st *ctx;
    struct CUmod_st *module;
    CUresult status = get_module(handle, &ctx, &module);

    if (status != CUDA_SUCCESS)
        return status;
    status = CUDA_ERROR_INVALID_VALUE;
    if (name && (address_p || bytes_p)) {
        sim_code_lock();
        status = sim_variable_find(module, ctx, name, address_p, bytes_p);
        sim_code_unlock();
    }
    sim_object_put(module);
    return status;
}

SIM_API(cuModuleGetGlobal_v2)(CUdeviceptr *address_p, size_t *bytes_p, CUmodule handle, const char *name)
{
    SIM_ENTER(cuModuleGetGlobal_v2);
    return module_variable(address_p, bytes_p, handle, name);
}
