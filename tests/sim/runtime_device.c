/*
 * Devices, contexts, errors, entry points and launches of the simulated runtime.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/tap.h"

#if MS_CUDART_MAJOR == 12
typedef struct cudaDeviceProp_12 device_prop;
#define get_properties cudaGetDeviceProperties_v2
#else
typedef struct cudaDeviceProp device_prop;
#define get_properties cudaGetDeviceProperties
#endif

static void test_devices(void)
{
    int count = 0, device = -1, driver = 0, runtime = 0, value = 0;
    device_prop prop;
    char id[32];
    int back = -1;

    is_int(cudaRuntimeGetVersion(&runtime), cudaSuccess, "cudaRuntimeGetVersion");
    is_int(runtime / 1000, MS_CUDART_MAJOR, "is ours");
    is_int(cudaDriverGetVersion(&driver), cudaSuccess, "cudaDriverGetVersion");
    ok(driver >= runtime / 1000 * 1000, "is new enough");
    is_int(cudaGetDeviceCount(&count), cudaSuccess, "cudaGetDeviceCount");
    is_int(count, 2, "two devices");
    is_int(cudaGetDevice(&device), cudaSuccess, "cudaGetDevice");
    is_int(device, 0, "the first one to begin with");
    is_int(cudaSetDevice(2), cudaErrorInvalidDevice, "a device that is not there");
    is_int(cudaSetDevice(-1), cudaErrorInvalidDevice, "a negative one");
    is_int(cudaGetLastError(), cudaErrorInvalidDevice, "is an error to remember");
    is_int(cudaSetDevice(1), cudaSuccess, "cudaSetDevice");
    is_int(cudaGetDevice(&device), cudaSuccess, "and back");
    is_int(device, 1, "the second one");
    memset(&prop, 0xff, sizeof(prop));
    is_int(get_properties(&prop, 1), cudaSuccess, "properties");
    ok(prop.name[0] && strlen(prop.name) < sizeof(prop.name), "have a name");
    diag("%s, %zu bytes", prop.name, prop.totalGlobalMem);
    is_int(prop.warpSize, 32, "have a warp size");
    ok(prop.totalGlobalMem > 0 && prop.major > 0 && prop.multiProcessorCount > 0, "have the usual figures");
    is_int(prop.reserved[0], 0, "have nothing in the reserved words");
    is_int(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1), cudaSuccess, "an attribute");
    is_int(value, prop.major, "equals the property");
    is_int(get_properties(&prop, 7), cudaErrorInvalidDevice, "properties of a device that is not there");
    is_int(cudaDeviceGetPCIBusId(id, sizeof(id), 1), cudaSuccess, "cudaDeviceGetPCIBusId");
    is_int(cudaDeviceGetByPCIBusId(&back, id), cudaSuccess, "cudaDeviceGetByPCIBusId");
    is_int(back, 1, "find the same device");
    is_int(cudaSetDevice(0), cudaSuccess, "back to the first");
    (void)cudaGetLastError();
}

#if MS_CUDART_MAJOR == 12
static void test_short_properties(void)
{
    device_prop prop;

    memset(&prop, 0x5a, sizeof(prop));
    is_int(cudaGetDeviceProperties(&prop, 0), cudaSuccess, "CUDA 11's properties");
    is_int(prop.warpSize, 32, "are filled");
    is_int(prop.hostRegisterSupported, 0x5a5a5a5a, "and not beyond their end");
}
#endif

static void test_errors(void)
{
    is_str(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation", "cudaGetErrorName");
    is_str(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory", "cudaGetErrorString");
    is_str(cudaGetErrorName((cudaError_t)12345), "unrecognized error code", "a number that is no status");
    is_int(cudaMemcpy(NULL, NULL, 4, (enum cudaMemcpyKind)8), cudaErrorInvalidMemcpyDirection, "an error");
    is_int(cudaMalloc(NULL, 4), cudaErrorInvalidValue, "and another");
    is_int(cudaFree(NULL), cudaSuccess, "a success does not clear it");
    is_int(cudaPeekAtLastError(), cudaErrorInvalidValue, "the last one is remembered");
    is_int(cudaGetLastError(), cudaErrorInvalidValue, "and told");
    is_int(cudaGetLastError(), cudaSuccess, "once");
}

static void *other_thread(void *argument)
{
    int *found = argument;

    found[0] = cudaGetLastError();
    cudaGetDevice(&found[1]);
    found[2] = cudaSetDevice(1);
    cudaGetDevice(&found[3]);
    return NULL;
}

static void test_threads(void)
{
    int found[4] = {-1, -1, -1, -1}, mine = -1;
    pthread_t thread;

    (void)cudaMalloc(NULL, 1);
    pthread_create(&thread, NULL, other_thread, found);
    pthread_join(thread, NULL);
    is_int(found[0], cudaSuccess, "another thread's last error is its own");
    ok(found[1] == 0 && found[2] == cudaSuccess && found[3] == 1, "so is its device");
    cudaGetDevice(&mine);
    is_int(mine, 0, "ours has not moved");
    is_int(cudaGetLastError(), cudaErrorInvalidValue, "our error has not been taken");
}

static void test_driver_side(void)
{
    enum cudaDriverEntryPointQueryResult status;
    __typeof__(&cuCtxGetCurrent) get_current = NULL;
    __typeof__(&cuCtxCreate_v2) create = NULL;
    __typeof__(&cuCtxDestroy_v2) destroy = NULL;
    CUcontext primary = NULL, own = NULL, now = NULL;
    void *legacy = NULL, *per_thread = NULL, *p;
    int device = -1;

    is_int(cudaGetDriverEntryPoint("cuCtxGetCurrent", (void **)&get_current, cudaEnableDefault, &status),
           cudaSuccess, "cudaGetDriverEntryPoint");
    ok(get_current && status == cudaDriverEntryPointSuccess, "finds cuCtxGetCurrent");
    is_int(cudaGetDriverEntryPointByVersion("cuCtxCreate", (void **)&create, 3020, 0, &status), cudaSuccess,
           "cudaGetDriverEntryPointByVersion");
    is_int(cudaGetDriverEntryPointByVersion("cuCtxDestroy", (void **)&destroy, 4000, 0, NULL), cudaSuccess,
           "without a place for the status");
    is_int(cudaGetDriverEntryPoint("cuMemAllocAsync", &legacy, cudaEnableDefault, NULL), cudaSuccess,
           "cuMemAllocAsync");
    is_int(cudaGetDriverEntryPoint_ptsz("cuMemAllocAsync", &per_thread, cudaEnableDefault, NULL), cudaSuccess,
           "and its per-thread twin");
    ok(legacy && per_thread && legacy != per_thread, "are two functions");
    is_int(cudaGetDriverEntryPoint(NULL, &legacy, 0, NULL), cudaErrorInvalidValue, "no name");
    if (!get_current || !create || !destroy)
        bail("no entry points");
    cudaFree(NULL);
    is_int(get_current(&primary), CUDA_SUCCESS, "the driver's current context");
    ok(primary != NULL, "is the runtime's primary one");
    is_int(create(&own, 0, 1), CUDA_SUCCESS, "a context made by the driver for device 1");
    is_int(cudaGetDevice(&device), cudaSuccess, "cudaGetDevice");
    is_int(device, 1, "follows it");
    is_int(cudaMalloc(&p, 10), cudaSuccess, "cudaMalloc uses it");
    get_current(&now);
    is_ptr(now, own, "and leaves it current");
    is_int(cudaFree(p), cudaSuccess, "cudaFree too");
    is_int(destroy(own), CUDA_SUCCESS, "the context is destroyed");
    is_int(cudaSetDevice(0), cudaSuccess, "back to the primary one");
    (void)cudaGetLastError();
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .global .align 4 .b8 counter[64];\n"
                          ".visible .entry work(.param .u64 p)\n{\n\tret;\n}\n";
static const char device_stub, counter_stub; /* their addresses are the keys compiled code would use */

static void test_launch(void)
{
    struct {
        int magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, ptx, NULL};
    struct dim3 grid = {4, 1, 1}, block = {64, 1, 1}, none = {0, 1, 1};
    void *arguments[1] = {&(void *){NULL}}, *address = NULL;
    struct dim3 grid_back, block_back;
    size_t shared = 0, bytes = 0;
    cudaStream_t stream = NULL;
    void **handle;

    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &device_stub, NULL, "work", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, (char *)&counter_stub, NULL, "counter", 0, 64, 0, 1);
    __cudaRegisterFatBinaryEnd(handle);
    is_int(__cudaPushCallConfiguration(grid, block, 128, cudaStreamPerThread), 0, "push a configuration");
    is_int(__cudaPopCallConfiguration(&grid_back, &block_back, &shared, &stream), cudaSuccess, "pop it");
    ok(grid_back.x == 4 && block_back.x == 64 && shared == 128 && stream == cudaStreamPerThread,
       "it is the same");
    is_int(__cudaPopCallConfiguration(&grid_back, &block_back, &shared, &stream),
           cudaErrorMissingConfiguration, "there is no second one");
    is_int(cudaLaunchKernel(&device_stub, grid, block, arguments, 0, NULL), cudaSuccess, "cudaLaunchKernel");
    is_int(cudaDeviceSynchronize(), cudaSuccess, "and it ends");
    is_int(cudaLaunchKernel(&shared, grid, block, arguments, 0, NULL), cudaErrorInvalidDeviceFunction,
           "something that is no kernel");
    is_int(cudaLaunchKernel(&device_stub, none, block, arguments, 0, NULL), cudaErrorInvalidConfiguration,
           "an empty grid");
    is_int(cudaGetSymbolSize(&bytes, &counter_stub), cudaSuccess, "cudaGetSymbolSize");
    is_u64(bytes, 64, "tells the variable's size");
    is_int(cudaGetSymbolAddress(&address, &counter_stub), cudaSuccess, "cudaGetSymbolAddress");
    ok(address != NULL, "gives an address");
    bytes = 0x1122334455667788;
    is_int(cudaMemcpyToSymbol(&counter_stub, &bytes, 8, 8, cudaMemcpyHostToDevice), cudaSuccess,
           "cudaMemcpyToSymbol");
    bytes = 0;
    is_int(cudaMemcpyFromSymbol(&bytes, &counter_stub, 8, 8, cudaMemcpyDeviceToHost), cudaSuccess,
           "cudaMemcpyFromSymbol");
    is_u64(bytes, 0x1122334455667788, "the bytes are right");
    is_int(cudaMemcpyFromSymbol(&bytes, &counter_stub, 8, 60, cudaMemcpyDeviceToHost), cudaErrorInvalidValue,
           "beyond its end");
    is_int(cudaGetSymbolAddress(&address, &grid), cudaErrorInvalidSymbol, "something that is no variable");
    __cudaUnregisterFatBinary(handle);
    is_int(cudaLaunchKernel(&device_stub, grid, block, arguments, 0, NULL), cudaErrorInvalidDeviceFunction,
           "the kernel is gone with its image");
    (void)cudaGetLastError();
}

static void test_reset(void)
{
    size_t before, after, total;
    void *p = NULL;

    is_int(cudaSetDevice(0), cudaSuccess, "the first device");
    cudaDeviceReset();
    cudaMemGetInfo(&before, &total);
    is_int(cudaMalloc(&p, 1 << 20), cudaSuccess, "a block");
    is_int(cudaDeviceReset(), cudaSuccess, "cudaDeviceReset");
    is_int(cudaMemGetInfo(&after, &total), cudaSuccess, "the next call makes a context again");
    is_u64(after, before, "and the block is gone");
    is_int(cudaFree(p), cudaErrorInvalidValue, "nobody knows it now");
    is_int(cudaMalloc(&p, 100), cudaSuccess, "a new block");
    is_int(cudaFree(p), cudaSuccess, "works as before");
    (void)cudaGetLastError();
}

static int lines_in(const char *path, const char *text)
{
    char line[256];
    FILE *file = fopen(path, "r");
    int found = 0;

    while (file && fgets(line, sizeof(line), file))
        found += strstr(line, text) != NULL;
    if (file)
        fclose(file);
    return found;
}

static void test_unsupported(const char *log)
{
    extern cudaError_t cudaImportExternalSemaphore(void *semaphore, const void *desc);
    void *semaphore = NULL;

    is_int(cudaImportExternalSemaphore(&semaphore, &semaphore), cudaErrorNotSupported,
           "what is not simulated says so");
    is_int(cudaGetLastError(), cudaErrorNotSupported, "and is the last error");
    is_int(cudaImportExternalSemaphore(&semaphore, &semaphore), cudaErrorNotSupported, "again");
    is_int(lines_in(log, "unsupported cudaImportExternalSemaphore"), 2, "each call is a line in MEMSIM_LOG");
    is_int(cudaGetExportTable(NULL, NULL), cudaErrorNotSupported, "the private tables are refused");
    (void)cudaGetLastError();
}

int main(void)
{
    char log[4096];

    snprintf(log, sizeof(log), "%s/memsim.log", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    setenv("MEMSIM_DEVICES", "2", 1);
    setenv("MEMSIM_LOG", log, 1);
    plan(0);
    test_devices();
#if MS_CUDART_MAJOR == 12
    test_short_properties();
#endif
    test_errors();
    test_threads();
    test_driver_side();
    test_launch();
    test_reset();
    test_unsupported(log);
    return done();
}
