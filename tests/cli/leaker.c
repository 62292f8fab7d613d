/* leaker.c - a program for the tests of the command: leaks COUNT blocks of BYTES, then allocates and frees a
 * mebibyte.
 *
 * Links with nothing of the vendor's but the name libcuda.so.1, as any driver program does. */
#include <stdio.h>
#include <stdlib.h>

#include "vendor/abi/cuda_driver.h"

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);

static void check(CUresult status, const char *what)
{
    if (status != CUDA_SUCCESS) {
        fprintf(stderr, "%s: status %d\n", what, (int)status);
        exit(1);
    }
}

__attribute__((noinline)) static void leak_some(int count, size_t bytes)
{
    CUdeviceptr address;

    while (count-- > 0)
        check(cuMemAlloc_v2(&address, bytes), "cuMemAlloc"); /* the leak */
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr address;

    if (argc != 3)
        return 2;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    leak_some(atoi(argv[1]), (size_t)atol(argv[2]));
    check(cuMemAlloc_v2(&address, 1 << 20), "cuMemAlloc");
    check(cuMemFree_v2(address), "cuMemFree");
    return 0;
}
