/* inner.c - see inner.h; and the functions of include/memshim.h for inner blocks.
 *
 * Floor 3. No lock, no allocation. */
#include "hooks/observe/inner.h"

#include "base/at_fork.h"
#include "base/log.h"
#include "base/options/options.h"
#include "hooks/dispatch.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "hooks/observe/invalid_free.h"
#include "record/live/inner.h"

MS_EXPORT uint64_t memshim_pool(const char *name);
MS_EXPORT void memshim_inner_alloc(uint64_t pool, const void *address, uint64_t bytes);
MS_EXPORT void memshim_inner_free(const void *address);

bool ms_inner_enter(struct ms_hook_scope *scope)
{
    if (ms_thread.depth > 0 || !ms_init_active())
        return false;
    ms_hook_scope_enter_brief(scope);
    ms_ledger_touch();
    return true;
}

/* PyTorch tells the end of each piece before its segment goes; others may give the whole back. */
void ms_inner_record(uint64_t heap, uint64_t address, uint64_t bytes, int device, enum ms_row row,
                     const void *frame, const void *caller)
{
    ms_stack_id stack = ms_stack_sampling() && !ms_stack_sampled(bytes) ? 0 : ms_stack_capture(frame, caller);
    ms_inner_alloc(heap, address, bytes, device, (uint16_t)row, ms_thread_id(), stack, row >= MS_ROW_INNER);
}

/* --- PyTorch --- */

/* PyTorch for AMD's devices calls them CUDA's; there is no CUDA driver then. */
static enum ms_maker maker_of_cuda(void)
{
    static _Atomic int known; /* enum ms_maker, + 1 */
    int maker = atomic_load_explicit(&known, memory_order_relaxed);
    if (!maker) {
        maker = 1 + (ms_library_driver() ? MS_MAKER_CUDA : MS_MAKER_HIP);
        atomic_store_explicit(&known, maker, memory_order_relaxed);
    }
    return (enum ms_maker)(maker - 1);
}

/* The heap of each device, that of none first, and that of the host last, 0 until it is known: PyTorch
 * reports each of its blocks. */
static _Atomic uint32_t pytorch_heaps[MS_DEVICES_MAX + 2];
enum { HOST_PLACE = MS_DEVICES_MAX + 1 };

static uint32_t pytorch_heap(int device, bool is_host, enum ms_row row)
{
    _Atomic uint32_t *known = &pytorch_heaps[is_host ? HOST_PLACE : device + 1];
    uint32_t heap = atomic_load_explicit(known, memory_order_relaxed);
    if (MS_UNLIKELY(!heap)) {
        heap = ms_heap_open(is_host ? "PyTorch on the host" : "PyTorch", device, (uint16_t)row);
        atomic_store_explicit(known, heap, memory_order_relaxed);
    }
    return heap;
}

/* False for what is not recorded: most programs have many small tensors on the host, so these are asked for.
 */
static bool pytorch_device(const struct ms_inner_report *report, int *number_p)
{
    *number_p = MS_DEVICE_NONE;
    return report->is_host ? ms_option_int(MS_OPT_HOST_TENSORS) == MS_HOST_TENSORS_ON
                           : ms_inner_device(report->device, number_p);
}

static void pytorch_heaps_reset(void)
{
    for (unsigned i = 0; i < MS_ARRAY_LEN(pytorch_heaps); i++)
        atomic_store_explicit(&pytorch_heaps[i], 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_HOOKS, pytorch_heaps_reset);

bool ms_inner_device(struct c10_device device, int *number_p)
{
    int index = device.index < 0 ? 0 : device.index;
    switch (device.type) {
    case C10_DEVICE_CUDA:
        *number_p = ms_device_number(maker_of_cuda(), index);
        return true;
    case C10_DEVICE_HIP:
        *number_p = ms_device_number(MS_MAKER_HIP, index);
        return true;
    case C10_DEVICE_PRIVATE_USE_1:
        *number_p = ms_device_number(MS_MAKER_ACL, index);
        return true;
    case C10_DEVICE_XPU: /* of no interface that memshim knows */
        *number_p = MS_DEVICE_NONE;
        return true;
    default:
        return false;
    }
}

/* A piece behind a refusal: PyTorch gave back what was idle, asked again, and had it, unless the refusal was
 * of something else. */
static MS_NOINLINE void inner_answered(uint64_t bytes)
{
    uint64_t whole = (bytes + C10_SEGMENT_GRANULE - 1) / C10_SEGMENT_GRANULE * C10_SEGMENT_GRANULE;
    ms_ledger_refused_answered(bytes, whole > C10_SEGMENT_LEAST ? whole : C10_SEGMENT_LEAST);
}

void ms_inner_reported(enum ms_row row, const struct ms_inner_report *report, const void *frame,
                       const void *caller)
{
    struct ms_hook_scope scope;
    int device;
    if (!report->address || !report->bytes || !pytorch_device(report, &device) || !ms_inner_enter(&scope))
        return;
    uint32_t heap = pytorch_heap(device, report->is_host, row);
    if (report->has_reserved)
        ms_heap_reserved(heap, report->reserved);
    if (MS_UNLIKELY(ms_thread.refused && report->bytes > 0))
        inner_answered((uint64_t)report->bytes);
    if (report->bytes > 0)
        ms_inner_record(heap, report->address, (uint64_t)report->bytes, device, row, frame, caller);
    else
        ms_inner_free(report->address);
    ms_hook_scope_leave_brief(&scope);
}

/* --- include/memshim.h --- */

/* The device of an address is the vendor's to say; of the driver that came first, where there are several. */
static int device_at(uint64_t address)
{
    const struct ms_gpu *gpu = ms_library_driver();
    uint64_t context;
    return gpu ? ms_gpu_device_of(gpu, address, ms_gpu_current(gpu, &context)) : MS_DEVICE_NONE;
}

static MS_NOINLINE void refuse(const char *who, uint64_t address, uint64_t bytes, const char *why)
{
    static _Atomic bool is_told;
    if (!atomic_exchange(&is_told, true))
        ms_diagnostic(MS_LOG_WARN, "tensors",
                      "%s told a piece of %llu bytes at 0x%llx, %s: it and others like it are not recorded",
                      who, (unsigned long long)bytes, (unsigned long long)address, why);
}

/* Of other makers' memory the driver does not say it in the same words. */
static bool is_nobodys(uint64_t address)
{
    const struct ms_gpu *gpu = ms_library_driver();
    return gpu && gpu->vendor == &ms_gpu_cuda && !ms_gpu_is_managed(gpu, address);
}

bool ms_inner_fits(const char *who, uint64_t address, uint64_t bytes)
{
    struct ms_block_range range;
    struct ms_device_info info;
    if (!ms_block_range_find(address, &range) && is_nobodys(address))
        refuse(who, address, bytes, "which is no device's memory");
    else if (range.bytes && bytes > range.begin + range.bytes - address)
        refuse(who, address, bytes, "which ends behind its block");
    else if (bytes > INT64_MAX - address || (!range.bytes && ms_events_device(device_at(address), &info) &&
                                             info.total_bytes && bytes > info.total_bytes))
        refuse(who, address, bytes, "more than its device has");
    else
        return true;
    return false;
}

/* A pool is a text in the record: its heaps, one for each device, are made as its blocks come. */
uint64_t memshim_pool(const char *name)
{
    struct ms_hook_scope scope;
    uint64_t pool = 0;
    if (!name || !*name || !ms_inner_enter(&scope))
        return 0;
    pool = ms_heap_open(name, MS_DEVICE_NONE, MS_ROW_INNER);
    ms_hook_scope_leave_brief(&scope);
    return pool;
}

void memshim_inner_alloc(uint64_t pool, const void *address, uint64_t bytes)
{
    struct ms_hook_scope scope;
    if (!address || !bytes || !ms_inner_enter(&scope))
        return;
    if (ms_inner_fits("memshim_inner_alloc", (uintptr_t)address, bytes)) {
        int device = device_at((uintptr_t)address);
        uint32_t heap = ms_heap_on((uint32_t)pool, device);
        ms_inner_record(heap, (uintptr_t)address, bytes, device, MS_ROW_INNER, __builtin_frame_address(0),
                        __builtin_return_address(0));
    }
    ms_hook_scope_leave_brief(&scope);
}

void memshim_inner_free(const void *address)
{
    struct ms_hook_scope scope;
    if (!address || !ms_inner_enter(&scope))
        return;
    ms_inner_free((uintptr_t)address);
    ms_hook_scope_leave_brief(&scope);
}
