/* segment.c - what the vendor gives and takes back, and every call of ours to it.
 *
 * No lock is held across a call, but the fence's where fence.c asks. Calls are made with the heap's context
 * current and the thread's capture mode relaxed, and leave both as they were. A status that says that the
 * context is lost stands the heap down. */
#include "base/clock.h"
#include "pool/stream/stream_arena.h"
#include "pool/stream/driver_frees.h"
#include "pool/fence/wait.h"

void ms_segment_check_status(struct ms_heap *heap, int status)
{
    switch (status) {
    case CUDA_SUCCESS:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
        return;
    default:
        if (ms_gpu_is_of_captures(status))
            return;
    }
    uint32_t serving = MS_HEAP_SERVING;
    if (atomic_compare_exchange_strong(&heap->state, &serving, MS_HEAP_DOWN)) {
        ms_heap_revoke(heap);
        atomic_store_explicit(&heap->failed_status, status, memory_order_release);
    }
}

/* --- the source of a context's heap: the vendor's own allocations --- */

static int context_take(struct ms_heap *heap, uint64_t bytes, struct ms_given *given_p)
{
    struct ms_context_scope visit;
    CUdeviceptr address = 0;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->mem_alloc(&address, bytes);
    ms_context_scope_end(&visit);
    given_p->address = address;
    return status;
}

static int context_give(struct ms_heap *heap, const struct ms_segment *segment)
{
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->mem_free(segment->address);
    ms_context_scope_end(&visit);
    return status;
}

/* How many of them, from the first on, the vendor took back: they are on their way. */
static uint32_t free_async(struct ms_heap *heap, CUstream stream, struct ms_segment *const *segments,
                           uint32_t count)
{
    uint32_t done = 0;
    uint64_t bytes = 0;
    ms_lock(&ms_streams_lock);
    while (done < count && heap->gpu->mem_free_async(segments[done]->address, stream) == CUDA_SUCCESS)
        bytes += segments[done++]->bytes;
    struct ms_stream *ours = ms_stream_ours(heap->gpu, heap->context, heap->device, stream);
    if (ours)
        ms_driver_frees_note(ours, heap->device, bytes);
    ms_unlock(&ms_streams_lock);
    return done;
}

/* The vendor's own free waits for whatever is under way when it gets there; a free in a stream of ours, in
 * which there is nothing else, does not, though somebody starts work this very moment that only the program
 * ends. Many are waited for together. */
static uint32_t context_give_aside(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count)
{
    const struct ms_gpu *gpu = heap->gpu;
    struct ms_context_scope visit;
    uint32_t done = 0;
    if (!gpu->mem_free_async || !gpu->event_record)
        return 0;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    ms_lock(&heap->fence.lock);
    CUstream stream = ms_fence_own_stream(heap, MS_OWN_RETURNS);
    ms_unlock(&heap->fence.lock);
    if (stream)
        done = free_async(heap, stream, segments, count);
    atomic_fetch_add_explicit(&heap->vendor_frees, done, memory_order_relaxed);
    ms_context_scope_end(&visit);
    return done;
}

/* True if the driver knows where the allocation begins and ends, as blocks' own ranges are answered by that:
 * looked at in the first one. */
static bool context_is_known(struct ms_heap *heap, const struct ms_segment *segment)
{
    struct ms_context_scope visit;
    CUdeviceptr base = 0;
    size_t length = 0;
    if (!heap->gpu->address_range || atomic_exchange_explicit(&heap->known, true, memory_order_relaxed))
        return true;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->address_range(&base, &length, segment->address);
    ms_context_scope_end(&visit);
    ms_segment_check_status(heap, status);
    return status == CUDA_SUCCESS && base == segment->address && length >= segment->bytes;
}

const struct ms_source ms_source_context = {.take = context_take,
                                            .give = context_give,
                                            .give_aside = context_give_aside,
                                            .is_quiet = ms_fence_over_at_once,
                                            .is_known = context_is_known};

/* The source where the vendor's free waits for all of the device (HIP), and so may one in the order of a
 * stream, of memory that was not given so (clr, hipFreeAsync). */
const struct ms_source ms_source_device = {.take = context_take,
                                           .give = ms_wait_free,
                                           .is_quiet = ms_fence_device_idle,
                                           .is_known = context_is_known};

/* --- of whatever source --- */

uint32_t ms_segment_give_aside(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count)
{
    return heap->source->give_aside ? heap->source->give_aside(heap, segments, count) : 0;
}

/* False if it cannot go now: a capture is open, or what was done to it is not over. */
static bool vendor_free(struct ms_heap *heap, const struct ms_segment *segment)
{
    int status = heap->source->give(heap, segment);
    if (status == CUDA_ERROR_NOT_READY)
        return false;
    atomic_fetch_add_explicit(&heap->vendor_frees, 1, memory_order_relaxed);
    ms_segment_check_status(heap, status);
    return true;
}

static void segment_tell(const struct ms_heap *heap, const struct ms_segment *segment, bool added)
{
    struct ms_segment_record told = {.address = segment->address,
                                     .bytes = segment->bytes,
                                     .context = heap->context,
                                     .device = (int16_t)heap->device,
                                     .tier = segment->bytes >= heap->single_min_bytes ? MS_TIER_DEDICATED
                                                                                      : MS_TIER_EXTENT};
    ms_figures_tell(&told, added);
}

bool ms_device_charge(int number, uint64_t bytes, uint64_t counted_bytes)
{
    struct ms_device *device = &ms_devices[number];
    if (!ms_quota_reserve(number, bytes - counted_bytes))
        return false;
    atomic_fetch_add_explicit(&device->reserved_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->changes, 1, memory_order_seq_cst);
    return true;
}

void ms_device_settle(int number, uint64_t charged, uint64_t given)
{
    struct ms_device *device = &ms_devices[number];
    if (given != charged) {
        atomic_fetch_sub_explicit(&device->reserved_bytes, charged - given, memory_order_relaxed);
        atomic_fetch_add_explicit(&device->changes, 1, memory_order_seq_cst);
    }
    ms_quota_settle(number, charged, given);
}

void ms_device_refund(int number, uint64_t bytes)
{
    struct ms_device *device = &ms_devices[number];
    atomic_fetch_sub_explicit(&device->reserved_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&device->changes, bytes != 0, memory_order_seq_cst);
    ms_quota_give_back(number, bytes);
}

void ms_device_ask(int number, uint64_t live, uint64_t reserved)
{
    atomic_fetch_add_explicit(&ms_devices[number].asked_live_bytes, live, memory_order_relaxed);
    atomic_fetch_add_explicit(&ms_devices[number].asked_reserved_bytes, reserved, memory_order_relaxed);
}

void ms_device_answered(int number, uint64_t reserved)
{
    atomic_fetch_sub_explicit(&ms_devices[number].asked_reserved_bytes, reserved, memory_order_relaxed);
}

void ms_device_unask(int number, uint64_t live)
{
    atomic_fetch_sub_explicit(&ms_devices[number].asked_live_bytes, live, memory_order_relaxed);
}

void ms_device_grows(int number, bool begins)
{
    atomic_fetch_add_explicit(&ms_devices[number].growing, begins ? 1 : -1, memory_order_seq_cst);
}

/* Other processes share the card: where it ends is known only when the vendor refuses, and not for long. */
void ms_segment_note_ceiling(struct ms_heap *heap, bool refused)
{
    uint64_t reserved = atomic_load_explicit(&ms_devices[heap->device].reserved_bytes, memory_order_relaxed);
    if (refused)
        atomic_store_explicit(&heap->ceiling_bytes, reserved ? reserved : 1, memory_order_relaxed);
    else if (reserved > atomic_load_explicit(&heap->ceiling_bytes, memory_order_relaxed))
        atomic_store_explicit(&heap->ceiling_bytes, 0, memory_order_relaxed);
}

/* Without waiting for the program's work: if that is not to be had, the memory stays the driver's loss. */
static void segment_refuse(struct ms_heap *heap, struct ms_segment *segment, const char *why)
{
    if (!ms_segment_give_aside(heap, &segment, 1) && ms_fence_quiet(heap))
        vendor_free(heap, segment);
    ms_pool_stand_down(heap->context, why);
}

/* The properties that the pool relies on are looked at in what it is given: pages of 2 MiB always, which the
 * page map needs; the rest in the first allocation of a context. No call of the vendor's is made for it but a
 * question. */
static bool acceptable(struct ms_heap *heap, struct ms_segment *segment)
{
    const char *why = NULL;
    if (segment->address % MS_PAGE_BYTES || segment->address >> 48)
        why = "pool: the driver does not align allocations to 2 MiB; its memory is followed, not served";
    else if (heap->source->is_known && !heap->source->is_known(heap, segment))
        why = "pool: the driver says otherwise than known where an allocation begins and ends; its memory is "
              "followed, not served";
    if (why)
        segment_refuse(heap, segment, why);
    return !why;
}

/* Heap's lock held. */
void ms_segment_link(struct ms_heap *heap, struct ms_segment *segment)
{
    segment->previous = NULL;
    segment->next = heap->extents.segments;
    if (heap->extents.segments)
        heap->extents.segments->previous = segment;
    heap->extents.segments = segment;
    heap->reserved_bytes += segment->bytes;
    if (heap->peak_reserved_bytes < heap->reserved_bytes)
        heap->peak_reserved_bytes = heap->reserved_bytes;
    ms_vacant_put(&heap->extents, segment);
}

void ms_segment_attach(struct ms_heap *heap, struct ms_segment *segment)
{
    ms_page_set(segment->address, segment->bytes, segment);
    ms_lock(&heap->lock);
    ms_segment_link(heap, segment);
    ms_unlock(&heap->lock);
}

/* Memory that lies idle in the driver's pools is counted already, and this takes `bytes` of it. */
struct idle {
    uint64_t bytes, reserved; /* by these pools, before the driver was asked */
};

/* A request counts on one unit at most, as what is idle may lie in pieces, or be another pool's. Of a host's
 * memory that is left it is no part. */
static bool segment_charge(struct ms_heap *heap, uint64_t bytes, struct idle *idle)
{
    bool may = heap->arena && !ms_quota_is_asked(heap->device, MS_QUOTA_HOST);
    uint64_t most = may ? ms_least(bytes, ms_mempool_unit(heap->arena->pool)) : 0;
    *idle = (struct idle){most ? ms_mempool_take_idle(heap->device, most) : 0, 0};
    if (idle->bytes)
        idle->reserved = ms_mempool_sums_of(heap->device).reserved;
    if (ms_device_charge(heap->device, bytes, idle->bytes))
        return true;
    if (idle->bytes)
        ms_mempool_put_idle(heap->device, idle->bytes);
    return false;
}

/* False if it was of no use, since it lay in pieces, say, and there is no room for what the driver took in
 * its place. */
static bool idle_was_used(const struct ms_heap *heap, uint64_t bytes, const struct idle *idle)
{
    if (MS_LIKELY(!idle->bytes))
        return true;
    uint64_t reserved = ms_mempool_sums_of(heap->device).reserved,
             grown = reserved > idle->reserved ? reserved - idle->reserved : 0,
             used = bytes > grown ? ms_least(bytes - grown, idle->bytes) : 0, more = idle->bytes - used;
    ms_quota_give_back(heap->device, more); /* it is counted, and is to be asked for */
    if (!more || ms_quota_reserve(heap->device, more))
        return true;
    ms_quota_hold(heap->device, more);
    return false;
}

/* With the heap's lock held: nobody else takes it first. */
static struct ms_segment *new_segment(struct ms_heap *heap, uint64_t bytes, uint64_t asked, int *status_p)
{
    struct ms_segment *segment = ms_table_segment();
    struct idle idle;
    bool charged = segment && segment_charge(heap, bytes, &idle);
    ms_device_answered(heap->device, asked);
    *status_p = CUDA_ERROR_OUT_OF_MEMORY;
    if (!charged) {
        if (segment)
            ms_table_drop_segment(segment);
        return NULL;
    }
    struct ms_given given = {0};
    atomic_fetch_add_explicit(&heap->vendor_allocs, 1, memory_order_relaxed);
    uint64_t begin_ns = ms_clock_ns();
    *status_p = heap->source->take(heap, bytes, &given);
    ms_heap_took(heap, begin_ns);
    segment->base = given.base;
    segment->base_bytes = given.base_bytes;
    ms_segment_place(segment, heap, given.address, bytes);
    ms_segment_check_status(heap, *status_p);
    if (*status_p == CUDA_SUCCESS && !acceptable(heap, segment))
        *status_p = CUDA_ERROR_NOT_SUPPORTED;
    atomic_store_explicit(&segment->use, MS_SEGMENT_NONE, memory_order_release);
    if (*status_p == CUDA_SUCCESS &&
        (!idle_was_used(heap, bytes, &idle) || !ms_page_set(segment->address, bytes, segment))) {
        vendor_free(heap, segment);
        *status_p = CUDA_ERROR_OUT_OF_MEMORY;
    }
    ms_device_settle(heap->device, bytes, *status_p == CUDA_SUCCESS ? bytes : 0);
    if (*status_p != CUDA_SUCCESS) {
        ms_segment_note_ceiling(heap, *status_p == CUDA_ERROR_OUT_OF_MEMORY);
        ms_table_drop_segment(segment);
        return NULL;
    }
    ms_segment_note_ceiling(heap, false);
    segment_tell(heap, segment, true);
    ms_lock(&heap->lock);
    ms_segment_link(heap, segment);
    return segment;
}

struct ms_segment *ms_segment_new(struct ms_heap *heap, uint64_t bytes, uint64_t asked, int *status_p)
{
    ms_device_grows(heap->device, true);
    struct ms_segment *segment = new_segment(heap, bytes, asked, status_p);
    ms_device_grows(heap->device, false);
    return segment;
}

void ms_segment_unlink(struct ms_heap *heap, struct ms_segment *segment)
{
    if (segment->previous)
        segment->previous->next = segment->next;
    else
        heap->extents.segments = segment->next;
    if (segment->next)
        segment->next->previous = segment->previous;
    heap->reserved_bytes -= segment->bytes;
    ms_page_clear(segment->address, segment->bytes, segment);
}

static uint64_t segment_returned(const struct ms_heap *heap, struct ms_segment *segment)
{
    uint64_t bytes = segment->bytes;
    ms_device_refund(heap->device, bytes);
    ms_table_drop_segment(segment);
    return bytes;
}

/* How many of them went so: they are counted as on their way, and then no more as the pool's. */
static uint32_t return_aside(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count,
                             uint64_t *given_p)
{
    atomic_fetch_add_explicit(&heap->returning, 1, memory_order_relaxed);
    uint32_t gone = ms_segment_give_aside(heap, segments, count);
    for (uint32_t i = 0; i < gone; i++)
        *given_p += segment_returned(heap, segments[i]);
    if (gone)
        ms_driver_frees_await(heap->device, false, ms_clock_ns() + MS_RETURN_NS);
    atomic_fetch_sub_explicit(&heap->returning, 1, memory_order_release);
    return gone;
}

uint64_t ms_segment_return(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count,
                           bool quiet)
{
    uint64_t given = 0;
    for (uint32_t i = 0; i < count; i++) /* before another thread can be given the same addresses */
        segment_tell(heap, segments[i], false);
    for (uint32_t i = count ? return_aside(heap, segments, count, &given) : 0; i < count; i++) {
        if (quiet && vendor_free(heap, segments[i])) {
            given += segment_returned(heap, segments[i]);
        } else {
            segment_tell(heap, segments[i], true);
            ms_segment_attach(heap, segments[i]);
        }
    }
    return given;
}

static void forget_runs(struct ms_segment *segment)
{
    for (struct ms_extent *extent = segment->first, *after; extent; extent = after) {
        after = extent->after;
        ms_extent_forget(extent);
    }
    void *units = (void *)atomic_load_explicit(&segment->units, memory_order_relaxed);
    atomic_store_explicit(&segment->units, NULL, memory_order_release);
    ms_table_drop_array(MS_ARRAY_UNITS, units, segment->unit_order);
}

struct ms_segment *ms_segment_detach_all(struct ms_heap *heap)
{
    struct ms_segment *all = heap->extents.segments;
    for (struct ms_segment *segment = all; segment; segment = segment->next) {
        ms_page_clear(segment->address, segment->bytes, segment);
        ms_pins_forget(segment->address, segment->bytes);
        forget_runs(segment);
    }
    heap->extents.segments = NULL;
    return all;
}

void ms_segment_retire(const struct ms_heap *heap, struct ms_segment *all)
{
    while (all) {
        struct ms_segment *segment = all;
        all = segment->next;
        segment_tell(heap, segment, false);
        ms_device_refund(heap->device, segment->bytes);
        ms_table_drop_segment(segment);
    }
}
