/* mapped_peers.c - which devices may reach memory that is mapped by handle.
 *
 * The vendor's peer access between contexts does not reach such memory: access is set for each mapping (CUDA
 * programming guide, virtual memory management; cuMemSetAccess). So each context that is given access to a
 * heap's context is counted by its device, and what is mapped now, and later, is opened to those devices. A
 * growth that is under way sees by the version that it has to set access again. */
#include "config.h"

#include "base/devices.h"
#include "pool/mapped/mapped.h"

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
static void mapped_peers_set(struct ms_heap *heap, struct ms_byte_range range, const CUmemAccessDesc *desc)
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
            mapped_peers_set(heap, whole, &desc);
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
