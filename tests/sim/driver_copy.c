/* The simulated driver: copies with a shape, arrays, peers, and what is staged. */
#include "driver.h"

static void two_dimensions(void)
{
    unsigned char in[6][10], out[6][10];
    CUdeviceptr p;
    size_t pitch;

    for (int i = 0; i < 60; i++)
        in[i / 10][i % 10] = (unsigned char)i;
    memset(out, 0xff, sizeof out);
    must(cuMemAllocPitch_v2(&p, &pitch, 10, 6, 4));
    CUDA_MEMCPY2D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 10,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = p,
                        .dstPitch = pitch,
                        .WidthInBytes = 10,
                        .Height = 6};
    CUDA_MEMCPY2D down = {.srcXInBytes = 2,
                          .srcY = 1,
                          .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = p,
                          .srcPitch = pitch,
                          .dstXInBytes = 3,
                          .dstY = 2,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .dstPitch = 10,
                          .WidthInBytes = 4,
                          .Height = 3};
    answers(cuMemcpy2D_v2(&up), CUDA_SUCCESS);
    answers(cuMemcpy2DAsync_v2(&down, NULL), CUDA_SUCCESS);
    must(cuCtxSynchronize());
    ok(out[2][3] == in[1][2] && out[4][6] == in[3][5], "a rectangle lands where it should");
    ok(out[2][2] == 0xff && out[2][7] == 0xff && out[1][3] == 0xff && out[5][3] == 0xff, "and nowhere else");
    up.WidthInBytes = 11;
    answers(cuMemcpy2D_v2(&up), CUDA_ERROR_INVALID_VALUE);
    up.WidthInBytes = 10;
    up.Height = 7;
    up.srcPitch = 8;
    answers(cuMemcpy2D_v2(&up), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
    must(cuMemFree_v2(p));
}

static void arrays(void)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {8, 4, 3, CU_AD_FORMAT_FLOAT, 1, 0}, got;
    CUarray array = NULL, level = NULL, none;
    CUmipmappedArray mipmap = NULL;
    float in[3][4][8], out[3][4][8] = {0};
    size_t left, less, after, total;

    for (int i = 0; i < 96; i++)
        in[i / 32][i / 8 % 4][i % 8] = (float)i;
    must(cuMemGetInfo_v2(&left, &total));
    answers(cuArray3DCreate_v2(&array, &desc), CUDA_SUCCESS);
    must(cuMemGetInfo_v2(&less, &total));
    ok(less < left, "an array takes memory");
    CUDA_MEMCPY3D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 32,
                        .srcHeight = 4,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = array,
                        .WidthInBytes = 32,
                        .Height = 4,
                        .Depth = 3};
    CUDA_MEMCPY3D down = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = array,
                          .srcXInBytes = 4,
                          .srcY = 1,
                          .srcZ = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .dstPitch = 32,
                          .dstHeight = 4,
                          .WidthInBytes = 8,
                          .Height = 2,
                          .Depth = 2};
    answers(cuMemcpy3D_v2(&up), CUDA_SUCCESS);
    answers(cuMemcpy3D_v2(&down), CUDA_SUCCESS);
    ok(out[0][0][0] == in[1][1][1] && out[1][1][1] == in[2][2][2] && !out[0][2][0], "a box comes back");
    down.Depth = 3;
    answers(cuMemcpy3D_v2(&down), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemcpyAtoH_v2(out, array, 4, 8), CUDA_SUCCESS);
    ok(out[0][0][0] == in[0][0][1], "an array is also a row of bytes");
    answers(cuMemcpyAtoH_v2(out, array, 0, sizeof in + 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuArray3DGetDescriptor_v2(&got, array), CUDA_SUCCESS);
    ok(got.Width == 8 && got.Depth == 3 && got.Format == CU_AD_FORMAT_FLOAT, "an array knows its shape");
    answers(cuArrayDestroy(array), CUDA_SUCCESS);
    answers(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    must(cuMemGetInfo_v2(&after, &total));
    is_u64(after, left, "and gives its memory back");
    desc.NumChannels = 3;
    answers(cuArray3DCreate_v2(&none, &desc), CUDA_ERROR_INVALID_VALUE);
    desc = (CUDA_ARRAY3D_DESCRIPTOR){64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
    answers(cuMipmappedArrayCreate(&mipmap, &desc, 20), CUDA_SUCCESS);
    answers(cuMipmappedArrayGetLevel(&level, mipmap, 6), CUDA_SUCCESS);
    must(cuArray3DGetDescriptor_v2(&got, level));
    ok(got.Width == 1 && got.Height == 1, "the last level is one element");
    answers(cuMipmappedArrayGetLevel(&level, mipmap, 7), CUDA_ERROR_INVALID_VALUE);
    answers(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
    must(cuMemGetInfo_v2(&after, &total));
    is_u64(after, left, "a mipmapped array goes with its levels");
}

/* A copy without a stream comes behind the work of both devices, and what they get later comes behind it. */
static void peers_in_order(CUcontext first, CUdeviceptr p, CUcontext second, CUdeviceptr q)
{
    CUstream held, other;
    CUevent later;
    atomic_int go = 0;
    char out[8] = "";

    must(cuCtxSetCurrent(first));
    must(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    must(cuLaunchHostFunc(held, hold, &go));
    must(cuMemsetD8Async(p, 'x', 7, held));
    must(cuCtxSetCurrent(second));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&later, CU_EVENT_DISABLE_TIMING));
    answers(cuMemcpyPeer(q, second, p, first, 8), CUDA_SUCCESS);
    must(cuEventRecord(later, other));
    answers(cuEventQuery(later), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    must(cuMemcpyDtoHAsync_v2(out, q, 8, other));
    must(cuStreamSynchronize(other));
    is_str(out, "xxxxxxx", "a copy between devices waits for both, and both wait for it");
    must(cuEventDestroy_v2(later));
    must(cuStreamDestroy_v2(other));
    must(cuStreamDestroy_v2(held));
}

static void peers(CUcontext first)
{
    CUcontext second;
    CUdeviceptr p, q;
    char out[8] = "";
    int can = 0;

    must(cuMemAlloc_v2(&p, 4096));
    must(cuMemcpyHtoD_v2(p, "1234567", 8));
    must(cuDevicePrimaryCtxRetain(&second, 1));
    must(cuCtxSetCurrent(second));
    must(cuMemAlloc_v2(&q, 4096));
    answers(cuDeviceCanAccessPeer(&can, 1, 0), CUDA_SUCCESS);
    is_int(can, 1, "devices can reach each other");
    answers(cuCtxEnablePeerAccess(first, 0), CUDA_SUCCESS);
    answers(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    answers(cuCtxDisablePeerAccess(first), CUDA_SUCCESS);
    answers(cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    answers(cuMemcpyPeer(q, second, p, first, 8), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(out, q, 8));
    is_str(out, "1234567", "bytes travel between devices");
    peers_in_order(first, p, second, q);
    answers(cuMemFree_v2(q), CUDA_SUCCESS);
    must(cuDevicePrimaryCtxRelease_v2(1));
    must(cuCtxSetCurrent(first));
    must(cuMemFree_v2(p));
}

static void staging(void)
{
    CUstream stream;
    CUdeviceptr p;
    atomic_int go = 0;
    char source[16] = "as it was", out[16] = "", *pinned;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemHostAlloc((void **)&pinned, 16, 0));
    strcpy(pinned, "as it was");
    must(cuLaunchHostFunc(stream, hold, &go));
    must(cuMemcpyHtoDAsync_v2(p, source, 16, stream));
    must(cuMemcpyHtoDAsync_v2(p + 16, pinned, 16, stream));
    strcpy(source, "changed");
    strcpy(pinned, "changed");
    atomic_store(&go, 1);
    must(cuStreamSynchronize(stream));
    must(cuMemcpyDtoH_v2(out, p, 16));
    is_str(out, "as it was", "pageable memory may be changed after the call");
    must(cuMemcpyDtoH_v2(out, p + 16, 16));
    is_str(out, "changed", "pinned memory may not");
    answers(cuMemcpyDtoHAsync_v2(out, p, 16, stream), CUDA_SUCCESS);
    is_str(out, "as it was", "into pageable memory a copy is over on return");
    must(cuMemFreeHost(pinned));
    must(cuMemFree_v2(p));
    must(cuStreamDestroy_v2(stream));
}

static void batches(void)
{
    CUdeviceptr p, to[2], from[2];
    size_t bytes[2] = {4, 4}, first = 0, failed = 9;
    CUmemcpyAttributes attribute = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUstream stream;
    char out[8] = "";

    must(cuStreamCreate(&stream, 0));
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemcpyHtoD_v2(p, "abcdefg", 8));
    to[0] = p + 32, from[0] = p + 4;
    to[1] = p + 36, from[1] = p;
    answers(cuMemcpyBatchAsync(to, from, bytes, 2, &attribute, &first, 1, &failed, stream), CUDA_SUCCESS);
    must(cuMemcpyDtoHAsync_v2(out, p + 32, 8, stream));
    ok(!memcmp(out, "efg\0abcd", 8), "a batch of copies");
    to[1] = 0;
    answers(cuMemcpyBatchAsync(to, from, bytes, 2, &attribute, &first, 1, &failed, stream),
            CUDA_ERROR_INVALID_VALUE);
    is_u64(failed, 1, "the one that is wrong is named");
    must(cuMemFree_v2(p));
    must(cuStreamDestroy_v2(stream));
}

int main(void)
{
    plan(0);
    setenv("MEMSIM_DEVICES", "2", 1);
    CUcontext ctx = begin();
    two_dimensions();
    arrays();
    peers(ctx);
    staging();
    batches();
    return done();
}
