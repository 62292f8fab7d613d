/*
 * Copies and fills. Where memory lies is told by the address, whatever the call says.
 */
#include "sim/hip/hip.h"

#define KINDS(kind, answer)                                                                                  \
    ((unsigned)(kind) > hipMemcpyDefault ? (CUresult)21 /* hipErrorInvalidMemcpyDirection */ : (answer))

HIP_AS(hipMemcpy, (void *to, const void *from, size_t size, hipMemcpyKind kind),
       KINDS(kind, cuMemcpy(hip_address(to), hip_address(from), size)))
HIP_AS(hipMemcpy_spt, (void *to, const void *from, size_t size, hipMemcpyKind kind),
       KINDS(kind, cuMemcpy_ptds(hip_address(to), hip_address(from), size)))
HIP_AS(hipMemcpyAsync, (void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream),
       KINDS(kind, cuMemcpyAsync(hip_address(to), hip_address(from), size, hip_stream(stream))))
HIP_AS(hipMemcpyAsync_spt, (void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream),
       KINDS(kind, cuMemcpyAsync_ptsz(hip_address(to), hip_address(from), size, hip_stream(stream))))

HIP_API hipMemcpyWithStream(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream)
{
    HIP_ENTER_DEVICE(hipMemcpyWithStream);
    int status =
        (int)KINDS(kind, cuMemcpyAsync(hip_address(to), hip_address(from), size, hip_stream(stream)));
    return hip_leave(status == hipSuccess ? (int)cuStreamSynchronize(hip_stream(stream)) : status);
}

HIP_AS(hipMemcpyHtoD, (hipDeviceptr_t to, void *from, size_t size),
       cuMemcpyHtoD_v2(hip_address(to), from, size))
HIP_AS(hipMemcpyDtoH, (void *to, hipDeviceptr_t from, size_t size),
       cuMemcpyDtoH_v2(to, hip_address(from), size))
HIP_AS(hipMemcpyDtoD, (hipDeviceptr_t to, hipDeviceptr_t from, size_t size),
       cuMemcpyDtoD_v2(hip_address(to), hip_address(from), size))
HIP_AS(hipMemcpyHtoDAsync, (hipDeviceptr_t to, void *from, size_t size, hipStream_t stream),
       cuMemcpyHtoDAsync_v2(hip_address(to), from, size, hip_stream(stream)))
HIP_AS(hipMemcpyDtoHAsync, (void *to, hipDeviceptr_t from, size_t size, hipStream_t stream),
       cuMemcpyDtoHAsync_v2(to, hip_address(from), size, hip_stream(stream)))
HIP_AS(hipMemcpyDtoDAsync, (hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream),
       cuMemcpyDtoDAsync_v2(hip_address(to), hip_address(from), size, hip_stream(stream)))

HIP_API hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size)
{
    HIP_ENTER_DEVICE(hipMemcpyPeer);
    CUcontext there = hip_context(to_device), here = hip_context(from_device);
    return hip_leave(there && here ? (int)cuMemcpyPeer(hip_address(to), there, hip_address(from), here, size)
                                   : hipErrorInvalidDevice);
}

HIP_API hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                           hipStream_t stream)
{
    HIP_ENTER_DEVICE(hipMemcpyPeerAsync);
    CUcontext there = hip_context(to_device), here = hip_context(from_device);
    return hip_leave(there && here ? (int)cuMemcpyPeerAsync(hip_address(to), there, hip_address(from), here,
                                                            size, hip_stream(stream))
                                   : hipErrorInvalidDevice);
}

static CUDA_MEMCPY2D box(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = hip_address(from),
                           .srcPitch = from_pitch,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = hip_address(to),
                           .dstPitch = to_pitch,
                           .WidthInBytes = width,
                           .Height = height};
}

HIP_API hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                    size_t height, hipMemcpyKind kind)
{
    const CUDA_MEMCPY2D copy = box(to, to_pitch, from, from_pitch, width, height);

    HIP_ENTER_DEVICE(hipMemcpy2D);
    return hip_leave((int)KINDS(kind, cuMemcpy2DUnaligned_v2(&copy)));
}

HIP_API hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t height, hipMemcpyKind kind, hipStream_t stream)
{
    const CUDA_MEMCPY2D copy = box(to, to_pitch, from, from_pitch, width, height);

    HIP_ENTER_DEVICE(hipMemcpy2DAsync);
    return hip_leave((int)KINDS(kind, cuMemcpy2DAsync_v2(&copy, hip_stream(stream))));
}

HIP_AS(hipMemset, (void *to, int value, size_t size),
       cuMemsetD8_v2(hip_address(to), (unsigned char)value, size))
HIP_AS(hipMemset_spt, (void *to, int value, size_t size),
       cuMemsetD8_v2_ptds(hip_address(to), (unsigned char)value, size))
HIP_AS(hipMemsetAsync, (void *to, int value, size_t size, hipStream_t stream),
       cuMemsetD8Async(hip_address(to), (unsigned char)value, size, hip_stream(stream)))
#if SIM_HIP >= 6
HIP_AS(hipMemsetAsync_spt, (void *to, int value, size_t size, hipStream_t stream),
       cuMemsetD8Async_ptsz(hip_address(to), (unsigned char)value, size, hip_stream(stream)))
#endif
HIP_AS(hipMemsetD8, (hipDeviceptr_t to, unsigned char value, size_t count),
       cuMemsetD8_v2(hip_address(to), value, count))
HIP_AS(hipMemsetD8Async, (hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream),
       cuMemsetD8Async(hip_address(to), value, count, hip_stream(stream)))
HIP_AS(hipMemsetD16, (hipDeviceptr_t to, unsigned short value, size_t count),
       cuMemsetD16_v2(hip_address(to), value, count))
HIP_AS(hipMemsetD16Async, (hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream),
       cuMemsetD16Async(hip_address(to), value, count, hip_stream(stream)))
HIP_AS(hipMemsetD32, (hipDeviceptr_t to, int value, size_t count),
       cuMemsetD32_v2(hip_address(to), (unsigned)value, count))
HIP_AS(hipMemsetD32Async, (hipDeviceptr_t to, int value, size_t count, hipStream_t stream),
       cuMemsetD32Async(hip_address(to), (unsigned)value, count, hip_stream(stream)))
HIP_AS(hipMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
       cuMemsetD2D8_v2(hip_address(to), pitch, (unsigned char)value, width, height))
HIP_AS(hipMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream),
       cuMemsetD2D8Async(hip_address(to), pitch, (unsigned char)value, width, height, hip_stream(stream)))
