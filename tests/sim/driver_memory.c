/* The simulated driver: device memory, its capacity and packing; pinned, registered and managed memory. */
#include "driver.h"

static void sizes(void)
{
    CUdeviceptr p = 1, q, base = 0;
    size_t pitch = 0, bytes = 0, free_bytes = 0, total = 0, left = 0;

    answers(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAlloc_v2(&p, 2UL << 30), CUDA_ERROR_OUT_OF_MEMORY);
    is_u64(p, 0, "a refused allocation leaves no address behind");
    must(cuMemGetInfo_v2(&free_bytes, &total));
    is_u64(total, 1UL << 30, "the capacity is what was asked for");
    is_u64(free_bytes, total, "nothing is taken at first");
    answers(cuMemAlloc_v2(&p, 1), CUDA_SUCCESS);
    is_u64(p % 512, 0, "small blocks are aligned to 512 bytes");
    must(cuMemAlloc_v2(&q, 1));
    is_u64(q - p, 512, "small blocks share a granule");
    must(cuMemGetInfo_v2(&left, &total));
    is_u64(free_bytes - left, 2 * MIB, "and take one granule together");
    answers(cuMemGetAddressRange_v2(&base, &bytes, q), CUDA_SUCCESS);
    is_u64(base, q, "a small block is a block of its own");
    is_u64(bytes, 1, "of the size that was asked for");
    answers(cuMemFree_v2(p + 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFree_v2(q), CUDA_SUCCESS);
    must(cuMemGetInfo_v2(&left, &total));
    is_u64(left, free_bytes, "an empty granule goes back");
    answers(cuMemFree_v2(0), CUDA_SUCCESS);
    answers(cuMemFree_v2(0x1000), CUDA_ERROR_INVALID_VALUE);
    must(cuMemAlloc_v2(&p, 2 * MIB + 1));
    is_u64(p % (2 * MIB), 0, "large blocks are aligned to 2 MiB");
    must(cuMemGetInfo_v2(&left, &total));
    is_u64(free_bytes - left, 4 * MIB, "and rounded up to it");
    answers(cuMemGetAddressRange_v2(&base, &bytes, p + 2 * MIB), CUDA_SUCCESS);
    is_u64(base, p, "the range of an interior address begins at the block");
    answers(cuMemGetAddressRange_v2(&base, &bytes, p + 2 * MIB + 1), CUDA_ERROR_NOT_FOUND);
    answers(cuMemGetAddressRange_v2(NULL, NULL, p), CUDA_SUCCESS);
    must(cuMemFree_v2(p));
    answers(cuMemGetAddressRange_v2(&base, &bytes, p), CUDA_ERROR_NOT_FOUND);
    answers(cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 3), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 4), CUDA_SUCCESS);
    is_u64(pitch, 1024, "rows are padded");
    must(cuMemFree_v2(p));
}

static void capacity(void)
{
    CUdeviceptr p[64], all, holes;
    size_t left, total;
    int count = 0;

    while (count < 64 && cuMemAlloc_v2(&p[count], 32 * MIB) == CUDA_SUCCESS)
        count++;
    is_int(count, 32, "as much as the device has can be had, and no more");
    for (int i = 0; i < count; i += 2)
        must(cuMemFree_v2(p[i]));
    answers(cuMemAlloc_v2(&holes, 512 * MIB), CUDA_SUCCESS);
    answers(cuMemAlloc_v2(&all, 1), CUDA_ERROR_OUT_OF_MEMORY);
    must(cuMemFree_v2(holes));
    for (int i = 1; i < count; i += 2)
        must(cuMemFree_v2(p[i]));
    must(cuMemGetInfo_v2(&left, &total));
    is_u64(left, total, "all of it comes back");
    must(cuMemAlloc_v2(&all, 1UL << 30));
    must(cuMemFree_v2(all));
}

static void narrow(void)
{
    CUdeviceptr_v1 p;
    unsigned bytes, total;

    answers(cuMemAlloc(&p, 16), CUDA_ERROR_OUT_OF_MEMORY);
    answers(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFree(4096), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemGetInfo(&bytes, &total), CUDA_SUCCESS);
    is_u64(total, 1UL << 30, "the 32-bit entry counts in 32 bits");
    ok((void *)cuMemAlloc != (void *)cuMemAlloc_v2, "the two entries are two functions");
}

static void pinned(void)
{
    void *h = NULL, *h2 = NULL;
    CUdeviceptr d = 0;
    unsigned flags = 0;
    char *own = malloc(10000);

    answers(cuMemHostAlloc(&h, 0, 0), CUDA_SUCCESS);
    is_ptr(h, NULL, "nothing is at NULL");
    answers(cuMemHostAlloc(&h, 100, 0x80), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemHostAlloc(&h, 10000, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    memset(h, 7, 10000);
    answers(cuMemHostGetFlags(&flags, h), CUDA_SUCCESS);
    ok(flags & CU_MEMHOSTALLOC_PORTABLE, "flags are remembered");
    answers(cuMemHostGetDevicePointer_v2(&d, h, 0), CUDA_SUCCESS);
    is_u64(d, (uintptr_t)h, "addresses are unified");
    answers(cuMemAllocHost_v2(&h2, 64), CUDA_SUCCESS);
    answers(cuMemFreeHost((char *)h + 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFree_v2(d), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFreeHost(h), CUDA_SUCCESS);
    answers(cuMemFreeHost(h), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFreeHost(h2), CUDA_SUCCESS);
    answers(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    answers(cuMemHostRegister_v2(own, 10000, 0), CUDA_SUCCESS);
    answers(cuMemHostRegister_v2(own + 500, 100, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    answers(cuMemHostGetDevicePointer_v2(&d, own + 5, 0), CUDA_SUCCESS);
    answers(cuMemHostUnregister(own), CUDA_SUCCESS);
    answers(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    answers(cuMemHostGetDevicePointer_v2(&d, own, 0), CUDA_ERROR_INVALID_VALUE);
    free(own);
}

static void managed(void)
{
    CUdeviceptr p = 0;
    char out[4] = "";

    answers(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAllocManaged(&p, 100, 7), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    memcpy((void *)(uintptr_t)p, "abc", 4);
    answers(cuMemcpyDtoH_v2(out, p, 4), CUDA_SUCCESS);
    is_str(out, "abc", "the host writes what the device reads");
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
}

static void copies(void)
{
    enum { N = 3 << 20 };
    char *in = malloc(N), *out = calloc(1, N);
    CUdeviceptr p, q;

    for (int i = 0; i < N; i++)
        in[i] = (char)(i * 7 + (i >> 9));
    must(cuMemAlloc_v2(&p, N));
    must(cuMemAlloc_v2(&q, N));
    answers(cuMemcpyHtoD_v2(p, in, N), CUDA_SUCCESS);
    answers(cuMemcpyDtoD_v2(q, p, N), CUDA_SUCCESS);
    answers(cuMemcpyDtoH_v2(out, q, N), CUDA_SUCCESS);
    ok(!memcmp(in, out, N), "bytes come back as they went");
    answers(cuMemcpy(p + 1, q, 100), CUDA_SUCCESS);
    answers(cuMemcpyHtoD_v2(p, in, N + 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)out, in, 4), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemcpyDtoH_v2(out, 0, 4), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemsetD32_v2(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemsetD32_v2(p, 0x01020304, 4), CUDA_SUCCESS);
    answers(cuMemsetD16_v2(p + 16, 0xbeef, 2), CUDA_SUCCESS);
    answers(cuMemsetD2D8_v2(p + 20, 100, 9, 3, 2), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(out, p, 200));
    ok(out[3] == 1 && out[15] == 1 && (unsigned char)out[16] == 0xef && out[20] == 9 && out[22] == 9 &&
           out[122] == 9,
       "fills of every width arrive");
    ok(out[23] == in[22], "and touch nothing else");
    answers(cuMemsetD8_v2(p, 1, N + 1), CUDA_ERROR_INVALID_VALUE);
    must(cuMemFree_v2(p));
    answers(cuMemcpyHtoD_v2(p, in, 4), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemcpy(p, q, 4), CUDA_ERROR_INVALID_VALUE);
    must(cuMemFree_v2(q));
    free(in);
    free(out);
}

int main(void)
{
    plan(0);
    setenv("MEMSIM_MEMORY", "1G", 1);
    begin();
    sizes();
    capacity();
    narrow();
    pinned();
    managed();
    copies();
    return done();
}
