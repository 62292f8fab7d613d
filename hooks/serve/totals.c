/* totals.c - what devices say that they have, under MEMSHIM_LIMIT: NVML's figures, and the totals of device
 * properties where MEMSHIM_MEMINFO=properties asks for those too. See answer.h.
 *
 * Runs in the program's threads, inside a hook scope around what is done with the vendor's answer. No lock of
 * its own, no allocation. */
#include "hooks/serve/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/options/options.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "hooks/serve/limit.h"
#include "record/live/internal.h"
#include "vendor/abi/nvml.h"
#include "vendor/gpu.h"

enum { UUID_TEXT_BYTES = 96, UUID_BYTES = 16 };

static bool is_told_of_limit(void)
{
    return ms_limit_is_set() && ms_option_int(MS_OPT_MEMINFO) != MS_MEMINFO_REAL && ms_thread.depth == 0 &&
           ms_init_active();
}

/* --- NVML ----------------------------------------------------------------------------------------------- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The sixteen bytes behind "GPU-"; false for what is no such text. */
static bool read_uuid(const char *text, uint8_t *uuid)
{
    unsigned digits = 0;

    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    memset(uuid, 0, UUID_BYTES);
    for (text += 4; *text; text++) {
        int value = digit(*text);
        if (value < 0)
            continue;
        if (digits >= 2 * UUID_BYTES)
            return false;
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | value);
        digits++;
    }
    return digits == 2 * UUID_BYTES;
}

/* The number of the CUDA device of that UUID, if the process has used it. */
static int device_of_uuid(const uint8_t *uuid)
{
    int first = ms_device_first(MS_MAKER_CUDA);
    struct ms_device_info info;

    for (int device = first; device < first + ms_device_count(MS_MAKER_CUDA); device++) {
        if (ms_ledger_device_known(device) && ms_events_device(device, &info) &&
            memcmp(info.uuid, uuid, UUID_BYTES) == 0)
            return device;
    }
    return MS_DEVICE_NONE;
}

typedef nvmlReturn_t (*uuid_func_t)(nvmlDevice_t, char *, unsigned int);

static int device_of(const struct ms_target *target, const struct ms_args *args)
{
    uuid_func_t ask = (uuid_func_t)ms_library_sibling((uintptr_t)target->real, MS_ROW_nvmlDeviceGetUUID);
    char text[UUID_TEXT_BYTES];
    uint8_t uuid[UUID_BYTES];

    if (!ask || ask((nvmlDevice_t)(uintptr_t)args->given, text, sizeof(text)) != NVML_SUCCESS ||
        !read_uuid(text, uuid))
        return MS_DEVICE_NONE;
    return device_of_uuid(uuid);
}

static void tell_limit(int device, unsigned long long *free_p, unsigned long long *total_p)
{
    bool is_used = device >= 0 && ms_quota_is_known(device);
    uint64_t limit = is_used ? ms_quota_limit(device) : ms_limit_of(*total_p),
             left = is_used ? ms_quota_room(device) : limit;

    if (*free_p > left)
        *free_p = left;
    if (*total_p > limit)
        *total_p = limit;
}

typedef nvmlReturn_t (*card_memory_func_t)(nvmlDevice_t, void *);

bool ms_answer_CARD_MEMORY(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    void *memory = (void *)(uintptr_t)args->out;
    struct ms_hook_scope scope;

    if (!memory || !is_told_of_limit())
        return false;
    ms_hook_scope_enter(&scope);
    *status_p = (int)((card_memory_func_t)target->real)((nvmlDevice_t)(uintptr_t)args->given, memory);
    if (*status_p == NVML_SUCCESS && args->flags == 1) {
        nvmlMemory_t *one = memory;
        tell_limit(device_of(target, args), &one->free, &one->total);
        one->used = one->total - one->free;
    } else if (*status_p == NVML_SUCCESS) {
        nvmlMemory_v2_t *two = memory;
        tell_limit(device_of(target, args), &two->free, &two->total);
        two->reserved = 0; /* the card's own is no part of the limit */
        two->used = two->total - two->free;
    }
    ms_hook_scope_leave(&scope);
    return true;
}

/* --- properties ----------------------------------------------------------------------------------------- */

typedef int (*total_func_t)(void *, int);

bool ms_answer_TOTAL(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    size_t *total_p = (size_t *)((uintptr_t)args->out + args->flags);
    const struct ms_gpu *gpu;
    struct ms_hook_scope scope;
    int device;

    if (!args->out || !is_told_of_limit() || ms_option_int(MS_OPT_MEMINFO) != MS_MEMINFO_PROPERTIES)
        return false;
    *status_p = ((total_func_t)target->real)((void *)(uintptr_t)args->out, args->device);
    if (*status_p != 0)
        return true;
    ms_hook_scope_enter(&scope);
    gpu = target->gpu ? target->gpu : ms_library_driver();
    device = gpu ? ms_gpu_device(gpu, args->device) : MS_DEVICE_NONE;
    ms_limit_learn(gpu, device);
    if (*total_p > ms_quota_limit(device))
        *total_p = ms_quota_limit(device);
    ms_hook_scope_leave(&scope);
    return true;
}
