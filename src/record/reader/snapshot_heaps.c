/* snapshot_heaps.c - see snapshot_heaps.h. */
#include <string.h>

#include "base/objects/objects.h"
#include "record/live/inner.h"
#include "record/reader/snapshot_heaps.h"
#include "unwind/tree.h"

/* The file of the code that asked for memory with that stack; "" if it is not known. */
static const char *asking_library(ms_stack_id stack)
{
    uint32_t row = 0;
    const struct ms_stack_node *node = stack ? ms_stack_node_at(stack) : NULL;
    const struct ms_object *object = node ? ms_object_of(node->frame, node->generation, &row) : NULL;
    const char *slash = object ? strrchr(object->path, '/') : NULL;
    return slash ? slash + 1 : "";
}

/* The libraries that take memory of the device for themselves: cuBLAS, cuDNN, cuFFT, NCCL and their like. */
static bool is_vendors_library(const char *name)
{
    static const char *const names[] = {"libcublas", "libcudnn", "libcufft",   "libcusparse", "libcusolver",
                                        "libnccl",   "librccl",  "librocblas", "libMIOpen"};
    for (unsigned i = 0; i < MS_ARRAY_LEN(names); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

bool ms_snapshot_is_pytorchs(const struct ms_snapshot *snapshot, const struct ms_block *block)
{
    const char *name =
        block->site < snapshot->outer_sites ? asking_library(snapshot->sites[block->site].site.stack) : "";
    return strncmp(name, "libc10_", strlen("libc10_")) == 0;
}

/* The bytes that may be such an allocator's. */
static uint64_t heaps_bytes_of_device(const struct ms_snapshot *snapshot, int device)
{
    uint64_t bytes = snapshot->devices[device].account.device.live_bytes;
    for (uint32_t i = 0; i < snapshot->outer_sites; i++) {
        const struct ms_site *site = &snapshot->sites[i].site;
        if (site->device == device && ms_kind_is_device(site->kind) &&
            is_vendors_library(asking_library(site->stack)))
            bytes -= site->live_bytes < bytes ? site->live_bytes : bytes;
    }
    return bytes;
}

/* Behind the locks: what is looked at are copies, and the list of objects, which only grows. */
void ms_snapshot_heaps_bound(struct ms_snapshot *snapshot)
{
    int device = MS_DEVICE_NONE;
    uint64_t of_device = 0;
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        struct ms_heap_row *heap = &snapshot->heaps[i];
        uint64_t said = atomic_load(&heap->reserved_bytes);
        if (!said || !ms_device_is_known(heap->device))
            continue;
        if (heap->device != device) { /* all sites are gone through */
            device = heap->device;
            of_device = heaps_bytes_of_device(snapshot, device);
        }
        uint64_t most = of_device > heap->live_bytes ? of_device : heap->live_bytes;
        atomic_store(&heap->reserved_bytes, said < most ? said : most);
    }
}

void ms_snapshot_heaps(const struct ms_snapshot *snapshot, int device, uint64_t *now_p, uint64_t *most_p)
{
    *now_p = *most_p = 0;
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct ms_heap_row *heap = &snapshot->heaps[i];
        if (heap->device != device)
            continue;
        uint64_t peak = atomic_load(&heap->peak_reserved_bytes);
        *now_p += peak ? atomic_load(&heap->reserved_bytes) : heap->live_bytes;
        *most_p += peak ? peak : heap->live_bytes;
    }
    if (!ms_device_is_known(device)) /* the host's memory is nobody's account */
        return;
    const struct ms_amount *blocks = &snapshot->devices[device].account.device;
    *now_p = *now_p < blocks->live_bytes ? *now_p : blocks->live_bytes;
    *most_p = *most_p < blocks->peak_live_bytes ? *most_p : blocks->peak_live_bytes;
}
