/* gpu.h - the few questions that memshim itself puts to a vendor's driver.
 *
 * Floor 1. Function pointers are bound from the library that a hooked call goes to, so two drivers in one process are asked
 * separately, and nothing here is ever linked or opened. Callers hold no lock of ours and have closed the guard. A function
 * that an old driver lacks is NULL and its answer is "unknown". */
#ifndef MS_GPU_GPU_H
#define MS_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda_driver.h"

#define MS_GPU_NO_DEVICE (-1)

struct ms_gpu {
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
    CUresult (*event_record)(CUevent, CUstream);
    CUresult (*ctx_record_event)(CUcontext, CUevent); /* since 12.5 */
    CUresult (*stream_create)(CUstream *, unsigned int);
    CUresult (*stream_wait_event)(CUstream, CUevent, unsigned int);
    CUresult (*stream_get_ctx)(CUstream, CUcontext *);
    CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*ctx_push)(CUcontext);
    CUresult (*ctx_pop)(CUcontext *);
    CUresult (*ctx_synchronize)(void);
    CUresult (*exchange_capture_mode)(CUstreamCaptureMode *);
    CUresult (*ipc_close)(CUdeviceptr);
};

struct ms_gpu_description {
    char name[128];
    uint8_t uuid[16];
    uint64_t total_bytes;
    uint64_t granularity_bytes;
};

typedef uintptr_t (*ms_gpu_find_func_t)(void *arg, const char *symbol);

/** Bind every pointer; `find` answers 0 for what the library lacks. */
void ms_gpu_bind(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg);

/** The calling thread's context (0 if none) and the ordinal of its device. */
int ms_gpu_current(const struct ms_gpu *gpu, uint64_t *context_p);

/** Device on which `pointer`'s memory lies, or `otherwise` if the driver cannot say. */
int ms_gpu_device_of(const struct ms_gpu *gpu, uint64_t pointer, int otherwise);

/** Size of the allocation that begins at `pointer`; 0 if the driver cannot say. */
uint64_t ms_gpu_size_of(const struct ms_gpu *gpu, uint64_t pointer);

/** False if the driver cannot say; then the primary context counts as alive. */
bool ms_gpu_primary_is_dead(const struct ms_gpu *gpu, int device);

void ms_gpu_describe(const struct ms_gpu *gpu, int device, struct ms_gpu_description *description_p);

/** Bytes that an array's elements take: depth or height 0 counts as 1, each mipmap level halves every extent. Block-compressed formats
 * take half a byte or a byte an element; what the format does not tell is 0. */
uint64_t ms_gpu_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned channels, unsigned levels);

/** A context is gone: its handle may come back for another device. */
void ms_gpu_context_ended(uint64_t context);

#endif
