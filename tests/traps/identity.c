/*
 * identity.c - traps of what a pointer is: alignment, the range it lies in, its attributes, its id, handles;
 * pitch.
 */
#include "traps.h"

static const size_t sizes[] = {1,           256,      512,      513,          5000,     65536,       100000,
                               MIB - 1,     MIB,      MIB + 1,  2 * MIB - 1,  2 * MIB,  2 * MIB + 1, 3 * MIB,
                               5 * MIB + 7, 15 * MIB, 16 * MIB, 16 * MIB + 1, 33 * MIB, 100};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void alignment(void)
{
    void *blocks[SIZES];

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            uintptr_t at = (uintptr_t)(blocks[i] = take(sizes[i]));

            say("%zu: of 256 %d, of 512 %d, of 2 MiB %s", sizes[i], at % 256 == 0, at % 512 == 0,
                sizes[i] < 2 * MIB    ? "not asked"
                : at % (2 * MIB) == 0 ? "yes"
                                      : "no");
        }
        for (size_t i = 0; i < SIZES; i++) /* what is left over in between must not spoil the next round */
            if (i % 3 != (size_t)round)
                cudaFree(blocks[i]);
    }
}

static void no_overlap(void)
{
    enum { COUNT = 300 };
    void *blocks[COUNT];
    size_t bytes[COUNT];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++) {
        bytes[i] = sizes[i % (SIZES - 1)] > 4 * MIB ? 70000 : sizes[i % (SIZES - 1)];
        blocks[i] = take(bytes[i]);
        cudaMemset(blocks[i], i % 251, bytes[i]);
    }
    for (int i = 0; i < COUNT; i += 2)
        cudaFree(blocks[i]);
    for (int i = 0; i < COUNT; i += 2) {
        blocks[i] = take(bytes[i]);
        cudaMemset(blocks[i], i % 251, bytes[i]);
    }
    for (int i = 0; i < COUNT; i++)
        wrong += differing(blocks[i], bytes[i], i % 251) != 0;
    say("%d blocks, %d do not hold what was written", COUNT, wrong);
    for (int i = 0; i < COUNT; i++)
        wrong += cudaFree(blocks[i]) != cudaSuccess;
    say("freed, %d wrong", wrong);
}

static void address_range(void)
{
    primary(0);
    for (size_t i = 0; i < SIZES; i++) {
        CUdeviceptr p = take_driver(sizes[i]), base = 0;
        size_t bytes = 0;
        CUresult status = cuMemGetAddressRange_v2(&base, &bytes, p);

        say("%zu: %d, begins there %d, %zu bytes", sizes[i], status, base == p, bytes);
        status = cuMemGetAddressRange_v2(&base, &bytes, p + sizes[i] - 1);
        say("its last byte: %d, begins there %d, %zu bytes", status, base == p, bytes);
        base = 0;
        status = cuMemGetAddressRange_v2(&base, NULL, p + sizes[i] / 2);
        say("the base alone: %d, %d", status, base == p);
        status = cuMemGetAddressRange_v2(NULL, &bytes, p + sizes[i] / 3);
        say("the size alone: %d, %zu", status, bytes);
        if (i % 4 == 0)
            continue;
        cuMemFree_v2(p);
        say("once freed: %d", cuMemGetAddressRange_v2(&base, &bytes, p));
    }
    say("nobody's: %d", cuMemGetAddressRange_v2(NULL, NULL, 0x7000000000));
}

static void runtime_attributes(void *p, uintptr_t offset)
{
    struct cudaPointerAttributes seen;
    char *at = (char *)p + offset;
    cudaError_t status;

    memset(&seen, 0xee, sizeof seen);
    status = cudaPointerGetAttributes(&seen, at);
    say("runtime: %d, type %d, device %d, same on the device %d, on the host %d", status, seen.type,
        seen.device, seen.devicePointer == (void *)at, seen.hostPointer == (void *)at);
}

/* One attribute as text; addresses as offsets from `base`. */
static void driver_attribute(CUpointer_attribute attribute, CUdeviceptr p, CUdeviceptr base, CUcontext ctx)
{
    uint64_t data[8] = {0};
    CUresult status = cuPointerGetAttribute(data, attribute, p);
    bool address = attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                   attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                   attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                   attribute == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR;

    if (status != CUDA_SUCCESS)
        say("attribute %d: status %d", attribute, status);
    else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
        say("attribute %d: %s", attribute,
            data[0] == (uintptr_t)ctx ? "this context"
            : data[0]                 ? "another"
                                      : "none");
    else if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID || attribute == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID)
        say("attribute %d: %s", attribute, data[0] ? "an id" : "0");
    else if (address)
        say("attribute %d: base + %lld", attribute, (long long)(data[0] - base));
    else
        say("attribute %d: %llu", attribute, (unsigned long long)data[0]);
}

static void all_attributes(CUdeviceptr p, CUdeviceptr base, CUcontext ctx)
{
    for (int attribute = CU_POINTER_ATTRIBUTE_CONTEXT;
         attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; attribute++)
        if (attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            driver_attribute((CUpointer_attribute)attribute, p, base, ctx);
}

static void attributes(void)
{
    CUcontext ctx = primary(0);

    for (int i = 0; i < 3; i++) {
        CUdeviceptr p = take_driver(trap_sizes[i]), company = take_driver(trap_sizes[i]);

        say("%s", trap_size_names[i]);
        runtime_attributes((void *)(uintptr_t)p, 0);
        runtime_attributes((void *)(uintptr_t)p, trap_sizes[i] / 2);
        all_attributes(p, p, ctx);
        all_attributes(p + trap_sizes[i] - 1, p, ctx);
        cuMemFree_v2(p);
        say("freed");
        runtime_attributes((void *)(uintptr_t)p, 0);
        all_attributes(p, p, ctx);
        all_attributes(company, company, ctx);
        cuMemFree_v2(company);
    }
    say("last %d", cudaGetLastError());
}

static void attributes_together(void)
{
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                   CU_POINTER_ATTRIBUTE_BUFFER_ID,      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    enum { COUNT = sizeof asked / sizeof asked[0] };
    CUcontext ctx = primary(0);

    for (int i = 0; i < 3; i++) {
        CUdeviceptr p = take_driver(trap_sizes[i]);
        uint64_t seen[COUNT] = {0}, id = 0;
        void *data[COUNT];
        CUresult status;

        for (int k = 0; k < COUNT; k++)
            data[k] = &seen[k];
        cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 1);
        status = cuPointerGetAttributes(COUNT, asked, data, p + 1);
        say("%d: context %d, type %u, device +%d, host %d, same id %d, start +%d, %llu bytes, ordinal %u",
            status, seen[0] == (uintptr_t)ctx, (unsigned)seen[1], (int)(seen[2] - p), seen[3] != 0,
            seen[4] == id, (int)(seen[5] - p), (unsigned long long)seen[6], (unsigned)seen[7]);
        cuMemFree_v2(p);
        memset(seen, 0, sizeof seen);
        status = cuPointerGetAttributes(COUNT, asked, data, p + 1);
        say("freed, %d: context %d, type %u, device %d, start %d, %llu bytes", status, seen[0] != 0,
            (unsigned)seen[1], seen[2] != 0, seen[5] != 0, (unsigned long long)seen[6]);
    }
}

static uint64_t buffer_id(CUdeviceptr p)
{
    unsigned long long id = 0;

    return cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p) == CUDA_SUCCESS ? id : 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Registration caches of UCX and others take a block for one they know by this id. */
static void buffer_ids(void)
{
    enum { COUNT = 600 };
    static uint64_t ids[COUNT];
    CUdeviceptr live[20] = {0};
    int zeros = 0, twice = 0, unsteady = 0;

    primary(0);
    for (int i = 0; i < COUNT; i++) {
        CUdeviceptr *p = &live[i * 7 % 20];

        if (*p)
            cuMemFree_v2(*p);
        *p = take_driver(trap_sizes[i % 40 == 0 ? 2 : i % 3 == 0]);
        ids[i] = buffer_id(*p);
        unsteady += buffer_id(*p + 700) != ids[i];
        zeros += ids[i] == 0;
        if (i % 50 == 0)
            cuCtxSynchronize();
    }
    qsort(ids, COUNT, sizeof ids[0], by_value);
    for (int i = 1; i < COUNT; i++)
        twice += ids[i] == ids[i - 1];
    say("%d blocks: %d without an id, %d ids came twice, %d differ within a block", COUNT, zeros, twice,
        unsteady);
}

static void sync_memops(void)
{
    primary(0);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p = take_driver(trap_sizes[i]), company = take_driver(trap_sizes[i]);
        unsigned on = 1, seen = 99, neighbour = 99;

        say("%s: set %d", trap_size_names[i],
            cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
        cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        cuPointerGetAttribute(&neighbour, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, company);
        say("is %u, its neighbour's %u", seen & 0xff, neighbour & 0xff);
        cuMemFree_v2(p);
        p = take_driver(trap_sizes[i]);
        seen = 99;
        cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
        say("a new block's %u", seen & 0xff);
    }
}

static void handles(void)
{
    primary(0);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p = take_driver(trap_sizes[i]);
        CUmemGenericAllocationHandle handle = 0;
        unsigned long long flags = 0;
        CUmemLocation here;
        int fd = -1;

        memset(&here, 0, sizeof here);
        here.type = CU_MEM_LOCATION_TYPE_DEVICE;
        say("%s: retain %d", trap_size_names[i], cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)p));
        say("access %d", cuMemGetAccess(&flags, &here, p));
        say("unmap %d", cuMemUnmap(p, 2 * MIB));
        say("address free %d", cuMemAddressFree(p, 2 * MIB));
        say("range handle %d",
            cuMemGetHandleForAddressRange(&fd, p, trap_sizes[i], CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        say("free %d", cuMemFree_v2(p));
    }
}

static void pitch(void)
{
    static const size_t widths[] = {1, 100, 512, 513, 4096, 5000}, heights[] = {1, 7, 1000};
    static const unsigned elements[] = {4, 8, 16, 0, 1, 3, 32};
    size_t step = 0;
    void *p = NULL;

    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++) {
            CUdeviceptr base = 0;
            size_t bytes = 0;
            cudaError_t status = cudaMallocPitch(&p, &step, widths[i], heights[k]);

            say("%zu x %zu: %d, pitch %zu, aligned %d", widths[i], heights[k], status, step,
                (uintptr_t)p % 512 == 0);
            say("range %d", cuMemGetAddressRange_v2(&base, &bytes, (uintptr_t)p));
            say("begins there %d, %zu bytes", base == (uintptr_t)p, bytes);
            say("fill %d", cudaMemset2D(p, step, 0x5a, widths[i], heights[k]));
            if (k != 1)
                say("free %d", cudaFree(p));
        }
    for (int i = 0; i < 7; i++) {
        CUdeviceptr q = 0;

        step = 0;
        CUresult status = cuMemAllocPitch_v2(&q, &step, 1000, 10, elements[i]);
        say("elements of %u: %d, pitch %zu, %s", elements[i], status, step, q ? "something" : "nothing");
    }
    p = NULL;
    for (int i = 0; i < 3; i++) {
        cudaError_t status = cudaMallocPitch(&p, &step, i == 1 ? 0 : 100, i == 2 ? 0 : 10);
        say("an empty shape %d: %d, pitch %zu, %s", i, status, step, p && i ? "something" : "NULL");
    }
    say("last %d", cudaGetLastError());
}

static void malloc_3d(void)
{
    struct cudaExtent extents[] = {{100, 20, 3}, {512, 1, 1}, {3000, 100, 40},
                                   {100, 0, 3},  {0, 4, 3},   {100, 4, 0}};

    for (int i = 0; i < 6; i++) {
        struct cudaPitchedPtr made = {0};
        cudaError_t status = cudaMalloc3D(&made, extents[i]);

        say("%d: %d, pitch %zu, %zu x %zu, %s", i, status, made.pitch, made.xsize, made.ysize,
            made.ptr ? "something" : "NULL");
        say("free %d", cudaFree(made.ptr));
    }
    say("last %d", cudaGetLastError());
}

const struct trap traps_identity[] = {
    {"alignment", alignment, NULL},
    {"no-overlap", no_overlap, NULL},
    {"address-range", address_range, NULL},
    {"attributes", attributes, NULL},
    {"attributes-together", attributes_together, NULL},
    {"buffer-id", buffer_ids, NULL},
    {"sync-memops", sync_memops, NULL},
    {"handles-of-blocks", handles, NULL},
    {"pitch", pitch, NULL},
    {"malloc-3d", malloc_3d, NULL},
    {NULL, NULL, NULL},
};
