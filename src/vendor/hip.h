/* hip.h - what the rows of hip.def ask of a HIP library besides gpu.h. Floor 1. */
#ifndef MS_VENDOR_HIP_H
#define MS_VENDOR_HIP_H

#include "vendor/abi/hip.h"
#include "vendor/gpu.h"

/** The place that stands for the calling thread's device; 0 if there is none. */
uint64_t ms_hip_context(const struct ms_gpu *gpu);
/** The device that the properties name, in the library's own layout; MS_DEVICE_NONE for none. */
int ms_hip_device_of(const struct ms_gpu *gpu, const hipMemAllocationProp *prop);
/** Rows of all layers; UINT64_MAX for more than there can be. */
static inline uint64_t ms_hip_rows(hipExtent extent)
{
    uint64_t rows;

    return __builtin_mul_overflow((uint64_t)extent.height, (uint64_t)extent.depth, &rows) ? UINT64_MAX : rows;
}
/** The bytes of an element where the program does not say: the length of rows does not depend on it. */
enum { MS_HIP_PITCH_ELEMENT = 4 };
/** Bytes of an array's elements: depth or height 0 counts as 1, each level halves every extent. */
uint64_t ms_hip_array_bytes(const hipChannelFormatDesc *desc, uint64_t width, uint64_t height, uint64_t depth,
                            unsigned levels);

#endif
