/*
 * How the simulated runtime reaches the driver: the order of its lookups, the names and versions of the
 * memory calls, what it does without a driver, with an old one, with one that has no device, and with one
 * that lacks functions. Each case is a process of its own, because the outcome of the first call is kept for
 * good: this program runs itself.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/sim/fake_driver.h"
#include "tests/tap.h"

/* The memory names a runtime program asks for: name, versions with flags 0, versions with flags 2. */
static const struct {
    const char *name;
    int versions[2];
    int per_thread[2];
} wanted[] = {
    {"cuDeviceTotalMem", {3020}, {0}},
    {"cuDeviceGetDefaultMemPool", {11020}, {0}},
    {"cuDeviceSetMemPool", {11020}, {0}},
    {"cuDeviceGetMemPool", {11020}, {0}},
    {"cuMemGetInfo", {3020}, {0}},
    {"cuMemAllocManaged", {6000}, {0}},
    {"cuMemAlloc", {3020}, {0}},
    {"cuMemAllocPitch", {3020}, {0}},
    {"cuMemFree", {3020}, {0}},
    {"cuMemGetAddressRange", {3020}, {0}},
    {"cuMemFreeHost", {2000}, {0}},
    {"cuMemHostAlloc", {2020}, {0}},
    {"cuMemHostGetDevicePointer", {3020}, {0}},
    {"cuMemHostGetFlags", {2030}, {0}},
    {"cuMemHostRegister", {6050}, {0}},
    {"cuMemHostUnregister", {4000}, {0}},
    {"cuPointerGetAttribute", {4000}, {0}},
    {"cuPointerGetAttributes", {7000}, {0}},
    {"cuMemAllocAsync", {11020}, {11020}},
    {"cuMemAllocFromPoolAsync", {11020}, {11020}},
    {"cuMemFreeAsync", {11020}, {11020}},
    {"cuMemPoolTrimTo", {11020}, {0}},
    {"cuMemPoolSetAttribute", {11020}, {0}},
    {"cuMemPoolGetAttribute", {11020}, {0}},
    {"cuMemPoolSetAccess", {11020}, {0}},
    {"cuMemPoolGetAccess", {11020}, {0}},
    {"cuMemPoolCreate", {11020}, {0}},
    {"cuMemPoolDestroy", {11020}, {0}},
    {"cuMemPoolExportToShareableHandle", {11020}, {0}},
    {"cuMemPoolImportFromShareableHandle", {11020}, {0}},
    {"cuMemPoolExportPointer", {11020}, {0}},
    {"cuMemPoolImportPointer", {11020}, {0}},
    {"cuMemGetDefaultMemPool", {13000}, {0}},
    {"cuMemGetMemPool", {13000}, {0}},
    {"cuMemSetMemPool", {13000}, {0}},
    {"cuArrayCreate", {3020}, {0}},
    {"cuArray3DCreate", {3020}, {0}},
    {"cuArrayDestroy", {2000}, {0}},
    {"cuMipmappedArrayCreate", {5000}, {0}},
    {"cuMipmappedArrayDestroy", {5000}, {0}},
    {"cuArrayGetMemoryRequirements", {11060}, {0}},
    {"cuMipmappedArrayGetMemoryRequirements", {11060}, {0}},
    {"cuImportExternalMemory", {10000}, {0}},
    {"cuExternalMemoryGetMappedBuffer", {10000}, {0}},
    {"cuExternalMemoryGetMappedMipmappedArray", {10000}, {0}},
    {"cuDestroyExternalMemory", {10000}, {0}},
    {"cuStreamAttachMemAsync", {6000}, {7000}},
    {"cuIpcGetMemHandle", {4010}, {0}},
    {"cuIpcOpenMemHandle", {4010, 11000}, {0}},
    {"cuIpcCloseMemHandle", {4010}, {0}},
    {"cuGraphicsResourceGetMappedPointer", {3020}, {0}},
    {"cuMemAdvise", {8000, 12020}, {0}},
    {"cuMemPrefetchAsync", {8000, 12020}, {8000, 12020}},
    {"cuMemPrefetchBatchAsync", {13000}, {13000}},
    {"cuMemDiscardBatchAsync", {13000}, {13000}},
    {"cuMemDiscardAndPrefetchBatchAsync", {13000}, {13000}},
    {"cuMemRangeGetAttribute", {8000}, {0}},
    {"cuMemRangeGetAttributes", {8000}, {0}},
    {"cuGraphAddMemAllocNode", {11040}, {0}},
    {"cuGraphMemAllocNodeGetParams", {11040}, {0}},
    {"cuGraphAddMemFreeNode", {11040}, {0}},
    {"cuGraphMemFreeNodeGetParams", {11040}, {0}},
    {"cuDeviceGraphMemTrim", {11040}, {0}},
    {"cuDeviceGetGraphMemAttribute", {11040}, {0}},
    {"cuDeviceSetGraphMemAttribute", {11040}, {0}},
};

static struct {
    void *handle;
    __typeof__(&cudaMalloc) malloc_;
    __typeof__(&cudaFree) free_;
    __typeof__(&cudaGetDeviceCount) count;
    __typeof__(&cudaDriverGetVersion) driver_version;
    __typeof__(&cudaRuntimeGetVersion) runtime_version;
    __typeof__(&cudaGetLastError) last_error;
    __typeof__(&cudaGetDriverEntryPoint) entry_point;
    __typeof__(&cudaMemcpyAsync) copy_async;
} rt;

static void *symbol(const char *name)
{
    void *found = dlsym(rt.handle, name);

    if (!found)
        bail("no %s", name);
    return found;
}

static void open_runtime(const char *name)
{
    rt.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!rt.handle)
        bail("%s", dlerror());
    rt.malloc_ = (__typeof__(rt.malloc_))symbol("cudaMalloc");
    rt.free_ = (__typeof__(rt.free_))symbol("cudaFree");
    rt.count = (__typeof__(rt.count))symbol("cudaGetDeviceCount");
    rt.driver_version = (__typeof__(rt.driver_version))symbol("cudaDriverGetVersion");
    rt.runtime_version = (__typeof__(rt.runtime_version))symbol("cudaRuntimeGetVersion");
    rt.last_error = (__typeof__(rt.last_error))symbol("cudaGetLastError");
    rt.entry_point = (__typeof__(rt.entry_point))symbol("cudaGetDriverEntryPoint");
    rt.copy_async = (__typeof__(rt.copy_async))symbol("cudaMemcpyAsync");
}

static struct {
    const struct fake_request *requests;
    int count;
} asked;

static bool was_asked(const char *name, int version, int flags)
{
    for (int i = 0; i < asked.count; i++) {
        if (strcmp(asked.requests[i].name, name) == 0 && asked.requests[i].version == version &&
            asked.requests[i].flags == flags)
            return true;
    }
    return false;
}

static bool is_request(int index, const char *name, int version, int route)
{
    const struct fake_request *request = &asked.requests[index];

    return index < asked.count && strcmp(request->name, name) == 0 && request->version == version &&
           request->flags == 0 && request->route == route;
}

static void check_memory_names(void)
{
    int missing = 0;

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        for (int j = 0; j < 2; j++) {
            if (wanted[i].versions[j] && !was_asked(wanted[i].name, wanted[i].versions[j], 0)) {
                diag("%s is not asked for at %d", wanted[i].name, wanted[i].versions[j]);
                missing++;
            }
            if (wanted[i].per_thread[j] && !was_asked(wanted[i].name, wanted[i].per_thread[j], 2)) {
                diag("%s is not asked for at %d, per thread", wanted[i].name, wanted[i].per_thread[j]);
                missing++;
            }
        }
    }
    is_int(missing, 0, "all 65 memory names are asked for as the real runtime asks");
}

/* With a whole driver: the sequence of the start. */
static void case_sequence(int major)
{
    __typeof__(&fake_log) get_log;
    __typeof__(&fake_inits) inits;
    void *driver, *found = (void *)1;
    enum cudaDriverEntryPointQueryResult status;
    int devices = 0, version = 0, second = 0;

    plan(0);
    ok(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "loading the runtime does not load the driver");
    is_int(rt.runtime_version(&version), cudaSuccess, "cudaRuntimeGetVersion");
    is_int(version / 1000, major, "the version is this runtime's");
    is_int(rt.count(&devices), cudaSuccess, "the first call");
    is_int(devices, 3, "it is the driver that answered");

    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        bail("libcuda.so.1 was not loaded");
    ok(!dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"), "the driver is opened RTLD_LOCAL");
    get_log = (__typeof__(get_log))dlsym(driver, "fake_log");
    inits = (__typeof__(inits))dlsym(driver, "fake_inits");
    if (!get_log || !inits)
        bail("this is not the fake driver");
    asked.requests = get_log(&asked.count);
    diag("%d lookups", asked.count);
    ok(is_request(0, "", 0, FAKE_FIRST), "first an empty name");
    ok(is_request(1, "cuInit", 2000, FAKE_FIRST), "then cuInit");
    ok(is_request(2, "cuGetProcAddress", 11030, FAKE_FIRST),
       "then the lookup through itself, four arguments");
    ok(is_request(3, "cuGetProcAddress", 12000, FAKE_FIRST), "and five arguments");
    for (int i = 4; i < asked.count; i++)
        second += asked.requests[i].route == FAKE_SECOND;
    is_int(second, asked.count - 4, "everything after that goes through the function it returned");
    check_memory_names();
    ok(!was_asked("cuMemAllocHost", 3020, 0) && !was_asked("cuMemCreate", 10020, 0),
       "what the real runtime does not ask for is not asked for");
    is_int(inits(), 1, "cuInit is called once");

    is_int(rt.copy_async(&version, &version, 4, (enum cudaMemcpyKind)77, NULL), cudaErrorNotSupported,
           "a context the driver cannot give is an error");
    is_int(rt.entry_point("cuNoSuchThing", &found, cudaEnableDefault, &status), cudaSuccess,
           "an unknown entry point");
    is_ptr(found, NULL, "has no address");
    is_int(status, cudaDriverEntryPointSymbolNotFound, "and says so");
    asked.requests = get_log(&asked.count);
    ok(asked.requests[asked.count - 1].route == FAKE_SECOND &&
           strcmp(asked.requests[asked.count - 1].name, "cuNoSuchThing") == 0,
       "programs' lookups take the runtime's own way");
    is_int(asked.requests[asked.count - 1].version / 1000, major, "with the runtime's version");
}

static void expect_all(int status, const char *when)
{
    void *pointer = (void *)0x1;
    int devices = -7;

    is_int(rt.malloc_(&pointer, 100), status, "%s: cudaMalloc", when);
    is_ptr(pointer, (void *)0x1, "%s: the pointer is left alone", when);
    is_int(rt.malloc_(NULL, 100), status, "%s: before the arguments are looked at", when);
    is_int(rt.free_(NULL), status, "%s: cudaFree(NULL)", when);
    is_int(rt.count(&devices), status, "%s: cudaGetDeviceCount", when);
    is_int(rt.last_error(), status, "%s: the last error", when);
}

static void case_no_driver(int major)
{
    int version = -1;

    (void)major;
    if (dlopen("libcuda.so.1", RTLD_NOW))
        skip_all("this machine has a driver in its search path");
    plan(0);
    expect_all(cudaErrorInsufficientDriver, "no driver");
    is_int(rt.driver_version(&version), cudaSuccess, "the driver's version can be asked for");
    is_int(version, 0, "and is 0");
}

static void case_old_driver(int major)
{
    __typeof__(&fake_inits) inits;
    int version = -1;
    void *driver;

    (void)major;
    plan(0);
    expect_all(cudaErrorInsufficientDriver, "old driver");
    is_int(rt.driver_version(&version), cudaSuccess, "the driver's version can be asked for");
    is_int(version, 11080, "and is the driver's");
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    inits = driver ? (__typeof__(inits))dlsym(driver, "fake_inits") : NULL;
    ok(inits && inits() == 0, "cuInit of a driver that is too old is never called");
}

static void case_no_device(int major)
{
    __typeof__(&fake_inits) inits;
    void *driver;

    (void)major;
    plan(0);
    expect_all(cudaErrorNoDevice, "no device");
    expect_all(cudaErrorNoDevice, "no device, again");
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    inits = driver ? (__typeof__(inits))dlsym(driver, "fake_inits") : NULL;
    ok(inits && inits() == 1, "a failed start is not tried again");
}

static void case_missing(int major)
{
    (void)major;
    plan(0);
    expect_all(cudaErrorNotSupported, "driver without functions");
}

static const struct {
    const char *name;
    void (*run)(int major);
    const char *version;
    const char *init;
    const char *missing;
    bool with_driver;
} cases[] = {
    {"sequence", case_sequence, "13000", "0", "0", true},
    {"no-driver", case_no_driver, "13000", "0", "0", false},
    {"old-driver", case_old_driver, "11080", "0", "0", true},
    {"no-device", case_no_device, "13000", "100", "0", true},
    {"missing", case_missing, "13000", "0", "1", true},
};

static int run_case(const char *name, const char *runtime)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, name) == 0) {
            open_runtime(runtime);
            cases[i].run(atoi(strrchr(runtime, '.') + 1));
            return done();
        }
    }
    bail("no case %s", name);
}

/* Run one case in a process of its own and pass its facts on under names of their own. */
static void delegate(const char *self, size_t index, const char *runtime)
{
    char command[4096], line[1024];
    FILE *pipe;

    setenv("FAKE_VERSION", cases[index].version, 1);
    setenv("FAKE_INIT", cases[index].init, 1);
    setenv("FAKE_MISSING", cases[index].missing, 1);
    snprintf(command, sizeof(command), "LD_LIBRARY_PATH=%s/%s '%s' %s '%s/%s'", getenv("TEST_SIM"),
             cases[index].with_driver ? "tests/sim/fake" : "tests/sim", self, cases[index].name,
             getenv("TEST_SIM"), runtime);
    pipe = popen(command, "r");
    if (!pipe)
        bail("cannot run %s", command);
    while (fgets(line, sizeof(line), pipe)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "ok ", 3) == 0 || strncmp(line, "not ok ", 7) == 0)
            ok(line[0] == 'o', "%s, %s: %s", runtime, cases[index].name, strstr(line, " - ") + 3);
        else if (strncmp(line, "1..0 # SKIP ", 12) == 0)
            skip(1, "a driver in the search path must be absent");
        else if (strncmp(line, "Bail", 4) == 0)
            ok(false, "%s, %s: %s", runtime, cases[index].name, line);
        else if (line[0] == '#')
            diag("%s", line + 1);
    }
    ok(pclose(pipe) == 0, "%s, %s: ends well", runtime, cases[index].name);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return run_case(argv[1], argv[2]);
    if (!getenv("TEST_SIM"))
        skip_all("TEST_SIM is not set: run by make check");
    plan(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        delegate(argv[0], i, "libcudart.so.13");
        delegate(argv[0], i, "libcudart.so.12");
    }
    return done();
}
