/* mapped_calls.c - the vendor's calls for memory that is mapped by handle.
 *
 * No lock is held across them: what they work on is held by the caller (mapped.h). Each is made with the
 * heap's context current and the thread's capture mode relaxed. Everything is mapped and unmapped a handle at
 * a time (`struct ms_handles`): the vendor's unmap takes a mapping as a whole only. Access is set once for
 * all that was mapped, for the device itself and for those that were given access to the context's memory.
 *
 * The vendor's peer access between contexts does not reach such memory: access is set for each mapping (CUDA
 * programming guide, virtual memory management; cuMemSetAccess). So each context that is given access to a
 * heap's context is counted by its device, and what is mapped now, and later, is opened to those devices. A
 * growth that is under way sees by the version that it has to set access again. */
#include "base/clock.h"
#include "base/devices.h"
#include "pool/mapped/mapped.h"

#define RANGE_MOST_BYTES ((uint64_t)1 << 40)
#define ASK_FIRST_BYTES                                                                                      \
    (32 * MS_MIB) /* before so much is made, the vendor is asked whether there is as much */

static CUmemAllocationProp properties(const struct ms_heap *heap, bool rdma)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ms_device_index(heap->device)},
        .allocFlags = {.gpuDirectRDMACapable = rdma}};
}

static bool has_calls(const struct ms_gpu *gpu)
{
    return gpu->address_reserve && gpu->address_free && gpu->handle_create && gpu->handle_release &&
           gpu->handle_map && gpu->handle_unmap && gpu->set_access && gpu->granularity;
}

/* "All sizes and addresses are multiples of the minimum granularity" (CUDA driver API, cuMemCreate and
 * cuMemMap): of 2 MiB where that is one, so that pages are those of the page map. */
static uint64_t page_bytes_of(const struct ms_heap *heap, bool rdma)
{
    CUmemAllocationProp prop = properties(heap, rdma);
    size_t least = 0;
    if (heap->gpu->granularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || !least ||
        (least & (least - 1)))
        return 0;
    return least > MS_PAGE_BYTES ? least : MS_PAGE_BYTES;
}

bool ms_map_open(struct ms_heap *heap, struct ms_backing *made)
{
    const struct ms_gpu *gpu = heap->gpu;
    struct ms_context_scope visit;
    CUdeviceptr address = 0;
    int can = 0;
    *made = (struct ms_backing){0};
    if (!has_calls(gpu))
        return false;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    made->rdma = gpu->device_attribute &&
                 gpu->device_attribute(&can, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                       ms_device_index(heap->device)) == CUDA_SUCCESS &&
                 can;
    made->page_bytes = page_bytes_of(heap, made->rdma);
    /* Twice the device's memory before the border and as much behind it: addresses cost nothing, and a large
     * block always finds some without a neighbour. */
    uint64_t most = heap->total_bytes ? 4 * heap->total_bytes : RANGE_MOST_BYTES, step = 2 * made->page_bytes;
    made->bytes =
        made->page_bytes ? (most < RANGE_MOST_BYTES ? ms_round_up(most, step) : RANGE_MOST_BYTES) : 0;
    while (made->bytes > step &&
           gpu->address_reserve(&address, made->bytes, made->page_bytes, 0, 0) != CUDA_SUCCESS) {
        made->bytes = ms_round_up(made->bytes / 2, step);
        address = 0;
    }
    ms_context_scope_end(&visit);
    made->address = address;
    made->border = made->top = address + made->bytes / 2;
    made->top = address;
    made->high = made->border;
    return address != 0;
}

void ms_map_close(struct ms_heap *heap, const struct ms_backing *b)
{
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, heap->gpu, 0);
    heap->gpu->address_free(b->address, b->bytes);
    ms_context_scope_end(&visit);
}

bool ms_map_access(const struct ms_heap *heap, uint64_t address, uint64_t bytes, int *status_p)
{
    CUmemAccessDesc descs[MS_DEVICES_EACH];
    enum ms_maker maker = ms_device_maker(heap->device);
    int first = ms_device_first(maker);
    uint32_t count = 0;
    for (int device = first; device < first + ms_device_count(maker); device++) {
        if (device != heap->device && !__atomic_load_n(&heap->backing->peers[device], __ATOMIC_RELAXED))
            continue;
        descs[count++] = (CUmemAccessDesc){
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ms_device_index(device)},
            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    *status_p = (int)heap->gpu->set_access(address, bytes, descs, count);
    return *status_p == CUDA_SUCCESS;
}

static bool release(struct ms_heap *heap, struct ms_backing_page *page)
{
    bool done = heap->gpu->handle_release(page->handle) == CUDA_SUCCESS;
    page->handle = 0;
    atomic_fetch_add_explicit(&heap->vendor_frees, 1, memory_order_relaxed);
    return done;
}

/* --- growing --- */

/* A request that cannot be met is not to take all there is first. */
static bool mapped_calls_is_there(struct ms_heap *heap, uint64_t bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (bytes < ASK_FIRST_BYTES || !heap->gpu->mem_get_info ||
        heap->gpu->mem_get_info(&free_bytes, &total_bytes) != CUDA_SUCCESS)
        return true;
    return bytes <= free_bytes;
}

static struct ms_backing_page *region_page(const struct ms_heap *heap, const struct ms_growth *growth,
                                           uint64_t i)
{
    return ms_backing_page(heap->backing, ms_extent_address(growth->region)) + i;
}

/* The handles that are to lie in pages [from, to) of the region. */
static struct ms_handles region_handles(const struct ms_heap *heap, const struct ms_growth *growth,
                                        uint64_t from, uint64_t to)
{
    const struct ms_backing *b = heap->backing;
    uint64_t address = ms_extent_address(growth->region);
    return (struct ms_handles){
        .b = b, .at = address + from * b->page_bytes, .end = address + to * b->page_bytes};
}

static uint64_t region_count(const struct ms_heap *heap, const struct ms_growth *growth)
{
    return ms_extent_bytes(growth->region) / heap->backing->page_bytes;
}

/* The handle is the region's from its page `i` on. */
static uint64_t mapped_calls_put(const struct ms_heap *heap, const struct ms_growth *growth, uint64_t i,
                                 CUmemGenericAllocationHandle handle, uint32_t pages)
{
    struct ms_backing_page *first = region_page(heap, growth, i);
    for (uint32_t k = 0; k < pages; k++) {
        first[k].handle = 0;
        first[k].back = k;
    }
    first->handle = handle;
    first->pages = pages;
    return pages;
}

static void mapped_calls_unmake(struct ms_heap *heap, struct ms_growth *growth)
{
    struct ms_handles h = region_handles(heap, growth, growth->moved, growth->moved + growth->made);
    while (ms_handles_next(&h))
        release(heap, h.page);
    ms_device_refund(heap->device, growth->made * heap->backing->page_bytes);
    growth->made = 0;
}

/* As few as may be; where the driver has none as long as that, shorter ones, down to a page. */
static int make_handles(struct ms_heap *heap, struct ms_growth *growth, uint64_t count)
{
    const struct ms_backing *b = heap->backing;
    const CUmemAllocationProp prop = properties(heap, b->rdma);
    uint64_t most = ms_least(count, growth->handle_pages);
    while (growth->made < count) {
        CUmemGenericAllocationHandle handle = 0;
        uint64_t left = count - growth->made, pages = ms_least(most, left);
        int status = (int)heap->gpu->handle_create(&handle, pages * b->page_bytes, &prop, 0);
        atomic_fetch_add_explicit(&heap->vendor_allocs, 1, memory_order_relaxed);
        if (status == CUDA_SUCCESS)
            growth->made +=
                mapped_calls_put(heap, growth, growth->moved + growth->made, handle, (uint32_t)pages);
        else if (status == CUDA_ERROR_OUT_OF_MEMORY && pages > 1)
            most = pages / 2;
        else
            return status;
    }
    return CUDA_SUCCESS;
}

/* The pages that no source has. */
static int mapped_calls_make(struct ms_heap *heap, struct ms_growth *growth, uint64_t count)
{
    const struct ms_backing *b = heap->backing;
    int status = CUDA_ERROR_OUT_OF_MEMORY;
    if (!count)
        return CUDA_SUCCESS;
    if (!ms_device_charge(heap->device, count * b->page_bytes, 0))
        return status;
    if (mapped_calls_is_there(heap, count * b->page_bytes))
        status = make_handles(heap, growth, count);
    ms_device_settle(heap->device, count * b->page_bytes, growth->made * b->page_bytes);
    if (status != CUDA_SUCCESS)
        mapped_calls_unmake(heap, growth);
    ms_segment_note_ceiling(heap, status == CUDA_ERROR_OUT_OF_MEMORY);
    return status;
}

/* The sources' handles, unmapped; in the order of `settle_source` (mapped_pages.c). */
static int move_from(struct ms_heap *heap, struct ms_growth *growth, const struct ms_extent *source)
{
    const struct ms_backing *b = heap->backing;
    uint64_t begin = ms_extent_address(source);
    struct ms_handles h = {.b = b, .at = begin, .end = begin + ms_extent_bytes(source)};
    while (ms_handles_next(&h)) {
        int status = (int)heap->gpu->handle_unmap(h.address, h.bytes);
        if (status != CUDA_SUCCESS)
            return status;
        if (growth->region) {
            mapped_calls_put(heap, growth, growth->emptied, h.page->handle, h.page->pages);
            h.page->handle = 0;
        } else {
            release(heap, h.page);
        }
        growth->emptied += h.bytes / b->page_bytes;
    }
    return CUDA_SUCCESS;
}

static int mapped_calls_move(struct ms_heap *heap, struct ms_growth *growth)
{
    int status = CUDA_SUCCESS;
    for (uint32_t i = 0; i < growth->source_count && status == CUDA_SUCCESS; i++)
        status = move_from(heap, growth, growth->sources[i]);
    return status;
}

static int map(struct ms_heap *heap, struct ms_growth *growth, uint64_t *mapped_p)
{
    struct ms_handles h = region_handles(heap, growth, 0, region_count(heap, growth));
    int status = CUDA_SUCCESS;
    for (*mapped_p = 0; ms_handles_next(&h); *mapped_p += h.bytes / h.b->page_bytes) {
        status = (int)heap->gpu->handle_map(h.address, h.bytes, 0, h.page->handle, 0);
        if (status != CUDA_SUCCESS)
            return status;
    }
    ms_map_access(heap, ms_extent_address(growth->region), ms_extent_bytes(growth->region), &status);
    return status;
}

/* Handles that another life has left in these pages are nobody's. */
static void clear(const struct ms_heap *heap, const struct ms_growth *growth)
{
    for (uint64_t i = 0; i < region_count(heap, growth); i++)
        region_page(heap, growth, i)->handle = 0;
}

static void mark_stuck(const struct ms_handles *h)
{
    for (uint64_t at = h->address; at < h->address + h->bytes; at += h->b->page_bytes)
        ms_backing_page(h->b, at)->mapped = true;
}

/* Everything that was made or moved goes back. What cannot be unmapped stays where it is, held for ever. */
static void undo(struct ms_heap *heap, struct ms_growth *growth, uint64_t mapped)
{
    const struct ms_backing *b = heap->backing;
    uint64_t end = ms_extent_address(growth->region) + mapped * b->page_bytes;
    struct ms_handles h = region_handles(heap, growth, 0, region_count(heap, growth));
    bool stuck = false;
    while (ms_handles_next(&h)) {
        if (h.address < end && heap->gpu->handle_unmap(h.address, h.bytes) != CUDA_SUCCESS) {
            mark_stuck(&h);
            stuck = true;
            continue;
        }
        release(heap, h.page);
        growth->lost += h.bytes / b->page_bytes;
    }
    ms_device_refund(heap->device, growth->lost * b->page_bytes);
    if (stuck)
        growth->region = NULL;
}

bool ms_map_fill(struct ms_heap *heap, struct ms_growth *growth, int *status_p)
{
    struct ms_context_scope visit;
    uint64_t mapped = 0, begin_ns = ms_clock_ns();
    clear(heap, growth);
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    *status_p = mapped_calls_make(heap, growth, region_count(heap, growth) - growth->moved);
    if (*status_p == CUDA_SUCCESS) {
        *status_p = mapped_calls_move(heap, growth);
        if (*status_p == CUDA_SUCCESS)
            *status_p = map(heap, growth, &mapped);
        if (*status_p != CUDA_SUCCESS)
            undo(heap, growth, mapped);
        if (*status_p == CUDA_ERROR_OUT_OF_MEMORY)
            *status_p = CUDA_ERROR_NOT_SUPPORTED; /* there was memory; there is none for mapping it */
    }
    ms_context_scope_end(&visit);
    ms_heap_took(heap, begin_ns);
    ms_segment_check_status(heap, *status_p);
    return *status_p == CUDA_SUCCESS;
}

/* --- giving back --- */

void ms_map_empty(struct ms_heap *heap, struct ms_growth *growth)
{
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    int status = mapped_calls_move(heap, growth);
    ms_context_scope_end(&visit);
    growth->lost = growth->emptied;
    ms_device_refund(heap->device, growth->lost * heap->backing->page_bytes);
    ms_segment_check_status(heap, status);
}

static void bury_pages(struct ms_heap *heap, uint64_t from, uint64_t to)
{
    struct ms_handles h = {.b = heap->backing, .at = from, .end = to};
    while (ms_handles_next(&h)) {
        if (h.page->mapped) {
            heap->gpu->handle_unmap(h.address, h.bytes);
            release(heap, h.page);
        }
    }
    for (uint64_t at = from; at < to; at += h.b->page_bytes)
        *ms_backing_page(h.b, at) = (struct ms_backing_page){0};
}

/* Handles belong to the process and not to a context (CUDA programming guide, virtual memory management). */
void ms_map_retire(struct ms_heap *heap)
{
    const struct ms_backing *b = heap->backing;
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, heap->gpu, 0); /* the context is gone */
    bury_pages(heap, b->address, b->top);
    bury_pages(heap, b->border, b->high);
    ms_context_scope_end(&visit);
    ms_device_refund(heap->device, b->mapped_bytes);
    ms_map_close(heap, b);
}

/* --- other devices --- */

/* The next stretch of mapped pages at or after `from`. Heap's lock held. */
static bool next_range(const struct ms_backing *b, uint64_t from, struct ms_byte_range *range)
{
    const struct ms_extent *extent = b->segment ? b->segment->first : NULL;
    *range = (struct ms_byte_range){0, 0};
    for (; extent; extent = extent->after) {
        bool there = extent->vacuum == MS_VACUUM_NONE && ms_extent_address(extent) >= from;
        if (!there && range->bytes)
            break;
        if (there && !range->bytes)
            range->address = ms_extent_address(extent);
        range->bytes += there ? ms_extent_bytes(extent) : 0;
    }
    return range->bytes != 0;
}

/* The handles that reach into it: beside a growth a stretch ends within one. Heap's lock held. */
static struct ms_byte_range whole_handles(const struct ms_backing *b, struct ms_byte_range range)
{
    uint64_t begin = ms_handle_begin(b, range.address);
    return (struct ms_byte_range){begin, ms_handle_end(b, range.address + range.bytes - 1) - begin};
}

/* The handle that is mapped at `at`, or a page in which there is none. Heap's lock not held. */
static bool handle_at(struct ms_heap *heap, uint64_t at, uint64_t *end_p)
{
    const struct ms_backing *b = heap->backing;
    ms_lock(&heap->lock);
    bool mapped = b->segment && ms_backing_page(b, at)->mapped;
    *end_p = mapped ? ms_handle_end(b, at) : at + b->page_bytes;
    ms_unlock(&heap->lock);
    return mapped;
}

/* Pages that are unmapped meanwhile are another thread's affair: then access is set handle by handle, and a
 * failure at a handle that has gone does not count. */
static void set_access_of(struct ms_heap *heap, struct ms_byte_range range, const CUmemAccessDesc *desc)
{
    if (heap->gpu->set_access(range.address, range.bytes, desc, 1) == CUDA_SUCCESS)
        return;
    bool failed = false;
    uint64_t end, again;
    for (uint64_t at = range.address; at < range.address + range.bytes; at = end) {
        if (handle_at(heap, at, &end) && heap->gpu->set_access(at, end - at, desc, 1) != CUDA_SUCCESS)
            failed |= handle_at(heap, at, &again) && again == end;
    }
    if (failed)
        ms_pool_note("pool: the driver did not let a peer device reach memory that is mapped by handle");
}

static void set_all(struct ms_heap *heap, int device, bool allowed)
{
    const CUmemAccessDesc desc = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ms_device_index(device)},
        .flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE};
    struct ms_context_scope visit;
    struct ms_byte_range range = {0, 0}, whole;
    bool more = true;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    while (more) {
        ms_lock(&heap->lock);
        more = next_range(heap->backing, range.address + range.bytes, &range);
        if (more)
            whole = whole_handles(heap->backing, range);
        ms_unlock(&heap->lock);
        if (more)
            set_access_of(heap, whole, &desc);
    }
    ms_context_scope_end(&visit);
}

void ms_pool_peer(uint64_t context, int device, bool allowed)
{
    struct ms_heap *heap = ms_policy && ms_policy->vmm ? ms_heap_known(context) : NULL;
    if (!heap || device < 0 || device >= MS_DEVICES_MAX)
        return;
    ms_lock(&heap->lock);
    struct ms_backing *b = ms_backing_record(heap);
    uint32_t before = b ? b->peers[device] : 0;
    uint32_t after = allowed ? before + (before < UINT8_MAX) : before - (before > 0);
    if (b) /* ms_map_access reads it without the lock */
        __atomic_store_n(&b->peers[device], (uint8_t)after, __ATOMIC_RELAXED);
    bool changed = b && !b->peers[device] != !before;
    bool mapped = changed && b->segment && device != heap->device;
    if (changed)
        b->peers_version++;
    ms_unlock(&heap->lock);
    if (mapped)
        set_all(heap, device, allowed);
}
