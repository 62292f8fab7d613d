/* What a program of HIP's may rely on: statuses, bytes, order, and what differs between the versions of the
 * library. Built once for each version, and run natively and under memshim, where every fact must hold as
 * well. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"
#include "tests/tap.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static void devices(void)
{
    char name[64] = "";
    size_t total = 0, free_bytes = 0;
    hipUUID uuid;
    int version = 0, count = 0, device = -1;

    is_int(hipInit(0), 0, "hipInit");
    is_int(hipRuntimeGetVersion(&version), 0, "hipRuntimeGetVersion");
    is_int(version / 10000000, TEST_HIP, "it is this version of the library");
    is_int(hipGetDeviceCount(&count), 0, "hipGetDeviceCount");
    ok(count >= 1, "there is a device");
    is_int(hipGetDevice(&device), 0, "hipGetDevice");
    is_int(device, 0, "the first device is chosen");
    is_int(hipSetDevice(count), hipErrorInvalidDevice, "a device that is not there cannot be chosen");
    is_int(hipDeviceGetName(name, sizeof name, 0), 0, "hipDeviceGetName");
    ok(*name, "a device has a name");
    is_int(hipDeviceGetUuid(&uuid, 0), 0, "hipDeviceGetUuid");
    is_int(hipDeviceTotalMem(&total, 0), 0, "hipDeviceTotalMem");
    is_int(hipMemGetInfo(&free_bytes, &total), 0, "hipMemGetInfo");
    ok(free_bytes <= total && total > 0, "free memory is part of all memory");
}

static void properties(void)
{
    hipDeviceProp_tR0000 old;

    memset(&old, 0xa5, sizeof old);
    is_int(hipGetDeviceProperties(&old, 0), 0, "hipGetDeviceProperties under its plain name");
    ok(strncmp(old.gcnArchName, "gfx", 3) == 0 && old.warpSize == 64, "... has the layout of before 6.0");
#if TEST_HIP >= 6
    hipDeviceProp_tR0600 now;
    memset(&now, 0xa5, sizeof now);
    is_int(hipGetDevicePropertiesR0600(&now, 0), 0, "hipGetDevicePropertiesR0600");
    ok(strncmp(now.gcnArchName, "gfx", 3) == 0 && now.totalGlobalMem == old.totalGlobalMem &&
           now.warpSize == 64,
       "... has its own layout, and says the same");
#endif
}

/* The thread's last error: until 6 the status of the last call, from 7 on the last error. */
static void last_error(void)
{
    void *p = (void *)1;
    int device;

    hipGetLastError();
    is_int(hipMalloc(&p, SIZE_MAX / 2), hipErrorOutOfMemory, "too much is refused");
    ok(p == (void *)1, "and the pointer stays as it was");
    is_int(hipPeekAtLastError(), hipErrorOutOfMemory, "the refusal is the last error");
    is_int(hipGetLastError(), hipErrorOutOfMemory, "and is handed out");
    is_int(hipGetLastError(), 0, "once");
    is_int(hipMalloc(NULL, 8), hipErrorInvalidValue, "hipMalloc without a pointer");
    is_int(hipGetLastError(), hipErrorInvalidValue, "is the last error");
    hipMalloc(NULL, 8);
    hipGetDevice(&device);
    is_int(hipGetLastError(), TEST_HIP < 7 ? 0 : hipErrorInvalidValue,
           "a call that succeeds, and the error before it");
    hipMalloc(NULL, 8);
    is_int(hipMalloc(&p, 4096), 0, "memory");
    is_int(hipPeekAtLastError(), TEST_HIP < 7 ? 0 : hipErrorInvalidValue,
           "the same with a call that may be served");
    hipGetLastError();
    hipMalloc(NULL, 8);
    is_int(hipFree(p), 0, "and with a free");
    is_int(hipPeekAtLastError(), TEST_HIP < 7 ? 0 : hipErrorInvalidValue, "the error before it");
    hipGetLastError();
}

static void sizes(void)
{
    void *p = (void *)1, *q = NULL;
    size_t pitch = 0;
    char local;

    is_int(hipMalloc(&p, 0), 0, "nothing is asked for");
    ok(p == NULL, "and that is what comes");
    is_int(hipFree(NULL), 0, "nothing is freed");
    is_int(hipFree(&local), hipErrorInvalidValue, "a foreign address");
    is_int(hipMalloc(&p, 3000), 0, "3,000 bytes");
    is_int(hipFree((char *)p + 256), hipErrorInvalidValue, "an address inside");
    is_int(hipFree(p), 0, "the address itself");
    is_int(hipFree(p), hipErrorInvalidValue, "a second time");
    ok((uintptr_t)p % 256 == 0, "memory is aligned to 256 bytes");
    is_int(hipMallocPitch(&q, &pitch, 100, 10), 0, "hipMallocPitch");
    ok(pitch >= 100, "rows are as long as asked for at least");
    is_int(hipFree(q), 0, "is freed as any memory");
    is_int(hipMallocPitch(&q, &pitch, 0, 10), 0, "rows of nothing");
    ok(q == NULL, "are nothing");
    is_int(hipExtMallocWithFlags(&q, 4096, hipDeviceMallocFinegrained), 0, "hipExtMallocWithFlags");
    is_int(hipFree(q), 0, "likewise");
    is_int(hipMallocManaged(&q, 0, hipMemAttachGlobal), hipErrorInvalidValue, "managed memory of no size");
    is_int(hipMallocManaged(&q, 4096, hipMemAttachGlobal), 0, "managed memory");
    memset(q, 7, 4096);
    is_int(hipFree(q), 0, "is freed as any memory");
    is_int(hipHostMalloc(&q, 4096, hipHostMallocCoherent | hipHostMallocNonCoherent), hipErrorInvalidValue,
           "host memory of both kinds");
    is_int(hipHostMalloc(&q, 0, 0), 0, "host memory of no size");
    is_int(hipHostMalloc(&q, 4096, 0), 0, "host memory");
    is_int(hipHostFree(q), 0, "freed");
    is_int(hipHostFree(&local), hipErrorInvalidValue, "foreign host memory");
    hipIpcMemHandle_t handle = {{0}};
    int status = (int)hipIpcOpenMemHandle(&q, handle, hipIpcMemLazyEnablePeerAccess);
    is_int(status != 0, 1, "a handle of nothing");
    is_int(hipGetLastError(), status, "is the last error too");
}

static void bytes_move(void)
{
    unsigned char here[4096], back[4096];
    void *p = NULL, *q = NULL;

    for (size_t i = 0; i < sizeof here; i++)
        here[i] = (unsigned char)(i * 7);
    is_int(hipMalloc(&p, sizeof here), 0, "memory");
    is_int(hipMalloc(&q, 3 * MIB), 0, "more memory");
    is_int(hipMemcpy(p, here, sizeof here, hipMemcpyHostToDevice), 0, "bytes go in");
    is_int(hipMemcpy((char *)q + MIB, p, sizeof here, hipMemcpyDeviceToDevice), 0, "across");
    is_int(hipMemcpy(back, (char *)q + MIB, sizeof back, hipMemcpyDeviceToHost), 0, "and back");
    ok(memcmp(here, back, sizeof here) == 0, "as they were");
    is_int(hipMemset(p, 0x5a, sizeof here), 0, "hipMemset");
    is_int(hipMemcpy(back, p, sizeof back, hipMemcpyDefault), 0, "read again");
    ok(back[0] == 0x5a && back[4095] == 0x5a, "all of them");
    is_int(hipMemsetD32(p, 0x01020304, 16), 0, "hipMemsetD32");
    hipMemcpy(back, p, 64, hipMemcpyDefault);
    ok(back[0] == 4 && back[63] == 1, "in words");
    is_int(hipFree(q), 0, "freed");
    is_int(hipFree(p), 0, "both");
}

/* Of memory that was freed HIP knows nothing. */
static void is_freed(void *p)
{
    hipPointerAttribute_t attributes = {.devicePointer = p};

    hipGetLastError();
    is_int(hipPointerGetAttributes(&attributes, p), TEST_HIP < 7 ? hipErrorInvalidValue : 0,
           "freed memory is none that HIP knows");
    is_int(hipGetLastError(), TEST_HIP < 7 ? hipErrorInvalidValue : 0, "and the error is kept");
    if (TEST_HIP >= 7)
        ok(attributes.type == hipMemoryType6Unregistered && !attributes.devicePointer,
           "it is not registered");
}

static void addresses(void)
{
    hipPointerAttribute_t attributes;
    hipDeviceptr_t base = NULL;
    void *p = NULL, *q = NULL;
    size_t size = 0;
    int ordinal = -1;
    char local;

    is_int(hipMalloc(&p, 5000), 0, "5,000 bytes");
    is_int(hipMemGetAddressRange(&base, &size, (char *)p + 4999), 0, "where they lie");
    ok(base == p && size == 5000, "begins with the block, and is as long");
    is_int(hipMemGetAddressRange(&base, &size, &local),
           TEST_HIP < 6 ? hipErrorInvalidDevicePointer : hipErrorNotFound, "nowhere");
    is_int(hipMemPtrGetInfo(p, &size), 0, "hipMemPtrGetInfo");
    ok(size == 5000, "says how long it is");
    is_int(hipPointerGetAttributes(&attributes, (char *)p + 100), 0, "hipPointerGetAttributes");
    is_int(attributes.type, TEST_HIP < 6 ? hipMemoryType5Device : hipMemoryType6Device,
           "memory of a device has this version's number");
    is_int(attributes.device, 0, "of the first device");
    ok(attributes.devicePointer == (char *)p + 100, "at that address");
    is_int(hipPointerGetAttribute(&ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), 0,
           "hipPointerGetAttribute");
    is_int(ordinal, 0, "says which device");
    is_int(hipPointerGetAttribute(&base, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, (char *)p + 9), 0,
           "its begin");
    ok(base == p, "is the block's");
    is_int(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, (char *)p + 9), 0, "its size");
    ok(size == 5000, "is the block's");
    is_int(hipPointerGetAttributes(&attributes, &local), TEST_HIP < 7 ? hipErrorInvalidValue : 0,
           "memory that HIP does not know");
    is_int(hipHostMalloc(&q, 4096, 0), 0, "host memory");
    is_int(hipPointerGetAttributes(&attributes, q), 0, "its attributes");
    is_int(attributes.type, TEST_HIP < 6 ? hipMemoryType5Host : hipMemoryType6Host,
           "have this version's number");
    is_int(hipHostFree(q), 0, "freed");
    is_int(hipFree(p), 0, "freed");
    is_freed(p);
    is_int(hipMalloc(&p, (size_t)40 << 20), 0, "40 MiB");
    is_int(hipFree(p), 0, "freed");
    is_freed(p);
    is_freed((char *)p + ((size_t)5 << 20));
}

static void streams(void)
{
    void *p = NULL, *q = NULL, *host = NULL;
    uint32_t *gate = NULL;
    hipStream_t stream;
    hipEvent_t event;
    float ms = -1;

    is_int(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), 0, "a stream");
    is_int(hipEventCreateWithFlags(&event, hipEventDisableTiming), 0, "an event");
    is_int(hipHostMalloc(&host, 4096, 0), 0, "host memory");
    gate = host;
    *gate = 0;
    is_int(hipMalloc(&p, 4096), 0, "memory");
    is_int(hipStreamWaitValue32(stream, gate, 1, hipStreamWaitValueGte, UINT32_MAX), 0,
           "the stream waits for the host");
    is_int(hipMemsetAsync(p, 1, 4096, stream), 0, "work behind it");
    is_int(hipEventRecord(event, stream), 0, "an event behind that");
    is_int(hipEventQuery(event), hipErrorNotReady, "is not reached");
    is_int(hipStreamQuery(stream), hipErrorNotReady, "the stream is busy");
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    is_int(hipEventSynchronize(event), 0, "now it is");
    is_int(hipStreamSynchronize(stream), 0, "and the stream idle");
    is_int(hipEventElapsedTime(&ms, event, event) != 0, 1, "an event without a time");
    is_int(hipMallocAsync(&q, 0, stream), 0, "nothing, in stream order");
    ok(q == NULL, "is nothing");
    is_int(hipFreeAsync(NULL, stream), hipErrorInvalidValue, "and cannot be freed");
    is_int(hipMallocAsync(NULL, 8, stream), hipErrorInvalidValue, "without a pointer");
    is_int(hipMallocAsync(&q, 100 * KIB, stream), 0, "memory in stream order");
    is_int(hipMemsetAsync(q, 2, 100 * KIB, stream), 0, "used");
    is_int(hipFreeAsync(q, stream), 0, "freed");
    is_int(hipStreamSynchronize(stream), 0, "done");
    is_int(hipFreeAsync(p, stream), 0, "other memory may be freed in stream order too");
    is_int(hipStreamSynchronize(stream), 0, "done");
    is_int(hipEventDestroy(event), 0, "the event goes");
    is_int(hipStreamDestroy(stream), 0, "and the stream");
    is_int(hipHostFree(host), 0, "and the rest");
}

/* The properties of 5 have reserved bytes where the most that a pool may hold stands later. */
static void pools(void)
{
    hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                             .location = {hipMemLocationTypeDevice, 0}};
    hipMemPool_t pool = NULL, standard = NULL, current = NULL;
    uint64_t threshold = UINT64_MAX, read = 0;
    void *p = NULL;
    int fits;

    is_int(hipDeviceGetDefaultMemPool(&standard, 0), 0, "a default pool");
    is_int(hipDeviceGetMemPool(&current, 0), 0, "a current one");
    ok(standard == current, "the same");
    is_int(hipMemPoolSetAttribute(standard, hipMemPoolAttrReleaseThreshold, &threshold), 0, "its threshold");
    is_int(hipMemPoolGetAttribute(standard, hipMemPoolAttrReleaseThreshold, &read), 0, "is kept");
    ok(read == UINT64_MAX, "as it was set");
    is_int(hipMemPoolTrimTo(standard, 0), 0, "trimmed");
    is_int(hipMemPoolDestroy(standard), hipErrorInvalidValue, "the default pool stays");
    is_int(hipMemPoolCreate(&pool, NULL), hipErrorInvalidValue, "a pool of nothing");
    props.location.type = (hipMemLocationType)2;
    is_int(hipMemPoolCreate(&pool, &props), hipErrorInvalidValue, "a pool of the host's");
    props.location.type = hipMemLocationTypeDevice;
    props.maxSize = 2 * MIB;
    is_int(hipMemPoolCreate(&pool, &props), 0, "a pool that holds little");
    fits = hipMallocFromPoolAsync(&p, 64 * MIB, pool, NULL);
    is_int(fits, TEST_HIP < 6 ? 0 : hipErrorOutOfMemory, "much of it: until 5 there is no such limit");
    if (fits == 0)
        is_int(hipFreeAsync(p, NULL), 0, "freed");
    is_int(hipDeviceSynchronize(), 0, "all is done");
    is_int(hipMallocFromPoolAsync(&p, 4096, NULL, NULL), hipErrorInvalidValue, "no pool");
    is_int(hipMemPoolDestroy(pool), 0, "the pool goes");
}

static void mapping(void)
{
    hipMemAllocationProp prop = {.type = hipMemAllocationTypePinned,
                                 .location = {hipMemLocationTypeDevice, 0}};
    hipMemAllocationProp5 old = {.type = hipMemAllocationTypePinned,
                                 .location = {hipMemLocationTypeDevice, 0}};
    const hipMemAllocationProp *given = TEST_HIP < 6 ? (const void *)&old : &prop;
    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
    hipMemGenericAllocationHandle_t handle = NULL, again = NULL;
    size_t granularity = 0;
    void *address = NULL;

    is_int(hipMemGetAllocationGranularity(&granularity, given, hipMemAllocationGranularityMinimum), 0,
           "the granularity");
    ok(granularity >= 4096, "of handles");
    is_int(hipMemAddressReserve(&address, 0, 0, NULL, 0), hipErrorOutOfMemory, "no address of no size");
    is_int(hipMemAddressReserve(&address, granularity, 0, NULL, 0), 0, "addresses");
    is_int(hipMemCreate(&handle, 0, given, 0), hipErrorInvalidValue, "a handle of nothing");
    is_int(hipMemCreate(&handle, granularity, given, 0), 0, "a handle");
    is_int(hipMemMap(address, granularity, 0, handle, 0), 0, "mapped");
    is_int(hipMemSetAccess(address, granularity, &access, 1), 0, "to be used");
    is_int(hipMemset(address, 3, granularity), 0, "used");
    is_int(hipDeviceSynchronize(), 0, "to the end");
    is_int(hipMemRetainAllocationHandle(&again, address), 0, "a second hold");
    ok(again == handle, "of the same handle");
    is_int(hipMemRelease(again), 0, "let go");
    is_int(hipMemUnmap(address, granularity), 0, "unmapped");
    is_int(hipMemRelease(handle), 0, "released");
    is_int(hipMemAddressFree(address, granularity), 0, "and the addresses");
}

static void captures(void)
{
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipGraph_t graph = NULL;
    hipGraphExec_t exec = NULL;
    unsigned char back = 0;
    hipStream_t stream;
    void *p = NULL;

    is_int(hipMalloc(&p, 4096), 0, "memory");
    is_int(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), 0, "a stream");
    is_int(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), 0, "is captured");
    is_int(hipMemsetAsync(p, 9, 4096, stream), 0, "work");
    is_int(hipStreamIsCapturing(stream, &status), 0, "asked");
    is_int(status, hipStreamCaptureStatusActive, "it is");
    is_int(hipStreamEndCapture(stream, &graph), 0, "the end");
    is_int(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), 0, "a graph of it");
    is_int(hipGraphLaunch(exec, stream), 0, "runs");
    is_int(hipStreamSynchronize(stream), 0, "to its end");
    hipMemcpy(&back, p, 1, hipMemcpyDefault);
    is_int(back, 9, "and does what was captured");
    is_int(hipGraphExecDestroy(exec), 0, "gone");
    is_int(hipGraphDestroy(graph), 0, "likewise");
    is_int(hipStreamDestroy(stream), 0, "likewise");
    is_int(hipFree(p), 0, "likewise");
}

static void about_kernel(const void *kernel)
{
    hipFuncAttributes about = {0};

    is_int(hipFuncGetAttributes(&about, kernel), 0, "a kernel's attributes");
    ok(about.maxThreadsPerBlock >= 256 && about.maxDynamicSharedSizeBytes >= 32 << 10,
       "tell how it may be launched");
    is_int(hipFuncGetAttributes(NULL, kernel), hipErrorInvalidValue, "nowhere");
    is_int(hipFuncGetAttributes(&about, NULL), 98, "of no function");
}

static void by_bus(void)
{
    char id[32] = "";
    int device = -1;

    is_int(hipDeviceGetPCIBusId(id, sizeof id, 0), 0, "a device's bus");
    is_int(hipDeviceGetByPCIBusId(&device, id), 0, "leads back");
    is_int(device, 0, "to the device");
    is_int(hipDeviceGetByPCIBusId(NULL, id), hipErrorInvalidValue, "somewhere");
    ok(hipDeviceGetByPCIBusId(&device, "0000:01:00.0") != 0, "no device is on that bus");
}

/* The symbols of C++, with all that they have to hand on. */
static void launches_of_modules(const void *kernel)
{
    hipFunction_t function = (hipFunction_t)(uintptr_t)kernel;
    hipEvent_t start = NULL, stop = NULL;
    hipStream_t stream = NULL;

    is_int(hipStreamCreate(&stream) || hipEventCreate(&start) || hipEventCreate(&stop), 0, "two events");
    is_int(hipExtModuleLaunchKernel(function, 2048, 4, 2, 64, 2, 1, 0, stream, NULL, NULL, start, stop, 0), 0,
           "a kernel");
    is_int(hipExtModuleLaunchKernel(function, 64, 1, 1, 64, 1, 0, 0, stream, NULL, NULL, start, stop, 0), 9,
           "of no thread");
    is_int(hipExtModuleLaunchKernel(function, 64, 0, 1, 64, 1, 1, 0, stream, NULL, NULL, start, stop, 0), 9,
           "of no block");
    is_int(hipExtModuleLaunchKernel(function, 9, 9, 9, 2, 2, 257, 0, stream, NULL, NULL, NULL, NULL, 0), 9,
           "of too many");
    is_int(hipStreamSynchronize(stream), 0, "is done");
    is_int(hipEventQuery(start), 0, "it began");
    is_int(hipEventQuery(stop), 0, "it ended");
    is_int(hipHccModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, stream, NULL, NULL, start, stop), 0,
           "without flags");
    is_int(hipHccModuleLaunchKernel(NULL, 64, 1, 1, 64, 1, 1, 0, stream, NULL, NULL, start, stop), 98,
           "without a function");
    is_int(hipEventDestroy(start) || hipEventDestroy(stop) || hipStreamDestroy(stream), 0, "events end");
}

static void launches(void)
{
    static const char kernel;
    const dim3 one = {1, 1, 1}, none = {0, 1, 1};

    is_int(hipLaunchKernel(&kernel, one, one, NULL, 0, NULL), 0, "a kernel");
    is_int(hipLaunchKernel(&kernel, none, one, NULL, 0, NULL), 9, "without a grid");
    is_int(hipLaunchKernel(NULL, one, one, NULL, 0, NULL), 98, "without a function");
    launches_of_modules(&kernel);
    about_kernel(&kernel);
    by_bus();
    is_int(hipDeviceSynchronize(), 0, "is done");
#if TEST_HIP >= 6
    hipError_t (*allocate)(void **, size_t) = NULL;
    void *p = NULL;
    hipDriverProcAddressQueryResult found = HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    is_int(hipGetProcAddress("hipMalloc", (void **)&allocate, 60000000, 0, &found), 0,
           "a function by its name");
    is_int(found, 0, "is found");
    is_int(allocate(&p, 12345), 0, "and works");
    is_int(hipFree(p), 0, "as the other does");
    is_int(hipGetProcAddress("hipNothing", (void **)&allocate, 60000000, 0, &found) != 0, 1,
           "one that is not there");
#endif
}

int main(void)
{
    plan(0);
    devices();
    properties();
    last_error();
    sizes();
    bytes_move();
    addresses();
    streams();
    pools();
    mapping();
    captures();
    launches();
    return done();
}
