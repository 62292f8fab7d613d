/* limit.c - see limit.h. Runs in the program's threads, inside a hook scope. No lock, no allocation, no state
 * of its own. */
#include "hooks/serve/limit.h"

#include "base/options/options.h"
#include "hooks/serve/host_floor.h"
#include "hooks/serve/neighbours.h"
#include "hooks/serve/serve.h"
#include "pool/stream/stream.h"
#include "vendor/gpu.h"

void ms_limit_start(void)
{
    if (ms_limit_is_set() || ms_host_floor_is_set())
        ms_quota_bound();
}

bool ms_limit_is_set(void)
{
    return ms_option_size(MS_OPT_LIMIT, UINT64_MAX / 200) != UINT64_MAX || *ms_option_text(MS_OPT_SHARE);
}

uint64_t ms_limit_of(uint64_t total_bytes)
{
    uint64_t limit = ms_option_size(MS_OPT_LIMIT, total_bytes), kept, most;

    return ms_option_pair(MS_OPT_SHARE, total_bytes, &kept, &most) && most < limit ? most : limit;
}

void ms_limit_learn(const struct ms_gpu *gpu, int device)
{
    struct ms_gpu_description about = {.total_bytes = 0};

    if (!ms_quota_is_bounded() || device < 0 || ms_quota_is_known(device))
        return;
    if (ms_option_is_percent(MS_OPT_LIMIT) || ms_option_is_percent(MS_OPT_SHARE))
        ms_gpu_describe(gpu, device, &about);
    bool has_floor = ms_host_floor_meet(gpu, device);

    if (!has_floor && !ms_limit_is_set()) {
        ms_quota_unbound(); /* no device of the driver's takes the host's memory */
        return;
    }
    ms_neighbours_meet(gpu, device); /* first: who finds the limit known does not wait for this */
    ms_quota_allow(device, ms_limit_of(about.total_bytes));
}

/* Memory of a device, of a size that is known before. What is imported is others', and a view of memory that
 * is counted has no bytes. */
static bool takes_memory(const struct ms_call *call)
{
    const struct ms_args *args = &call->args;

    return ms_class_allocates(ms_rows[call->row]->class) && ms_kind_is_vendors((enum ms_kind)args->kind) &&
           args->bytes && (args->out || args->given);
}

/* A pool that the program names may be the host's, or another device's. One that was not seen being made is
 * counted when the driver has told where its memory lies. */
static int limit_device_of(const struct ms_call *call)
{
    bool names_pool =
        call->args.kind == MS_KIND_ASYNC && call->args.key && call->args.key != MS_MEMPOOL_CURRENT;

    return names_pool && ms_gpu_maker(call->gpu) == MS_MAKER_CUDA ? ms_mempool_device(call->args.key)
                                                                  : ms_serve_device_of_call(call);
}

bool ms_limit_reserve(const struct ms_call *call)
{
    struct ms_room room = {0};
    int device;

    if (!takes_memory(call))
        return true;
    device = limit_device_of(call);
    ms_limit_learn(call->gpu, device);
    while (!ms_quota_call_reserve(device, call->args.bytes)) {
        if (!ms_serve_make_room_in_call(call, &room))
            return false;
    }
    return true;
}
