/* answers.c - statuses, attributes and ranges of memory of each kind, while it lives and once it was freed,
 * and of requests for rows and with flags: printed, and to be the same with and without memshim. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

#define MIB  ((size_t)1 << 20)
#define MOST (SIZE_MAX / 2)

/* Each status, and what the thread's last error is then. */
static void say(const char *what, int status)
{
    printf("%s %d", what, status);
    printf(" %d\n", (int)hipGetLastError());
}

/* Of a block of `size` bytes at `base` that is asked for by `inside`. */
static void attributes_of(const char *of, char *base, char *inside)
{
    hipPointerAttribute_t all = {.device = -7, .devicePointer = base, .hostPointer = base};

    printf("%s: ", of);
    say("hipPointerGetAttributes", hipPointerGetAttributes(&all, inside));
    printf("%s: type %d device %d managed %d flags %u device pointer %d host pointer %d\n", of, (int)all.type,
           all.device, all.isManaged, all.allocationFlags, all.devicePointer == inside,
           all.hostPointer == inside);
}

static void one_by_one(const char *of, char *base, char *inside)
{
    static const int numbers[] = {
        HIP_POINTER_ATTRIBUTE_MEMORY_TYPE,      HIP_POINTER_ATTRIBUTE_DEVICE_POINTER,
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   HIP_POINTER_ATTRIBUTE_IS_MANAGED,
        HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};

    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t value = 0;
        int status = (int)hipPointerGetAttribute(&value, (hipPointer_attribute)numbers[i], inside);

        if (value >= (uintptr_t)base && value <= (uintptr_t)inside) /* where it lies is nobody's business */
            value -= (uintptr_t)base;
        printf("%s: attribute %d is %llu, ", of, numbers[i], (unsigned long long)value);
        say("hipPointerGetAttribute", status);
    }
}

static void about(const char *of, void *block, size_t at)
{
    char *base = block, *inside = base + at;
    hipPointer_attribute two[] = {HIP_POINTER_ATTRIBUTE_RANGE_SIZE, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    hipDeviceptr_t start = NULL;
    size_t size = 1, range = 2;
    int device = -7;
    void *data[] = {&range, &device};

    attributes_of(of, base, inside);
    one_by_one(of, base, inside);
    say("hipDrvPointerGetAttributes", hipDrvPointerGetAttributes(2, two, data, inside));
    printf("%s: both %zu %d\n", of, range, device);
    say("hipMemGetAddressRange", hipMemGetAddressRange(&start, &size, inside));
    printf("%s: from its begin %d, %zu bytes\n", of, start == block, size);
    size = 3;
    say("hipMemPtrGetInfo", hipMemPtrGetInfo(block, &size));
    printf("%s: %zu bytes\n", of, size);
}

static void until_freed(const char *of, void *block, size_t at)
{
    about(of, block, at);
    say("hipFree", hipFree(block));
    about(of, block, at);
    say("hipFree again", hipFree(block));
}

/* The first and the last byte of each row, and the range of all. */
static void use_rows(void *block, size_t pitch, size_t width, size_t rows)
{
    hipDeviceptr_t start = NULL;
    unsigned char bytes[2] = {0, 0};
    size_t size = 0;

    say("hipMemset2D", hipMemset2D(block, pitch, 0x5a, width, rows));
    hipMemcpy(&bytes[0], (char *)block + (rows - 1) * pitch, 1, hipMemcpyDeviceToHost);
    hipMemcpy(&bytes[1], (char *)block + (rows - 1) * pitch + width - 1, 1, hipMemcpyDeviceToHost);
    hipMemGetAddressRange(&start, &size, (char *)block + rows * pitch - 1);
    printf("pitch %zu, range %zu, from its begin %d, %x %x\n", pitch, size, start == block, bytes[0],
           bytes[1]);
    say("hipFree", hipFree(block));
}

static void rows(void)
{
    static const size_t widths[] = {1, 100, 256, 257, 4096, 100000}, heights[] = {1, 7, 300};

    for (unsigned i = 0; i < 18; i++) {
        size_t width = widths[i / 3], height = heights[i % 3], pitch = 0;
        void *block = NULL;

        printf("%zu x %zu\n", width, height);
        say("hipMallocPitch", hipMallocPitch(&block, &pitch, width, height));
        use_rows(block, pitch, width, height);
        hipDeviceptr_t other = NULL;
        say("hipMemAllocPitch", hipMemAllocPitch(&other, &pitch, width, height, i % 2 ? 4 : 16));
        use_rows(other, pitch, width, height);
        hipPitchedPtr layers = {NULL, 1, 2, 3};
        say("hipMalloc3D", hipMalloc3D(&layers, (hipExtent){width, height, 3}));
        printf("%zu x %zu\n", layers.xsize, layers.ysize);
        use_rows(layers.ptr, layers.pitch, width, height * 3);
    }
}

static void refused_rows(void)
{
    static const size_t bad[][3] = {{0, 10, 1},           {10, 0, 1},    {10, 10, 0},
                                    {MOST, 2, 1},         {64, 1, MOST}, {MOST / 64, MOST / 64, 1},
                                    {1 << 20, 1 << 20, 1}};
    void *block = NULL;
    size_t pitch = 0;

    say("hipMallocPitch nowhere", hipMallocPitch(NULL, &pitch, 10, 10));
    say("hipMallocPitch without a pitch", hipMallocPitch(&block, NULL, 10, 10));
    say("hipMalloc3D nowhere", hipMalloc3D(NULL, (hipExtent){10, 10, 10}));
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hipPitchedPtr layers = {&pitch, 1, 2, 3};
        block = NULL;
        say("hipMallocPitch", hipMallocPitch(&block, &pitch, bad[i][0], bad[i][1]));
        if (block)
            say("hipFree", hipFree(block));
        say("hipMalloc3D", hipMalloc3D(&layers, (hipExtent){bad[i][0], bad[i][1], bad[i][2]}));
        printf("%d\n", layers.ptr == NULL);
        if (layers.ptr && layers.ptr != &pitch)
            say("hipFree", hipFree(layers.ptr));
    }
}

static void flags(void)
{
    static const size_t sizes[] = {0, 8, 5000, 40 * MIB, MOST};

    for (unsigned flag = 0; flag < 6; flag++) {
        for (unsigned i = 0; i < 5; i++) {
            void *block = NULL;

            printf("flag %u, %zu bytes\n", flag, sizes[i]);
            say("hipExtMallocWithFlags", hipExtMallocWithFlags(&block, sizes[i], flag));
            if (block)
                until_freed("with flags", block, sizes[i] / 2);
        }
    }
    say("hipExtMallocWithFlags nowhere", hipExtMallocWithFlags(NULL, 8, 0));
}

/* Once it was freed in stream order, and the stream is done. */
static void in_order(void)
{
    hipStream_t stream;
    void *block = NULL;

    say("hipStreamCreateWithFlags", hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    say("hipMalloc", hipMalloc(&block, 70000));
    say("hipFreeAsync", hipFreeAsync(block, stream));
    say("hipStreamSynchronize", hipStreamSynchronize(stream));
    about("freed in order", block, 3);
    say("hipFreeAsync again", hipFreeAsync(block, stream));
    say("hipStreamDestroy", hipStreamDestroy(stream));
}

int main(void)
{
    void *block = NULL;
    size_t pitch = 0;
    char local;

    rows();
    refused_rows();
    flags();
    say("hipMalloc", hipMalloc(&block, 5000));
    until_freed("small", block, 4999);
    say("hipMalloc", hipMalloc(&block, 40 * MIB));
    until_freed("large", block, 5 * MIB);
    say("hipMallocPitch", hipMallocPitch(&block, &pitch, 1000, 1000));
    until_freed("rows", block, 1000);
    say("hipMallocManaged", hipMallocManaged(&block, 5000, hipMemAttachGlobal));
    until_freed("managed", block, 100);
    in_order();
    about("foreign", &local, 0);
    return 0;
}
