/*
 * every_class.c - allocations of every class, some freed and some leaked, with a book kept beside them.
 *
 * usage: every_class BOOK. Writes the book as JSON: every allocation with size, interface, device, stream,
 * thread and the function and line of the call, and live and peak bytes per device. every_class.py holds the
 * report against it. Needs two devices.
 */
#include "tests/hooks/every_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES 2
#define THREADS 4

pthread_mutex_t book_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry book[256];
static int entries;
static uint64_t live_bytes[DEVICES], peak_bytes[DEVICES];

void must(int status, const char *what, int line)
{
    if (status == 0)
        return;
    fprintf(stderr, "every_class: line %d: %s: %d\n", line, what, status);
    exit(3);
}

int book_take(enum counted counted, const char *api, int status, uint64_t bytes, uint64_t stream,
              const char *file, const char *function, int line)
{
    struct entry *entry = &book[entries];

    must(status, api, line);
    entry->api = api;
    entry->file = file;
    entry->function = function;
    entry->line = line;
    entry->thread = gettid();
    entry->live = 1;
    entry->counted = counted;
    entry->bytes = bytes;
    entry->stream = stream;
    MUST(cudaGetDevice(&entry->device));
    if (counted == DEVICE) {
        live_bytes[entry->device] += bytes;
        if (live_bytes[entry->device] > peak_bytes[entry->device])
            peak_bytes[entry->device] = live_bytes[entry->device];
    }
    return entries++;
}

void book_drop(int number, int status, const char *what)
{
    struct entry *entry = &book[number];

    must(status, what, entry->line);
    entry->live = 0;
    if (entry->counted == DEVICE)
        live_bytes[entry->device] -= entry->bytes;
}

static void book_write(const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file)
        must(1, path, __LINE__);
    fprintf(file, "{\"pid\": %d, \"live\": [%llu, %llu], \"peak\": [%llu, %llu], \"blocks\": [", getpid(),
            (unsigned long long)live_bytes[0], (unsigned long long)live_bytes[1],
            (unsigned long long)peak_bytes[0], (unsigned long long)peak_bytes[1]);
    for (int i = 0; i < entries; i++)
        fprintf(file,
                "%s\n{\"api\": \"%s\", \"file\": \"%s\", \"function\": \"%s\", \"line\": %d, \"device\": %d, "
                "\"thread\": %d, \"live\": %s, \"on_device\": %s, \"bytes\": %llu, \"stream\": %llu}",
                i ? "," : "", book[i].api,
                strrchr(book[i].file, '/') ? strrchr(book[i].file, '/') + 1 : book[i].file, book[i].function,
                book[i].line, book[i].device, book[i].thread, book[i].live ? "true" : "false",
                book[i].counted == DEVICE ? "true" : "false", (unsigned long long)book[i].bytes,
                (unsigned long long)book[i].stream);
    fprintf(file, "]}\n");
    if (fclose(file))
        must(1, path, __LINE__);
}

static void plain_memory(void)
{
    void *p, *q;
    size_t pitch = 0, pitch2 = 0;
    struct cudaPitchedPtr box = {0};
    struct cudaExtent extent = {100, 20, 3};
    int a, b;

    TAKE(DEVICE, "cudaMalloc", 1001, 0, cudaMalloc(&p, 1001));
    a = TAKE(DEVICE, "cudaMalloc", 5 << 20, 0, cudaMalloc(&q, 5 << 20));
    DROP(a, cudaFree(q));
    TAKE(DEVICE, "cudaMallocPitch", pitch * 30, 0, cudaMallocPitch(&p, &pitch, 1000, 30));
    b = TAKE(DEVICE, "cudaMallocPitch", pitch2 * 7, 0, cudaMallocPitch(&q, &pitch2, 77, 7));
    DROP(b, cudaFree(q));
    TAKE(DEVICE, "cudaMalloc3D", box.pitch * 20 * 3, 0, cudaMalloc3D(&box, extent));
    TAKE(DEVICE, "cudaMallocManaged", 12345, 0, cudaMallocManaged(&p, 12345, cudaMemAttachGlobal));
    a = TAKE(DEVICE, "cudaMallocManaged", 54321, 0, cudaMallocManaged(&q, 54321, cudaMemAttachGlobal));
    DROP(a, cudaFree(q));
}

static void arrays(void)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    struct cudaExtent extent = {16, 8, 4};
    cudaArray_t flat, freed, deep;
    cudaMipmappedArray_t kept, old;
    int a, b, two = 4 * (512 + 64), three = two + 4 * 8; /* levels */

    TAKE(DEVICE, "cudaMallocArray", 4 * 64 * 32, 0, cudaMallocArray(&flat, &desc, 64, 32, 0));
    a = TAKE(DEVICE, "cudaMallocArray", 4 * 100, 0, cudaMallocArray(&freed, &desc, 100, 0, 0));
    DROP(a, cudaFreeArray(freed));
    TAKE(DEVICE, "cudaMalloc3DArray", 4 * 16 * 8 * 4, 0, cudaMalloc3DArray(&deep, &desc, extent, 0));
    TAKE(DEVICE, "cudaMallocMipmappedArray", three, 0, cudaMallocMipmappedArray(&kept, &desc, extent, 3, 0));
    b = TAKE(DEVICE, "cudaMallocMipmappedArray", two, 0, cudaMallocMipmappedArray(&old, &desc, extent, 2, 0));
    DROP(b, cudaFreeMipmappedArray(old));
}

static void host_memory(void)
{
    static char kept[3 << 12] __attribute__((aligned(4096))), gone[2 << 12] __attribute__((aligned(4096)));
    void *p;
    int a;

    TAKE(HOST, "cudaHostAlloc", 20001, 0, cudaHostAlloc(&p, 20001, cudaHostAllocPortable));
    TAKE(HOST, "cudaMallocHost", 20002, 0, cudaMallocHost(&p, 20002));
    a = TAKE(HOST, "cudaMallocHost", 20003, 0, cudaMallocHost(&p, 20003));
    DROP(a, cudaFreeHost(p));
    TAKE(HOST, "cudaHostRegister", sizeof(kept), 0, cudaHostRegister(kept, sizeof(kept), 0));
    a = TAKE(HOST, "cudaHostRegister", sizeof(gone), 0, cudaHostRegister(gone, sizeof(gone), 0));
    DROP(a, cudaHostUnregister(gone));
    TAKE(HOST, "cuMemAllocHost_v2", 20004, 0, cuMemAllocHost_v2(&p, 20004));
    TAKE(HOST, "cuMemHostAlloc", 20005, 0, cuMemHostAlloc(&p, 20005, 0));
    a = TAKE(HOST, "cuMemHostAlloc", 20006, 0, cuMemHostAlloc(&p, 20006, 0));
    DROP(a, cuMemFreeHost(p));
}

static void stream_ordered(void)
{
    cudaStream_t stream;
    cudaMemPool_t pool;
    struct cudaMemPoolProps props;
    void *p, *q, *r;
    CUdeviceptr d;
    int a, b;

    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    MUST(cudaMemPoolCreate(&pool, &props));
    MUST(cudaStreamCreate(&stream));
    TAKE(DEVICE, "cudaMallocAsync", 30001, stream, cudaMallocAsync(&p, 30001, stream));
    TAKE(DEVICE, "cudaMallocAsync", 30002, 0, cudaMallocAsync(&p, 30002, 0));
    a = TAKE(DEVICE, "cudaMallocAsync", 30003, stream, cudaMallocAsync(&q, 30003, stream));
    TAKE(DEVICE, "cudaMallocFromPoolAsync", 30004, stream, cudaMallocFromPoolAsync(&p, 30004, pool, stream));
    b = TAKE(DEVICE, "cudaMallocFromPoolAsync", 300, stream, cudaMallocFromPoolAsync(&r, 300, pool, stream));
    TAKE(DEVICE, "cuMemAllocAsync", 30006, stream, cuMemAllocAsync(&d, 30006, stream));
    TAKE(DEVICE, "cuMemAllocFromPoolAsync", 30007, stream, cuMemAllocFromPoolAsync(&d, 30007, pool, stream));
    DROP(a, cudaFreeAsync(q, stream));
    DROP(b, cudaFree(r));
    per_thread_twin(pool);
    MUST(cudaStreamSynchronize(stream));
}

static void driver_memory(void)
{
    CUDA_ARRAY_DESCRIPTOR flat = {.Width = 40, .Height = 10, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    CUDA_ARRAY3D_DESCRIPTOR deep = {
        .Width = 8, .Height = 4, .Depth = 2, .Format = CU_AD_FORMAT_HALF, .NumChannels = 1};
    static char pages[1 << 12] __attribute__((aligned(4096)));
    CUdeviceptr p, q;
    CUarray array;
    size_t pitch = 0;
    int a;

    TAKE(DEVICE, "cuMemAlloc_v2", 40001, 0, cuMemAlloc_v2(&p, 40001));
    a = TAKE(DEVICE, "cuMemAlloc_v2", 40002, 0, cuMemAlloc_v2(&q, 40002));
    DROP(a, cuMemFree_v2(q));
    a = TAKE(DEVICE, "cuMemAlloc_v2", 40003, 0, cuMemAlloc_v2(&q, 40003));
    DROP(a, cudaFree((void *)(uintptr_t)q));
    TAKE(DEVICE, "cuMemAllocPitch_v2", pitch * 9, 0, cuMemAllocPitch_v2(&p, &pitch, 333, 9, 8));
    TAKE(DEVICE, "cuMemAllocManaged", 40004, 0, cuMemAllocManaged(&p, 40004, CU_MEM_ATTACH_GLOBAL));
    TAKE(DEVICE, "cuArrayCreate_v2", 4 * 2 * 40 * 10, 0, cuArrayCreate_v2(&array, &flat));
    TAKE(DEVICE, "cuArray3DCreate_v2", 2 * 8 * 4 * 2, 0, cuArray3DCreate_v2(&array, &deep));
    a = TAKE(DEVICE, "cuArrayCreate_v2", 4 * 2 * 40 * 10, 0, cuArrayCreate_v2(&array, &flat));
    DROP(a, cuArrayDestroy(array));
    TAKE(HOST, "cuMemHostRegister_v2", sizeof(pages), 0, cuMemHostRegister_v2(pages, sizeof(pages), 0));
}

/* A handle is memory until it is released and unmapped, in whichever order, and as often as it was
 * retained. */
static void mapped_memory(void)
{
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle first, second, third, again;
    CUmemAccessDesc access;
    CUdeviceptr base;
    size_t unit;
    int a, b;

    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    MUST(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemAddressReserve(&base, 4 * unit, 0, 0, 0));
    TAKE(DEVICE, "cuMemCreate", unit, 0, cuMemCreate(&first, unit, &prop, 0));
    a = TAKE(DEVICE, "cuMemCreate", 2 * unit, 0, cuMemCreate(&second, 2 * unit, &prop, 0));
    b = TAKE(DEVICE, "cuMemCreate", unit, 0, cuMemCreate(&third, unit, &prop, 0));
    MUST(cuMemMap(base, unit, 0, first, 0));
    MUST(cuMemMap(base + unit, 2 * unit, 0, second, 0));
    MUST(cuMemSetAccess(base, 3 * unit, &access, 1));
    MUST(cuMemRelease(first)); /* still mapped: a leak */
    MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(base + unit)));
    MUST(cuMemRelease(second));
    MUST(cuMemUnmap(base + unit, 2 * unit)); /* still retained */
    DROP(a, cuMemRelease(again));
    DROP(b, cuMemRelease(third));
}

static void *on_a_thread(void *argument)
{
    int number = (int)(intptr_t)argument;
    cudaStream_t stream;
    void *p, *q, *r;
    int a;

    MUST(cudaSetDevice(number % DEVICES));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TAKE(DEVICE, "cudaMalloc", 60000 + number, 0, cudaMalloc(&p, (size_t)(60000 + number)));
    TAKE(DEVICE, "cudaMallocAsync", 61000 + number, stream, cudaMallocAsync(&q, 61000u + number, stream));
    a = TAKE(DEVICE, "cudaMalloc", 3 << 20, 0, cudaMalloc(&r, 3 << 20));
    DROP(a, cudaFree(r));
    MUST(cudaStreamSynchronize(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int count = 0;

    if (argc < 2)
        return 2;
    MUST(cudaGetDeviceCount(&count));
    if (count < DEVICES)
        must(100, "two devices", __LINE__);
    plain_memory();
    arrays();
    host_memory();
    stream_ordered();
    driver_memory();
    mapped_memory();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, on_a_thread, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MUST(cudaSetDevice(1));
    plain_memory();
    book_write(argv[1]);
    return 0;
}
