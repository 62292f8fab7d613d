/*
 * Green contexts: a part of a device's multiprocessors with streams of its own. What is made in one belongs
 * to the primary context, which it keeps retained; its work is told apart from the rest, so that it can be
 * waited for alone. Parts are counted and handed out; kernels do not run slower for being in a small one.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

#define SM_LEAST 8U /* of a part, and what its size is a multiple of */
#define SM_ALONE 2U /* the same without co-scheduling */

/* The mark that a resource carries in its padding: where it is from, to tell one of ours from garbage and one
 * split from another. */
struct stamp {
    char magic[8];
    int device;
    unsigned long long split; /* 0: the device's, or a green context's own */
};

struct CUgreenCtx_st {
    struct sim_object object;
    struct CUctx_st *view; /* as a context; a published handle while the green context lives */
    CUdevResource resource;
};

/* Descriptors have no end in the vendor's interface: all of them are kept. */
struct CUdevResourceDesc_st {
    struct CUdevResourceDesc_st *next;
    CUdevResource resource;
};

static struct CUdevResourceDesc_st *_Atomic descs;

static const char magic[8] = "memsim";

static bool read_stamp(const CUdevResource *resource, struct stamp *stamp)
{
    memcpy(stamp, resource->_internal_padding, sizeof *stamp);
    return resource->type == CU_DEV_RESOURCE_TYPE_SM && !memcmp(stamp->magic, magic, sizeof magic);
}

static void fill(CUdevResource *resource, unsigned count, unsigned least, int device,
                 unsigned long long split)
{
    struct stamp stamp = {.device = device, .split = split};

    memcpy(stamp.magic, magic, sizeof magic);
    memset(resource, 0, sizeof *resource);
    memcpy(resource->_internal_padding, &stamp, sizeof stamp);
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    resource->sm = (CUdevSmResource){count, least, least};
}

static CUresult get_all(int device, CUdevResource *resource, CUdevResourceType type)
{
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
        return resource ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_ERROR_INVALID_VALUE;
    fill(resource, (unsigned)sim_card_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), SM_LEAST, device,
         0);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetDevResource)(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    SIM_ENTER(cuDeviceGetDevResource);
    return sim_device(device) ? get_all(device, resource, type) : CUDA_ERROR_INVALID_DEVICE;
}

CUgreenCtx sim_green_of(const struct CUctx_st *view)
{
    return view->owner;
}

static CUresult get_own(const struct CUctx_st *ctx, CUdevResource *resource, CUdevResourceType type)
{
    if (!ctx->home)
        return get_all(ctx->device->ordinal, resource, type);
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
        return resource ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_ERROR_INVALID_VALUE;
    const struct CUgreenCtx_st *green = ctx->owner;
    fill(resource, green->resource.sm.smCount, SM_LEAST, ctx->device->ordinal, 0);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevResource)(CUcontext handle, CUdevResource *resource, CUdevResourceType type)
{
    SIM_ENTER(cuCtxGetDevResource);
    struct CUctx_st *ctx = sim_object_get(handle, SIM_CONTEXT);

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult status = get_own(ctx, resource, type);
    sim_object_put(ctx);
    return status;
}

SIM_API(cuGreenCtxGetDevResource)(CUgreenCtx handle, CUdevResource *resource, CUdevResourceType type)
{
    SIM_ENTER(cuGreenCtxGetDevResource);
    struct CUgreenCtx_st *green = sim_object_get(handle, SIM_GREEN);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult status = get_own(green->view, resource, type);
    sim_object_put(green);
    return status;
}

SIM_API(cuDevSmResourceSplitByCount)
(CUdevResource *result, unsigned *groups_p, const CUdevResource *input, CUdevResource *rest, unsigned flags,
 unsigned least)
{
    SIM_ENTER(cuDevSmResourceSplitByCount);
    const unsigned known =
        CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    unsigned unit = flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING ? SM_ALONE : SM_LEAST;
    struct stamp stamp;

    if (!groups_p || !input || (flags & ~known) || !read_stamp(input, &stamp) || least > input->sm.smCount)
        return CUDA_ERROR_INVALID_VALUE;
    if (stamp.split)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION; /* split already */
    unsigned each = least > unit ? (least + unit - 1) / unit * unit : unit;
    unsigned most = input->sm.smCount / each, count = result && *groups_p < most ? *groups_p : most;
    unsigned long long split = sim_next_id();
    for (unsigned i = 0; result && i < count; i++)
        fill(&result[i], each, unit, stamp.device, split);
    if (rest && input->sm.smCount > count * each)
        fill(rest, input->sm.smCount - count * each, unit, stamp.device, split);
    else if (rest)
        memset(rest, 0, sizeof *rest);
    *groups_p = count;
    return CUDA_SUCCESS;
}

SIM_API(cuDevResourceGenerateDesc)(CUdevResourceDesc *desc_p, CUdevResource *resources, unsigned count)
{
    SIM_ENTER(cuDevResourceGenerateDesc);
    struct stamp first, stamp;
    unsigned total = 0;

    if (!desc_p || !resources || !count || !read_stamp(&resources[0], &first))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!read_stamp(&resources[i], &stamp))
            return CUDA_ERROR_INVALID_VALUE;
        if (stamp.device != first.device || (i && (!stamp.split || stamp.split != first.split)))
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        total += resources[i].sm.smCount;
    }
    struct CUdevResourceDesc_st *desc = calloc(1, sizeof *desc);
    if (!desc)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fill(&desc->resource, total, SM_LEAST, first.device, first.split);
    desc->next = atomic_load(&descs);
    while (!atomic_compare_exchange_weak(&descs, &desc->next, desc))
        ;
    *desc_p = desc;
    return CUDA_SUCCESS;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void dispose_view(void *object)
{
    struct CUctx_st *view = object;

    sim_queue_gate_prune(view, true);
    sim_object_put(view->owner);
    sim_object_put(view->home);
}

/* The green context as a context: what is current to a thread, and what its streams belong to. */
static CUresult open_view(struct CUgreenCtx_st *green, struct CUctx_st *home)
{
    struct CUctx_st *view;
    CUresult status = sim_context_new(home->device, home->flags, home->api_version, &view);

    if (status != CUDA_SUCCESS)
        return status;
    view->object.dispose = dispose_view;
    view->home = sim_object_ref(home);
    view->owner = sim_object_ref(green);
    view->id = sim_next_id();
    view->legacy = sim_queue_new_green(view, true);
    if (!view->legacy) {
        sim_object_put(view);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    atomic_store(&view->alive, true);
    green->view = view;
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxCreate)(CUgreenCtx *green_p, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
    SIM_ENTER(cuGreenCtxCreate);
    struct CUctx_st *home;
    struct stamp stamp;

    if (!green_p || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!read_stamp(&desc->resource, &stamp) || stamp.device != device)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = sim_primary_retain(&home, device);
    if (status != CUDA_SUCCESS)
        return status;
    struct CUgreenCtx_st *green = sim_object_new(sizeof *green, SIM_GREEN, NULL);
    status = green ? open_view(green, home) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        if (green)
            sim_object_put(green);
        sim_primary_release(device);
        return status;
    }
    green->resource = desc->resource;
    sim_object_publish(green->view);
    sim_object_publish(green);
    *green_p = green;
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxDestroy)(CUgreenCtx handle)
{
    SIM_ENTER(cuGreenCtxDestroy);
    struct CUgreenCtx_st *green = sim_object_get(handle, SIM_GREEN);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (sim_object_retire(green)) {
        struct CUctx_st *view = green->view;
        int device = view->device->ordinal;
        sim_capture_forget(view->legacy);
        sim_context_drain(view);
        atomic_store(&view->alive, false);
        sim_queue_close(view->legacy);
        sim_queue_put(view->legacy);
        view->legacy = NULL;
        if (sim_object_retire(view))
            sim_object_put(view);
        sim_object_put(green);
        sim_primary_release(device);
    }
    sim_object_put(green);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxFromGreenCtx)(CUcontext *ctx_p, CUgreenCtx handle)
{
    SIM_ENTER(cuCtxFromGreenCtx);
    struct CUgreenCtx_st *green = ctx_p ? sim_object_get(handle, SIM_GREEN) : NULL;

    if (!green)
        return ctx_p ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    *ctx_p = green->view;
    sim_object_put(green);
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxGetId)(CUgreenCtx handle, unsigned long long *id_p)
{
    SIM_ENTER(cuGreenCtxGetId);
    struct CUgreenCtx_st *green = id_p ? sim_object_get(handle, SIM_GREEN) : NULL;

    if (!green)
        return id_p ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    *id_p = green->view->id;
    sim_object_put(green);
    return CUDA_SUCCESS;
}

/* --- streams and events --------------------------------------------------------------------------------- */

SIM_API(cuGreenCtxStreamCreate)(CUstream *stream_p, CUgreenCtx handle, unsigned flags, int priority)
{
    SIM_ENTER(cuGreenCtxStreamCreate);
    struct CUgreenCtx_st *green = sim_object_get(handle, SIM_GREEN);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult status = sim_context_error(green->view->home);
    if (status == CUDA_SUCCESS && flags != CU_STREAM_NON_BLOCKING)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        status = sim_stream_make(green->view->home, green->view, stream_p, flags, priority);
    sim_object_put(green);
    return status;
}

SIM_API(cuStreamGetGreenCtx)(CUstream stream, CUgreenCtx *green_p)
{
    SIM_ENTER(cuStreamGetGreenCtx);
    struct sim_queue *queue;
    CUresult status = green_p ? sim_stream_find(stream, false, &queue) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *green_p = queue->green ? queue->green->owner : NULL;
    sim_queue_put(queue);
    return CUDA_SUCCESS;
}

static CUresult with_event(CUgreenCtx handle, CUevent event_handle, bool record)
{
    struct CUgreenCtx_st *green = sim_object_get(handle, SIM_GREEN);
    struct CUevent_st *event = sim_object_get(event_handle, SIM_EVENT);
    CUresult status;

    if (!green)
        status = CUDA_ERROR_INVALID_CONTEXT;
    else if (!event || (record && sim_event_context(event) != green->view->home))
        status = CUDA_ERROR_INVALID_HANDLE;
    else if (record)
        status = sim_event_record_context(green->view, event);
    else
        status = sim_event_wait_context(green->view, event);
    if (event)
        sim_object_put(event);
    if (green)
        sim_object_put(green);
    return status;
}

SIM_API(cuGreenCtxRecordEvent)(CUgreenCtx green, CUevent event)
{
    SIM_ENTER(cuGreenCtxRecordEvent);
    return with_event(green, event, true);
}

SIM_API(cuGreenCtxWaitEvent)(CUgreenCtx green, CUevent event)
{
    SIM_ENTER(cuGreenCtxWaitEvent);
    return with_event(green, event, false);
}
