/* gpu.h - the few questions that memshim itself puts to a vendor's library.
 *
 * Floor 1. Function pointers are bound from the library that a hooked call goes to, so two drivers in one
 * process are asked separately, and nothing here is ever linked or opened. Callers hold no lock of ours and
 * have closed the guard. A function that an old driver lacks is NULL and its answer is "unknown".
 *
 * The pointers of struct ms_gpu have the types and the meaning of the CUDA driver's functions, whose statuses
 * they return. Another vendor's function stands there where it is the same to the last argument, or its file
 * has an adapter (hip.c, acl.c); what it has no like of stays NULL, as with an old driver. What differs more
 * is asked through `vendor`.
 *
 * Devices are numbers of base/devices.h. A context is what memory dies with and what a fence covers: CUDA's
 * handle, and for vendors without such a thing an address of ours that stands for the library's device. */
#ifndef MS_VENDOR_GPU_H
#define MS_VENDOR_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/devices.h"
#include "vendor/abi/cuda_driver.h"

#define MS_GPU_NO_DEVICE MS_DEVICE_NONE
#define MS_GPU_OWN       12

struct ms_gpu;
struct ms_gpu_description;
typedef uintptr_t (*ms_gpu_find_func_t)(void *arg, const char *symbol);

/** Functions and statuses by which one vendor answers in its own way. NULL is "unknown". */
struct ms_gpu_vendor {
    enum ms_maker maker;
    void (*bind)(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg);
    int (*current)(const struct ms_gpu *gpu, uint64_t *context_p);
    void (*describe)(const struct ms_gpu *gpu, int index, struct ms_gpu_description *description_p);
    /** Index of the device, or MS_GPU_NO_DEVICE. NULL where `pointer_attribute` is CUDA's. */
    int (*index_of)(const struct ms_gpu *gpu, uint64_t pointer);
    /* Size of the allocation that begins at `pointer`, where `address_range` is not CUDA's. */
    uint64_t (*size_of)(const struct ms_gpu *gpu, uint64_t pointer);
    /* Free and total memory of the thread's device, where `mem_get_info` is not CUDA's. */
    bool (*memory)(const struct ms_gpu *gpu, size_t *free_p, size_t *total_p);
    /** The context of a device, where each has one and its handle is no secret of the vendor's; 0 if there is
     * none. */
    uint64_t (*context_of)(const struct ms_gpu *gpu, int index);
    /* Physical memory that is recycled (pool/external/recycled.h): give it back, and fill what was mapped.
     * Statuses are the vendor's. */
    int (*handle_free)(const struct ms_gpu *gpu, uint64_t handle);
    int (*fill)(const struct ms_gpu *gpu, uint64_t address, int byte, uint64_t bytes);
    /** A pool's properties as the library has read them, where its structure ends before CUDA's does. */
    void (*pool_properties)(const struct ms_gpu *gpu, CUmemPoolProps *props);
    int unknown_handle; /* what it answers of a handle that is none */
    /** The thread's last error, where a question of ours leaves its own status there; both NULL where none
     * does. */
    int (*error_peek)(const struct ms_gpu *gpu);
    void (*error_set)(const struct ms_gpu *gpu, int error);
};
extern const struct ms_gpu_vendor ms_gpu_cuda, ms_gpu_hip, ms_gpu_acl;

struct ms_gpu {
    const struct ms_gpu_vendor *vendor; /* NULL: nothing was bound */
    uintptr_t own[MS_GPU_OWN];          /* functions that only the vendor's file knows */
    CUresult (*ctx_get_current)(CUcontext *);
    CUresult (*ctx_get_device)(CUdevice *);
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*device_get_name)(char *, int, CUdevice);
    CUresult (*device_get_uuid)(CUuuid *, CUdevice);
    CUresult (*device_total_mem)(size_t *, CUdevice);
    CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
    CUresult (*address_range)(CUdeviceptr *, size_t *, CUdeviceptr);
    CUresult (*pointer_attribute)(void *, CUpointer_attribute, CUdeviceptr);
    CUresult (*primary_state)(CUdevice, unsigned int *, int *);
    /* Memory, and the order of work, for what memshim serves itself. */
    CUresult (*mem_alloc)(CUdeviceptr *, size_t);
    CUresult (*mem_alloc_pitch)(CUdeviceptr *, size_t *, size_t, size_t, unsigned int);
    CUresult (*mem_free)(CUdeviceptr);
    CUresult (*mem_free_async)(CUdeviceptr, CUstream);
    CUresult (*mem_get_info)(size_t *, size_t *);
    CUresult (*memset_d8_async)(CUdeviceptr, unsigned char, size_t, CUstream);
    CUresult (*event_create)(CUevent *, unsigned int);
    CUresult (*event_destroy)(CUevent);
    CUresult (*event_query)(CUevent);
    CUresult (*event_synchronize)(CUevent);
    CUresult (*event_record)(CUevent, CUstream);
    CUresult (*ctx_record_event)(CUcontext, CUevent); /* since 12.5 */
    CUresult (*stream_create)(CUstream *, unsigned int);
    CUresult (*stream_wait_event)(CUstream, CUevent, unsigned int);
    CUresult (*stream_get_ctx)(CUstream, CUcontext *);
    CUresult (*stream_get_id)(CUstream, unsigned long long *);
    CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*ctx_push)(CUcontext);
    CUresult (*ctx_pop)(CUcontext *);
    CUresult (*ctx_synchronize)(void);
    CUresult (*exchange_capture_mode)(CUstreamCaptureMode *);
    CUresult (*ipc_close)(CUdeviceptr);
    /* Memory in the order of streams. */
    CUresult (*mem_alloc_from_pool_async)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
    CUresult (*mem_pool_get_attribute)(CUmemoryPool, CUmemPool_attribute, void *);
    CUresult (*mem_pool_trim_to)(CUmemoryPool, size_t);
    CUresult (*device_get_mem_pool)(CUmemoryPool *, CUdevice);
    CUresult (*device_get_default_mem_pool)(CUmemoryPool *, CUdevice);
    CUresult (*stream_query)(CUstream);
    CUresult (*device_graph_memory)(CUdevice, CUgraphMem_attribute, void *);
    /* Parameters that kernels are given; since 12.4. */
    CUresult (*func_param_info)(CUfunction, size_t, size_t *, size_t *);
    CUresult (*kernel_param_info)(CUkernel, size_t, size_t *, size_t *);
    /* Nodes of graphs, and the parameters that they were given. */
    CUresult (*graph_nodes)(CUgraph, CUgraphNode *, size_t *);
    CUresult (*graph_node_type)(CUgraphNode, CUgraphNodeType *);
    CUresult (*graph_kernel_params)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *); /* since 12.0 */
    CUresult (*graph_memcpy_params)(CUgraphNode, CUDA_MEMCPY3D *);
    CUresult (*graph_memset_params)(CUgraphNode, CUDA_MEMSET_NODE_PARAMS *);
    CUresult (*graph_child)(CUgraphNode, CUgraph *);
    CUresult (*graph_alloc_params)(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *);
    CUresult (*graph_free_params)(CUgraphNode, CUdeviceptr *);
    CUstream legacy;      /* by which name the vendor knows the stream that all threads have in common */
    bool legacy_is_named; /* 1 is a name of it, too */
    bool keeps_errors;    /* success leaves the thread's last error as it is */
    bool free_is_sync;    /* a free of the vendor's waits for what ctx_synchronize waits for */
    /* All work of a device is in streams that are seen made, and in such that an event in the legacy one
     * follows: events in these stand for one over the context. */
    bool streams_tell;
    /* A record and a query of events harm captures that are open anywhere, in every mode. */
    bool captures_are_frail;
    bool pools_end_with_context; /* and their memory; else a pool outlives it */
    /* Memory mapped by handle. */
    CUresult (*address_reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*address_free)(CUdeviceptr, size_t);
    CUresult (*handle_create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                              unsigned long long);
    CUresult (*handle_release)(CUmemGenericAllocationHandle);
    CUresult (*handle_map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*handle_unmap)(CUdeviceptr, size_t);
    CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*device_attribute)(int *, CUdevice_attribute, CUdevice);
};

struct ms_gpu_description {
    char name[128];
    uint8_t uuid[16];
    uint64_t total_bytes;
    uint64_t granularity_bytes;
};

/** Bind every pointer; `find` answers 0 for what the library lacks. */
void ms_gpu_bind(struct ms_gpu *gpu, const struct ms_gpu_vendor *vendor, ms_gpu_find_func_t find, void *arg);

/** The number of the vendor's device `index`. */
int ms_gpu_device(const struct ms_gpu *gpu, int index);

/** How the vendor is told of a stream, which memshim names as CUDA's driver does: 1 is the legacy one. */
static inline CUstream ms_gpu_stream(const struct ms_gpu *gpu, CUstream stream)
{
    return (uintptr_t)stream == 1 ? gpu->legacy : stream;
}

static inline enum ms_maker ms_gpu_maker(const struct ms_gpu *gpu)
{
    return gpu && gpu->vendor ? gpu->vendor->maker : MS_MAKER_CUDA;
}

/** The thread's last error as it is now, and as it was before: around questions, for vendors that keep one
 * (0, and nothing is done, for the others). What cannot be brought about again stays cleared. */
static inline int ms_gpu_error_peek(const struct ms_gpu *gpu)
{
    return gpu && gpu->vendor && gpu->vendor->error_peek ? gpu->vendor->error_peek(gpu) : 0;
}
static inline void ms_gpu_error_restore(const struct ms_gpu *gpu, int error)
{
    if (gpu && gpu->vendor && gpu->vendor->error_set && gpu->vendor->error_peek(gpu) != error)
        gpu->vendor->error_set(gpu, error);
}
/** As ms_gpu_error_peek and ms_gpu_error_restore, but before the vendor's call, which overwrites the error
 * anyway where success does: then nothing is asked. */
static inline int ms_gpu_error_before(const struct ms_gpu *gpu)
{
    return gpu && gpu->keeps_errors ? ms_gpu_error_peek(gpu) : 0;
}
static inline void ms_gpu_error_rewind(const struct ms_gpu *gpu, int error)
{
    if (gpu && gpu->keeps_errors)
        ms_gpu_error_restore(gpu, error);
}
/** Leaves the last error as a call does that was answered with `status` and without the vendor; `before` was
 * there. */
void ms_gpu_error_answered(const struct ms_gpu *gpu, int before, int status);
/** As ms_gpu_error_answered, of a success for which the vendor was asked nothing that leaves an error. */
static MS_INLINE void ms_gpu_error_hit(const struct ms_gpu *gpu)
{
    if (!gpu->keeps_errors)
        gpu->vendor->error_set(gpu, 0);
}

/** The calling thread's context (0 if none) and its device. */
int ms_gpu_current(const struct ms_gpu *gpu, uint64_t *context_p);
/** The calling thread's context by a CUDA driver, without asking whether it can be used: for callers that
 * know it already. */
static inline uint64_t ms_gpu_context_now(const struct ms_gpu *gpu)
{
    CUcontext current = NULL;

    return gpu->ctx_get_current && gpu->ctx_get_current(&current) == CUDA_SUCCESS ? (uintptr_t)current : 0;
}

/** As ms_gpu_context_now, but of a driver that has the function; false if it does not say. */
static inline bool ms_gpu_context_told(const struct ms_gpu *gpu, uint64_t *context_p)
{
    CUcontext current;

    if (gpu->ctx_get_current(&current) != CUDA_SUCCESS)
        return false;
    *context_p = (uintptr_t)current;
    return true;
}

/** Device on which `pointer`'s memory lies, or `otherwise` if the driver cannot say. */
int ms_gpu_device_of(const struct ms_gpu *gpu, uint64_t pointer, int otherwise);

/** True if the memory is the host's, as far as the driver says. CUDA's alone. */
bool ms_gpu_is_host(const struct ms_gpu *gpu, uint64_t pointer);
bool ms_gpu_is_managed(const struct ms_gpu *gpu, uint64_t pointer);

/** The bytes that are free of the thread's device, and how many it has; false if the driver cannot say. */
bool ms_gpu_memory(const struct ms_gpu *gpu, size_t *free_p, size_t *total_p);

/** Size of the allocation that begins at `pointer`; 0 if the driver cannot say. */
uint64_t ms_gpu_size_of(const struct ms_gpu *gpu, uint64_t pointer);

/** False if the driver cannot say; then the primary context counts as alive. */
bool ms_gpu_primary_is_dead(const struct ms_gpu *gpu, int device);

void ms_gpu_describe(const struct ms_gpu *gpu, int device, struct ms_gpu_description *description_p);
/** For a vendor's `describe`: name, UUID and size, where the functions that tell them are CUDA's. What the
 * driver cannot say stays. */
void ms_gpu_identify(const struct ms_gpu *gpu, int device, struct ms_gpu_description *description_p);

/** Bytes that an array's elements take: depth or height 0 counts as 1, each mipmap level halves every extent.
 * Block-compressed formats take half a byte or a byte an element; what the format does not tell is 0. */
uint64_t ms_gpu_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned channels,
                            unsigned levels);

/** A context is gone: its handle may come back for another device. */
void ms_gpu_context_ended(uint64_t context);

#endif
