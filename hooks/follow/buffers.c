/* buffers.c - see buffers.h.
 *
 * Runs in the program's threads, inside the frame of the call. No lock of its own, no allocation.
 *
 * The library is called with the guard open, so that what it looks up is wrapped as ever, and with the thread
 * marked as being inside a call of the driver's: what it makes there is backing of the buffer, and recorded
 * by nobody. */
#include "hooks/follow/buffers.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "vendor/context_scope.h"
#include "hooks/follow/balance.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "hooks/serve/serve.h"
#include "pool/api/pool.h"
#include "pool/external/external.h"

#define FAILED 1 /* ncclUnhandledCudaError: what the library says of everything that CUDA refused */

typedef int (*alloc_func_t)(void **, size_t);
typedef int (*free_func_t)(void *);

/* One copy of the library is served: the first that is called. Its two functions; a name more for one
 * function is the same copy. */
static _Atomic(void *) real_alloc, real_free;
static _Atomic bool is_plain; /* its buffers are the driver's ordinary allocations: served as those are */
static _Atomic uint32_t loose_references;

/* --- the library --- */

static bool is_loaded(void *real)
{
    const struct ms_gpu *gpu;
    enum ms_row row;

    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    bool found = ms_library_row_locked((uintptr_t)real, -1, &row, &gpu);
    ms_unlock(&ms_resolve_lock);
    return found;
}

static int buffers_make(uint64_t bytes, uint64_t *address_p)
{
    alloc_func_t alloc = (alloc_func_t)atomic_load_explicit(&real_alloc, memory_order_relaxed);
    int depth = ms_thread.depth, recording = ms_thread.recording, status;
    void *pointer = NULL;

    ms_thread.depth = 0;
    ms_thread.recording = 1;
    status = alloc(&pointer, bytes);
    ms_thread.recording = recording;
    ms_thread.depth = depth;
    *address_p = (uintptr_t)pointer;
    return status;
}

/* If the library was unloaded, its memory is out of reach. */
static int buffers_unmake(uint64_t address)
{
    void *real = atomic_load_explicit(&real_free, memory_order_relaxed);
    const struct ms_gpu *gpu = ms_library_driver();
    struct ms_context_scope visit;
    int status;

    if (!real || !is_loaded(real))
        return FAILED;
    if (gpu)
        ms_context_scope_begin(&visit, gpu, 0);
    status = ((free_func_t)real)((void *)(uintptr_t)address);
    if (gpu)
        ms_context_scope_end(&visit);
    return status;
}

static const struct ms_external_source source = {.make = buffers_make, .unmake = buffers_unmake};

/* The library's other function lies beside the one that is called. */
static bool is_our_copy(const struct ms_call *call)
{
    void *none = NULL, *known = atomic_load_explicit(&real_alloc, memory_order_acquire);

    if (!known) {
        void *other = ms_library_sibling((uintptr_t)call->real, MS_ROW_ncclMemFree);
        if (!other)
            return false;
        atomic_store(&real_free, other);
        if (atomic_compare_exchange_strong(&real_alloc, &none, call->real))
            return true;
        known = atomic_load(&real_alloc);
    }
    return known == call->real;
}

/* --- a request --- */

static uint64_t granted_bytes(const struct ms_gpu *gpu, int device, uint64_t bytes)
{
    static _Atomic uint64_t granules[MS_DEVICES_MAX];
    uint64_t granule = atomic_load_explicit(&granules[device], memory_order_relaxed);
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ms_device_index(device)}};
    size_t asked = 0;

    if (!granule) {
        if (!gpu->granularity ||
            gpu->granularity(&asked, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS || !asked)
            return 0;
        granule = asked;
        atomic_store_explicit(&granules[device], granule, memory_order_relaxed);
    }
    return bytes > UINT64_MAX / 2 ? 0 : (bytes + granule - 1) / granule * granule;
}

/* Before the first call of a process there may be no driver, and in this thread no context: the library makes
 * both when it is asked to free nothing, as it would have with the program's own call. */
static const struct ms_gpu *driver(uint64_t *context_p, int *device_p)
{
    const struct ms_gpu *gpu = ms_library_driver();

    *context_p = 0;
    *device_p = gpu ? ms_gpu_current(gpu, context_p) : MS_DEVICE_NONE;
    if (!*context_p) {
        ms_guard_leave();
        ((free_func_t)atomic_load(&real_free))(NULL);
        ms_guard_enter();
        gpu = ms_library_driver();
        *device_p = gpu ? ms_gpu_current(gpu, context_p) : MS_DEVICE_NONE;
    }
    return *context_p && *device_p >= 0 ? gpu : NULL;
}

static void buffers_record(struct ms_call *call, const struct ms_external_request *request,
                           const struct ms_external_block *given)
{
    const struct ms_block block = {.key = given->address,
                                   .space = MS_SPACE_ADDRESS,
                                   .bytes = given->granted,
                                   .requested = given->requested,
                                   .context = request->context,
                                   .thread = ms_thread_id(),
                                   .kind = MS_KIND_HANDLE,
                                   .device = (int16_t)given->device,
                                   .outlives_context = true,
                                   .api = call->row,
                                   .stack = ms_call_stack(call, given->granted)};

    ms_external_set_record_id(given, ms_ledger_serve(&block));
    call->served = true;
    call->bytes += given->granted;
}

/* Ordinary memory, which the program may free with the driver's own functions: this one is followed, the next
 * ones are not asked for here. */
static bool turns_out_plain(struct ms_call *call, const struct ms_external_request *request,
                            const struct ms_external_block *given)
{
    const struct ms_gpu *gpu = request->gpu;
    struct ms_external_block gone;
    unsigned legacy = 0;

    if (!gpu->pointer_attribute ||
        gpu->pointer_attribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, given->address) !=
            CUDA_SUCCESS ||
        !legacy)
        return false;
    atomic_store(&is_plain, true);
    ms_external_forget(given->address, &gone);
    call->gpu = gpu;
    call->args.kind = MS_KIND_DEVICE;
    ms_call_record(call, MS_SPACE_ADDRESS, given->address, given->requested, request->device);
    return true;
}

static int refused(struct ms_call *call, const struct ms_external_request *request, int status)
{
    const struct ms_oom_asked asked = {.kind = MS_ASKED_DEVICE,
                                       .device = request->device,
                                       .bytes = request->granted,
                                       .stream = MS_OOM_NO_STREAM};
    struct ms_oom_view view;

    ms_balance_look(request->gpu, call->row, call->frame, call->caller);
    view = ms_serve_oom_view(request->gpu, &asked);
    if (status == MS_EXTERNAL_LIMIT || view.cause != MS_OOM_UNKNOWN)
        ms_ledger_oom(call->row, request->device, request->requested, ms_call_stack(call, request->requested),
                      &view);
    return status == MS_EXTERNAL_LIMIT ? FAILED : status;
}

static void buffers_answer(struct ms_call *call, int status)
{
    call->answered = true;
    call->status = status;
}

static void buffers_give(struct ms_call *call, const struct ms_external_request *request)
{
    struct ms_external_block given;
    bool made = false;
    int status = 0;

    if (!ms_external_take(request, &given) && !(made = ms_external_make(request, &given, &status))) {
        buffers_answer(call, refused(call, request, status));
        return;
    }
    if (!made || !turns_out_plain(call, request, &given))
        buffers_record(call, request, &given);
    memcpy((void *)(uintptr_t)call->args.out, &given.address, sizeof(given.address));
    buffers_answer(call, 0);
    ms_balance_see(request->gpu, call->row, call->frame, call->caller);
}

/* The library calls itself, or somebody stands before it: the outermost call is the program's. */
void ms_buffer_alloc_begin(struct ms_call *call)
{
    struct ms_external_request request = {.source = &source, .requested = call->args.bytes};

    if (!ms_serve_is_on() || ms_thread.outermost != call || !call->args.out || !call->args.bytes ||
        atomic_load(&is_plain) || !is_our_copy(call) ||
        !(request.gpu = driver(&request.context, &request.device)))
        return;
    ms_call_describe_device(request.gpu, request.device);
    request.granted = granted_bytes(request.gpu, request.device, request.requested);
    if (request.granted && ms_serve_context(request.gpu, request.context, request.device))
        buffers_give(call, &request);
}

/* --- a free --- */

void ms_buffer_free_begin(struct ms_call *call)
{
    const struct ms_gpu *gpu = ms_library_driver();
    struct ms_external_block block;
    uint64_t context = 0;
    enum ms_pool_verdict verdict =
        ms_serve_is_on() ? ms_external_free_begin(call->args.key, &block) : MS_POOL_PASSED;

    if (verdict == MS_POOL_PASSED)
        return;
    buffers_answer(call, verdict == MS_POOL_REFUSED ? FAILED : 0);
    if (verdict == MS_POOL_REFUSED)
        return;
    if (gpu)
        ms_gpu_current(gpu, &context);
    ms_ledger_unserve(block.record_id, block.address, NULL);
    ms_external_free_end(&block, gpu, context);
}

/* --- who holds one --- */

void ms_buffer_hold_begin(struct ms_call *call)
{
    call->args.flags = call->args.out ? ms_hold_handle(&call->args) : 0;
}

void ms_buffer_hold_end(struct ms_call *call, int status)
{
    if (status == 0 && call->args.out)
        ms_hold_begun(call);
}

void ms_buffer_release_end(struct ms_call *call, int status)
{
    if (status == 0)
        ms_hold_ended(call);
}

void ms_buffer_holder_end(struct ms_call *call, int status)
{
    if (status == 0)
        ms_holder_ended(call->args.given);
}

/* Counted from the beginning, also while no buffer is there yet. */
void ms_buffer_group_begun(struct ms_call *call, int status)
{
    (void)call;
    ms_hold_group(true, status);
}

void ms_buffer_group_ended(struct ms_call *call, int status)
{
    (void)call;
    ms_hold_group(false, status);
}

/* --- what the driver's hooks tell --- */

bool ms_buffer_retained(uint64_t address)
{
    struct ms_external_block block;

    if (!ms_external_find(address, &block) || !block.live)
        return false;
    /* The library itself says when it is done with it, by deregistering. */
    if (!ms_thread.outermost || ms_rows[ms_thread.outermost->row]->api != MS_API_NCCL)
        ms_external_spend(block.address);
    return true;
}

bool ms_buffer_unmapped(uint64_t address, uint64_t bytes)
{
    struct ms_external_block block;

    if (!ms_external_find(address, &block) || !block.live || block.address != address ||
        bytes < block.granted || !ms_external_forget(address, &block))
        return false;
    ms_ledger_unserve(block.record_id, block.address, NULL);
    atomic_fetch_add(&loose_references, 1);
    return true;
}

bool ms_buffer_released(void)
{
    uint32_t loose = atomic_load(&loose_references);

    while (loose && !atomic_compare_exchange_weak(&loose_references, &loose, loose - 1))
        ;
    return loose != 0;
}

static void buffers_reset(void)
{
    atomic_store(&loose_references, 0);
}
MS_AT_FORK(MS_FORK_SERVICE, buffers_reset);
