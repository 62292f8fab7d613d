/* serve_mempool.c - the program's own pools, of which what is served in stream order is carved.
 *
 * The driver makes, checks, changes and ends them; the pool (src/pool/stream/mempool.c) is told what it must
 * know. Two attributes are answered here, since the driver believes that all that was taken for later is in
 * use. No lock, no allocation; inside a hook scope. */
#include "hooks/serve/answer.h"

#include "vendor/gpu.h"
#include "hooks/serve/serve.h"
#include "pool/stream/stream.h"

/* Plain memory of one device, for this process alone: what is carved of it is as good as what the driver
 * would give. So it is where the pool's memory can be decompressed into by hardware, which some libraries ask
 * of every pool: a property of each byte. */
static bool is_plain(const CUmemPoolProps *props)
{
    return props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
           props->handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
           props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           !(props->usage & ~CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS);
}

/* The driver has accepted the properties. */
void ms_serve_mempool_made(const struct ms_gpu *gpu, const struct ms_args *args)
{
    const CUmemoryPool *pool_p = args->out;
    CUmemPoolProps props;

    if (!pool_p || !*pool_p || !args->given)
        return;
    props = *(const CUmemPoolProps *)(uintptr_t)args->given;
    if (gpu && gpu->vendor && gpu->vendor->pool_properties)
        gpu->vendor->pool_properties(gpu, &props);
    if (props.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        ms_mempool_made(gpu, (uintptr_t)*pool_p, ms_gpu_device(gpu, props.location.id),
                        props.allocType == CU_MEM_ALLOCATION_TYPE_PINNED, is_plain(&props));
    if (props.maxSize)
        ms_mempool_bounded((uintptr_t)*pool_p);
}

void ms_serve_mempool_set(const struct ms_args *args)
{
    if (!args->out)
        return;
    switch ((int)args->flags) {
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        ms_mempool_set(args->key, MS_MEMPOOL_OPPORTUNISTIC, (uint64_t) * (const int *)args->out);
        break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        ms_mempool_set(args->key, MS_MEMPOOL_INTERNAL, (uint64_t) * (const int *)args->out);
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        ms_mempool_set(args->key, MS_MEMPOOL_THRESHOLD, *(const cuuint64_t *)args->out);
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        ms_mempool_reset_high(args->key);
        break;
    default:
        break;
    }
}

typedef CUresult (*get_func_t)(CUmemoryPool, CUmemPool_attribute, void *);

/* Of what the driver counts as used, our segments are not; what is served is. */
bool ms_answer_MEMPOOL_GET(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    get_func_t vendor = (get_func_t)target->real;
    bool high = args->flags == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    struct ms_mempool_use use;
    struct ms_hook_scope scope;
    cuuint64_t now = 0;

    if ((args->flags != CU_MEMPOOL_ATTR_USED_MEM_CURRENT && !high) || !ms_serve_matters())
        return false;
    ms_hook_scope_enter(&scope);
    *status_p = (int)vendor((CUmemoryPool)(uintptr_t)args->key, (CUmemPool_attribute)args->flags,
                            (void *)(uintptr_t)args->out);
    if (*status_p == 0 && ms_mempool_use(args->key, &use) && (use.held || use.high)) {
        if (!high)
            now = *(const cuuint64_t *)(uintptr_t)args->out;
        else if (vendor((CUmemoryPool)(uintptr_t)args->key, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &now) !=
                 CUDA_SUCCESS)
            now = 0; /* what the driver answers by itself of the pool is not known then */
        now = now > use.held ? now - use.held : 0;
        *(cuuint64_t *)(uintptr_t)args->out = now + (high ? use.high : use.used);
    }
    ms_hook_scope_leave(&scope);
    return true;
}
