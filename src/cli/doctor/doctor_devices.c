/* doctor_devices.c - whose the memory of NVIDIA's devices is, as the management library tells it; see
 * doctor.h.
 *
 * Floor 5. Opens libnvidia-ml.so.1, which the driver brings, and asks it alone: no context is made, so
 * looking takes nothing of a device. Sources: docs.nvidia.com/deploy/nvml-api, nvmlDeviceGetMemoryInfo_v2 and
 * nvmlDeviceGetComputeRunningProcesses. The library names processes by the numbers that they have on the
 * machine, or, in a container, 0 for those outside. */
#include <dlfcn.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/closure.h"
#include "cli/doctor/doctor.h"
#include "vendor/abi/nvml.h"

enum { PROCESSES_MOST = 1024, DEVICES_MOST = 64, NAME_BYTES = 96 };
#define NOT_AVAILABLE (~0ULL) /* NVML_VALUE_NOT_AVAILABLE */

struct library {
    nvmlReturn_t (*init)(unsigned int);
    nvmlReturn_t (*shutdown)(void);
    nvmlReturn_t (*count)(unsigned int *);
    nvmlReturn_t (*handle)(unsigned int, nvmlDevice_t *);
    nvmlReturn_t (*name)(nvmlDevice_t, char *, unsigned int);
    nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_v2_t *);
    nvmlReturn_t (*compute)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *);
    nvmlReturn_t (*graphics)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *);
};

/* Since version 510 of the driver; of older ones nothing is told. */
static bool bind(struct library *library, void *handle)
{
    *(void **)&library->init = dlsym(handle, "nvmlInitWithFlags");
    *(void **)&library->shutdown = dlsym(handle, "nvmlShutdown");
    *(void **)&library->count = dlsym(handle, "nvmlDeviceGetCount_v2");
    *(void **)&library->handle = dlsym(handle, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&library->name = dlsym(handle, "nvmlDeviceGetName");
    *(void **)&library->memory = dlsym(handle, "nvmlDeviceGetMemoryInfo_v2");
    *(void **)&library->compute = dlsym(handle, "nvmlDeviceGetComputeRunningProcesses_v3");
    *(void **)&library->graphics = dlsym(handle, "nvmlDeviceGetGraphicsRunningProcesses_v3");
    return library->init && library->shutdown && library->count && library->handle && library->name &&
           library->memory && library->compute && library->graphics;
}

/* "running", "zombie", or "gone": there is no process of that number where this command runs. */
static const char *state_of(unsigned int pid, uid_t *owner_p)
{
    char path[64], text[512], state = 0;
    struct stat status;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u", pid);
    if (!pid || stat(path, &status) != 0)
        return "gone";
    *owner_p = status.st_uid;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return "gone";
    if (fgets(text, sizeof text, file)) {
        const char *name_end = strrchr(text, ')'); /* a name may hold anything */
        state = name_end && name_end[1] ? name_end[2] : 0;
    }
    fclose(file);
    return state == 'Z' || state == 'X' ? "zombie" : state ? "running" : "gone";
}

static void put_user(json_t *process, uid_t owner)
{
    const struct passwd *user = getpwuid(owner);
    char number[24];

    snprintf(number, sizeof number, "%u", (unsigned)owner);
    json_object_set_new(process, "user", json_string(user ? user->pw_name : number));
    json_object_set_new(process, "own", json_boolean(owner == geteuid()));
}

/* A process that computes and draws is in both lists, with all that it has. */
static bool is_there(const json_t *processes, unsigned int pid)
{
    const json_t *process;
    size_t i;

    json_array_foreach (processes, i, process)
        if (pid && json_integer_value(json_object_get(process, "pid")) == pid)
            return true;
    return false;
}

/* The sum is not known where the library does not say how much one of them has. */
static void add_processes(json_t *device, nvmlDevice_t handle,
                          nvmlReturn_t (*ask)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *),
                          unsigned long long *sum_p)
{
    static nvmlProcessInfo_t rows[PROCESSES_MOST];
    unsigned int count = PROCESSES_MOST;
    json_t *processes = json_object_get(device, "processes"), *process;
    uid_t owner = 0;

    if (ask(handle, &count, rows) != NVML_SUCCESS) {
        *sum_p = NOT_AVAILABLE;
        return;
    }
    for (unsigned int i = 0; i < count; i++) {
        if (is_there(processes, rows[i].pid))
            continue;
        const char *state = state_of(rows[i].pid, &owner);
        process = json_pack("{s:I, s:s}", "pid", (json_int_t)rows[i].pid, "state", state);
        if (strcmp(state, "gone") != 0)
            put_user(process, owner);
        if (rows[i].usedGpuMemory == NOT_AVAILABLE)
            *sum_p = NOT_AVAILABLE;
        else
            json_object_set_new(process, "used_bytes", json_integer((json_int_t)rows[i].usedGpuMemory));
        if (*sum_p != NOT_AVAILABLE)
            *sum_p += rows[i].usedGpuMemory;
        json_array_append_new(processes, process);
    }
}

static json_t *look_at(const struct library *library, unsigned int index)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    char name[NAME_BYTES] = "";
    unsigned long long sum = 0, in_use;
    nvmlDevice_t handle;
    json_t *device;

    if (library->handle(index, &handle) != NVML_SUCCESS ||
        library->memory(handle, &memory) != NVML_SUCCESS) /* a GB10 has no memory of its own to tell of */
        return NULL;
    library->name(handle, name, sizeof name);
    device = json_pack("{s:i, s:s, s:I, s:I, s:I, s:[]}", "index", (int)index, "name", name, "total_bytes",
                       (json_int_t)memory.total, "free_bytes", (json_int_t)memory.free, "reserved_bytes",
                       (json_int_t)memory.reserved, "processes");
    add_processes(device, handle, library->compute, &sum);
    add_processes(device, handle, library->graphics, &sum);
    in_use = memory.used > memory.reserved ? memory.used - memory.reserved : 0;
    if (sum != NOT_AVAILABLE)
        json_object_set_new(device, "unaccounted_bytes",
                            json_integer((json_int_t)(in_use > sum ? in_use - sum : 0)));
    return device;
}

json_t *ms_doctor_devices(void)
{
    char *path = ms_closure_find("libnvidia-ml.so.1");
    void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    json_t *devices = json_array(), *device;
    struct library library = {0};
    unsigned int count = 0;

    free(path);
    if (!handle || !bind(&library, handle) || library.init(0) != NVML_SUCCESS)
        return devices;
    if (library.count(&count) == NVML_SUCCESS) {
        for (unsigned int i = 0; i < count && i < DEVICES_MOST; i++) {
            device = look_at(&library, i);
            if (device)
                json_array_append_new(devices, device);
        }
    }
    library.shutdown();
    return devices;
}
