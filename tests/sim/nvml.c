/*
 * The simulated management library: its devices are the driver's, by name, unique id, bus and attributes;
 * memory and running processes are those of all processes, and what this one's driver tells while it is the
 * only one. Children first see and then leave.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/nvml.h"
#include "tests/sim/driver.h"

enum { DEVICES = 3, CHILD_BYTES = 64 << 20, OWN_BYTES = 24 << 20, PROCESSES = 1024 };

static nvmlDevice_t devices[DEVICES];

static void test_uninitialised(void)
{
    unsigned count;

    is_int(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED, "nothing is told before it begins");
    is_int(nvmlDeviceGetNvLinkState(NULL, 0, NULL), NVML_ERROR_UNINITIALIZED, "nor by what is not simulated");
    is_int(nvmlShutdown(), NVML_ERROR_UNINITIALIZED, "it cannot end");
    is_int(nvmlInitWithFlags(64), NVML_ERROR_INVALID_ARGUMENT, "no such flag");
    is_int(nvmlInit_v2(), NVML_SUCCESS, "it begins");
    is_int(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS, "twice");
    is_int(nvmlShutdown(), NVML_SUCCESS, "ends once");
    is_int(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS, "and goes on");
    is_u64(count, DEVICES, "with all devices");
}

static void test_system(void)
{
    char text[80], tiny[4];
    int cuda = 0, driver = 0;

    is_int(nvmlSystemGetDriverVersion(text, sizeof text), NVML_SUCCESS, "the driver's version");
    ok(strtol(text, NULL, 10) >= 580 && strchr(text, '.'), "%s", text);
    is_int(nvmlSystemGetDriverVersion(tiny, sizeof tiny), NVML_ERROR_INSUFFICIENT_SIZE, "has to fit");
    is_int(nvmlSystemGetDriverVersion(NULL, 80), NVML_ERROR_INVALID_ARGUMENT, "somewhere");
    is_int(nvmlSystemGetNVMLVersion(text, sizeof text), NVML_SUCCESS, "the library's");
    is_int(nvmlSystemGetCudaDriverVersion_v2(&cuda) | (int)cuDriverGetVersion(&driver), 0,
           "the CUDA version");
    is_int(cuda, driver, "is the driver's");
    is_int(nvmlSystemGetProcessName((unsigned)getpid(), text, sizeof text), NVML_SUCCESS, "a process's name");
    ok(strstr(text, "nvml") != NULL, "%s", text);
    is_int(nvmlSystemGetProcessName(0x7ffffff0, text, sizeof text), NVML_ERROR_NOT_FOUND,
           "of a process that is");
    is_str(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED), "Not Supported", "a text");
    is_str(nvmlErrorString((nvmlReturn_t)12345), "Unknown Error", "and of nonsense");
}

static void uuid_text(CUdevice device, char *text)
{
    CUuuid uuid;
    unsigned char *b = (unsigned char *)uuid.bytes;

    cuDeviceGetUuid_v2(&uuid, device);
    sprintf(text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
            b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = -1;

    cuDeviceGetAttribute(&value, which, device);
    return value;
}

static void test_identity(int i)
{
    char text[96], want[96];
    nvmlDevice_t found = NULL;
    nvmlPciInfo_t pci, old;
    unsigned value = 77;
    int major = 0, minor = 0;

    is_int(nvmlDeviceGetHandleByIndex_v2((unsigned)i, &devices[i]), NVML_SUCCESS, "device %d", i);
    is_int(nvmlDeviceGetIndex(devices[i], &value) | (value != (unsigned)i), 0, "has its index");
    is_int(nvmlDeviceGetName(devices[i], text, sizeof text) | (int)cuDeviceGetName(want, sizeof want, i), 0,
           "a name");
    is_str(text, want, "the driver's");
    uuid_text(i, want);
    is_int(nvmlDeviceGetUUID(devices[i], text, sizeof text), NVML_SUCCESS, "a unique id");
    is_str(text, want, "the driver's");
    is_int(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS, "by which it is found");
    is_ptr(found, devices[i], "itself");
    is_int(nvmlDeviceGetPciInfo_v3(devices[i], &pci) | (int)cuDeviceGetPCIBusId(want, sizeof want, i), 0,
           "a bus");
    is_str(pci.busIdLegacy, want, "the driver's");
    ok(strlen(pci.busId) == strlen(want) + 4 && strstr(pci.busId, want), "%s in its longer form", pci.busId);
    is_int((int)pci.bus, attribute(i, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID), "its number");
    memset(&old, 0x55, sizeof old);
    is_int(nvmlDeviceGetPciInfo_v2(devices[i], &old) | (old.busId[0] != 0x55), 0,
           "the earlier form ends before that");
    is_int(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &found) | (found != devices[i]), 0,
           "found by the longer form");
    is_int(nvmlDeviceGetHandleByPciBusId_v2(pci.busIdLegacy, &found) | (found != devices[i]), 0,
           "and the shorter");
    is_int(nvmlDeviceGetCudaComputeCapability(devices[i], &major, &minor), NVML_SUCCESS,
           "compute capability");
    is_int(major * 100 + minor,
           attribute(i, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 100 +
               attribute(i, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
           "the driver's");
    is_int(nvmlDeviceGetMemoryBusWidth(devices[i], &value), NVML_SUCCESS, "bus width");
    is_int((int)value, attribute(i, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH), "the driver's");
    is_int(nvmlDeviceGetMaxClockInfo(devices[i], NVML_CLOCK_SM, &value), NVML_SUCCESS, "clock");
    is_int((int)value, attribute(i, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000, "the driver's");
}

static void test_others(void)
{
    nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_NOT_SUPPORTED;
    nvmlDevice_t found = NULL;
    unsigned value = 9;
    int reach = 0;

    is_int(nvmlDeviceGetHandleByIndex_v2(DEVICES, &found), NVML_ERROR_INVALID_ARGUMENT, "no such index");
    is_int(nvmlDeviceGetHandleByUUID("GPU-0", &found), NVML_ERROR_NOT_FOUND, "no such id");
    is_int(nvmlDeviceGetHandleByPciBusId_v2("0000:17:00.0", &found), NVML_ERROR_NOT_FOUND,
           "nothing in that slot");
    is_int(nvmlDeviceGetHandleByPciBusId_v2("slot", &found), NVML_ERROR_INVALID_ARGUMENT, "no slot");
    is_int(nvmlDeviceGetIndex((nvmlDevice_t)(void *)&found, &value), NVML_ERROR_INVALID_ARGUMENT,
           "no device");
    is_int(nvmlDeviceGetIndex(devices[0], NULL), NVML_ERROR_INVALID_ARGUMENT, "nowhere");
    is_int(nvmlDeviceGetP2PStatus(devices[0], devices[1], NVML_P2P_CAPS_INDEX_READ, &status), NVML_SUCCESS,
           "peers");
    cuDeviceCanAccessPeer(&reach, 0, 1);
    is_int(status == NVML_P2P_STATUS_OK, reach, "as the driver has it");
    is_int(nvmlDeviceGetP2PStatus(devices[0], devices[1], NVML_P2P_CAPS_INDEX_NVLINK, &status), NVML_SUCCESS,
           "by a link");
    is_int(status, NVML_P2P_STATUS_NOT_SUPPORTED, "there is none");
    is_int(nvmlDeviceGetNvLinkState(devices[0], 0, NULL), NVML_ERROR_NOT_SUPPORTED, "at all");
    is_int(nvmlDeviceIsMigDeviceHandle(devices[0], &value) | (value != 0), 0, "no part of a device");
}

/* Of this test's own processes alone: others on the machine may use the simulator too. */
static unsigned long long used_by(int device, pid_t pid, bool *there_p)
{
    nvmlProcessInfo_t list[PROCESSES];
    unsigned count = PROCESSES;

    *there_p = false;
    if (nvmlDeviceGetComputeRunningProcesses_v3(devices[device], &count, list) != NVML_SUCCESS)
        bail("more processes than are thought of");
    for (unsigned i = 0; i < count; i++) {
        if (list[i].pid != (unsigned)pid)
            continue;
        *there_p = true;
        return list[i].usedGpuMemory;
    }
    return 0;
}

static void be_child(int in, int out)
{
    CUcontext context;
    CUdeviceptr address = 0;
    char byte = cuInit(0) || cuCtxCreate_v2(&context, 0, 1) || cuMemAlloc_v2(&address, CHILD_BYTES);

    if (write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1)
        cuMemFree_v2(address);
    if (write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1)
        cuCtxDestroy_v2(context);
    if (write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1)
        _exit(0);
    _exit(1);
}

static int to_child[2], from_child[2];

static int hear(void)
{
    char byte = 1;

    return read(from_child[0], &byte, 1) == 1 ? byte : -1;
}

static void tell(void)
{
    if (write(to_child[1], "", 1) != 1)
        bail("the child is gone");
}

static void test_other_process(void)
{
    nvmlMemory_t before, after;
    bool there;
    pid_t child;

    if (pipe(to_child) || pipe(from_child))
        bail("no pipes");
    is_int(nvmlDeviceGetMemoryInfo(devices[1], &before), NVML_SUCCESS, "memory");
    fflush(stdout);
    child = fork();
    if (child == 0)
        be_child(to_child[0], from_child[1]);
    is_int(hear(), 0, "a child allocates on device 1");
    is_u64(used_by(1, child, &there), CHILD_BYTES, "which is seen from here");
    ok(there, "as a running process");
    is_u64(used_by(0, child, &there), 0, "on that device");
    ok(!there, "alone");
    is_int(nvmlDeviceGetMemoryInfo(devices[1], &after), NVML_SUCCESS, "memory");
    ok(after.total == before.total && after.used >= CHILD_BYTES && after.free + after.used == after.total,
       "counts it");
    tell();
    hear();
    is_u64(used_by(1, child, &there), 0, "it frees");
    ok(there, "and runs on");
    tell();
    hear();
    used_by(1, child, &there);
    ok(!there, "without a context it is none that runs");
    tell();
    waitpid(child, NULL, 0);
}

static void test_own_memory(void)
{
    nvmlMemory_v2_t two = {.version = nvmlMemory_v2};
    nvmlProcessInfo_v1_t few[PROCESSES];
    nvmlMemory_t one;
    CUdeviceptr address = 0;
    CUcontext context;
    size_t available = 0, total = 0;
    unsigned count = PROCESSES, none = 0;
    bool there, found = false;

    used_by(0, getpid(), &there);
    ok(!there, "this process has no context");
    if (cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&address, OWN_BYTES))
        bail("no memory");
    cuMemGetInfo_v2(&available, &total);
    is_u64(used_by(0, getpid(), &there), total - available,
           "now it has one, and takes what its driver tells");
    is_int(nvmlDeviceGetMemoryInfo_v2(devices[0], &two) | nvmlDeviceGetMemoryInfo(devices[0], &one), 0,
           "memory");
    ok(two.total == total + two.reserved && two.free <= available && two.used + two.free == total,
       "of the same size");
    ok(one.total == two.total && one.used + one.free == one.total, "in both forms");
    two.version = 1;
    is_int(nvmlDeviceGetMemoryInfo_v2(devices[0], &two), NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
           "of which each has its number");
    is_int(nvmlDeviceGetComputeRunningProcesses(devices[0], &count, few), NVML_SUCCESS,
           "processes in the first form");
    for (unsigned i = 0; i < count; i++)
        found |= few[i].pid == (unsigned)getpid() && few[i].usedGpuMemory == total - available;
    ok(found, "say the same");
    is_int(nvmlDeviceGetComputeRunningProcesses_v3(devices[0], &none, NULL), NVML_ERROR_INSUFFICIENT_SIZE,
           "how many there are");
    ok(none >= 1, "is told without room for them");
    none = 5;
    is_int(nvmlDeviceGetGraphicsRunningProcesses_v3(devices[0], &none, NULL) | (none != 0), 0,
           "nobody draws");
    fflush(stdout);
    pid_t child = fork(); /* with its parent's descriptors, and nothing of its own */
    if (child == 0) {
        used_by(0, getpid(), &there);
        _exit(there);
    }
    int status = -1;
    waitpid(child, &status, 0);
    is_int(status, 0, "a child is not taken for its parent");
    cuMemFree_v2(address);
    cuCtxDestroy_v2(context);
}

int main(void)
{
    char number[8];

    snprintf(number, sizeof number, "%d", DEVICES);
    setenv("MEMSIM_DEVICES", number, 1);
    plan(0);
    test_uninitialised();
    test_system();
    for (int i = 0; i < DEVICES; i++)
        nvmlDeviceGetHandleByIndex_v2((unsigned)i, &devices[i]);
    test_other_process();
    if (cuInit(0) != CUDA_SUCCESS)
        bail("no driver");
    for (int i = 0; i < DEVICES; i++)
        test_identity(i);
    test_others();
    test_own_memory();
    is_int(nvmlShutdown(), NVML_SUCCESS, "it ends");
    is_int(nvmlDeviceGetIndex(devices[0], &(unsigned){0}), NVML_ERROR_UNINITIALIZED, "and tells no more");
    return done();
}
