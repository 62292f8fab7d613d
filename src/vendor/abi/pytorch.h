/*
 * The part of PyTorch's C++ interface that the signatures of hooks/table/pytorch.def need.
 *
 * Own declarations of public facts (c10/core/Device.h, c10/core/DeviceType.h and c10/core/Allocator.h of
 * releases 1.8 to 2.15).
 */
#ifndef MEMSHIM_GPU_ABI_PYTORCH_H
#define MEMSHIM_GPU_ABI_PYTORCH_H

#include <stdint.h>

/* c10::DeviceType; programs for AMD's devices call them CUDA, too. */
enum {
    C10_DEVICE_CPU = 0,
    C10_DEVICE_CUDA = 1,
    C10_DEVICE_HIP = 6,
    C10_DEVICE_XPU = 12,
    C10_DEVICE_PRIVATE_USE_1 = 20, /* torch_npu's */
};

/* c10::Device, which is passed by value. */
struct c10_device {
    int8_t type, index;
};

/* Its segments for blocks of 10 MiB and more are these rounded up to 2 MiB, for smaller ones 20 MiB at most
 * (c10/cuda/CUDACachingAllocator.cpp: kLargeBuffer, kRoundLarge). */
#define C10_SEGMENT_LEAST   (UINT64_C(20) << 20)
#define C10_SEGMENT_GRANULE (UINT64_C(2) << 20)

#endif
