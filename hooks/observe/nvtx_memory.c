/* nvtx_memory.c - memshim as what NVTX's extension for memory calls: an allocator registers heaps, and in
 * them the regions that it gives on, which are inner blocks.
 *
 * Floor 3. Each object that has the extension compiled in calls InitializeInjectionNvtxExtension once, with
 * the places of its functions (NVTX 3.2: nvtxDetail/nvtxExtInit.h). Those that are not filled in do nothing:
 * the ones about permissions, and all of another extension. As the extension says of memory by address
 * (nvToolsExtMem.h), the handle of a heap and of a region is where it begins, so a handle that a program made
 * up finds nothing. Structures have their size in them: of a longer one, as a later version may have it, the
 * first members are read.
 *
 * Any thread. Locks: that of the heaps, held for a look at them. Regions of the host's memory are not
 * recorded, nor those that begin with a block that another allocator has reported. */
#include <string.h>

#include "base/at_fork.h"
#include "base/lock.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "hooks/observe/inner.h"
#include "hooks/observe/nvtx.h"
#include "hooks/observe/phases.h"
#include "record/live/inner.h"
#include "vendor/abi/nvtx.h"

MS_EXPORT int InitializeInjectionNvtxExtension(struct ms_nvtx_ext_module *module);

enum { HEAPS_MAX = MS_TABLE_HEAPS_ROWS };
_Static_assert(sizeof(struct ms_nvtx_ext_module) == 40 && sizeof(struct ms_nvtx_heap) == 48 &&
                   sizeof(struct ms_nvtx_regions) == 48 && sizeof(struct ms_nvtx_resizes) == 32 &&
                   sizeof(struct ms_nvtx_ends) == 32 && sizeof(struct ms_nvtx_region_name) == 32 &&
                   sizeof(struct ms_nvtx_names) == 40,
               "as the vendor's");

/* The heaps that are registered. A child of fork has none: the driver refuses it what its parent's memory is.
 */
static struct heap {
    uint64_t address; /* 0: none */
    uint64_t bytes;
    uint32_t row; /* the heap of the record; 0 without room */
    char name[MS_HEAP_NAME_BYTES];
} heaps[HEAPS_MAX];
static unsigned heaps_used; /* places that ever had one */
static struct ms_lock heaps_lock = MS_LOCK_INIT(MS_RANK_TIMELINE);

/* The record's heap of what is in no heap, by device, that of none first; 0 until there is one. */
static _Atomic uint32_t process_heaps[MS_DEVICES_MAX + 1];

/* True of a structure of this version or a later one that is compatible. */
#define FITS(structure)                                                                                      \
    ((structure) && (structure)->version >> 8 == MS_NVTX_EXT_MEMORY_VERSION >> 8 &&                          \
     (structure)->version >= MS_NVTX_EXT_MEMORY_VERSION && (structure)->size >= sizeof *(structure))

/* MS_DEVICE_NONE for memory that is no device's. */
static int nvtx_device_of(uint64_t address)
{
    const struct ms_gpu *gpu = ms_library_driver();
    return gpu && !ms_gpu_is_host(gpu, address) ? ms_gpu_device_of(gpu, address, MS_DEVICE_NONE)
                                                : MS_DEVICE_NONE;
}

/* Under the lock: its place, or that of a free one; HEAPS_MAX without room. */
static unsigned heap_place(uint64_t address)
{
    unsigned place = 0, vacant = HEAPS_MAX;
    for (; place < heaps_used; place++) {
        if (heaps[place].address == address)
            return place;
        if (!heaps[place].address && vacant == HEAPS_MAX)
            vacant = place;
    }
    return vacant < HEAPS_MAX ? vacant : place;
}

/* A copy of the heap; its place, + 1, or 0 if none is registered there. */
static unsigned heap_at(const void *handle, struct heap *heap_p)
{
    unsigned found = 0;
    ms_lock(&heaps_lock);
    unsigned place = heap_place((uintptr_t)handle);
    if (handle && place < heaps_used && heaps[place].address) {
        *heap_p = heaps[place];
        found = place + 1;
    }
    ms_unlock(&heaps_lock);
    return found;
}

/* Pieces of heaps of one name are told apart by the place of theirs. */
static uint64_t nvtx_heap_key(unsigned number, uint32_t row)
{
    return (uint64_t)number << 32 | row;
}

/* The heap is the program's no longer, and its regions neither. Under the lock of nobody. */
static void heap_end(unsigned number, const struct heap *heap)
{
    ms_inner_free_all(nvtx_heap_key(number, heap->row));
    ms_heap_reserved_more(heap->row, -(int64_t)heap->bytes);
}

static void heap_begin(const struct heap *heap)
{
    struct heap before = {0};
    ms_lock(&heaps_lock);
    unsigned place = heap_place(heap->address);
    if (place < HEAPS_MAX) {
        before = heaps[place];
        heaps[place] = *heap;
        heaps_used += place == heaps_used;
    }
    ms_unlock(&heaps_lock);
    if (before.address) /* its end was not told */
        heap_end(place + 1, &before);
    if (place < HEAPS_MAX)
        ms_heap_reserved_more(heap->row, (int64_t)heap->bytes);
}

static const void *heap_register(const void *domain, const struct ms_nvtx_heap *told)
{
    struct ms_hook_scope scope;
    (void)domain;
    if (!FITS(told) || told->type != MS_NVTX_MEMORY_ADDRESSES || !told->range ||
        told->range_bytes < sizeof *told->range || !told->range->address || !ms_inner_enter(&scope))
        return NULL;
    struct heap heap = {.address = (uintptr_t)told->range->address, .bytes = told->range->bytes};
    const char *name = ms_phase_text_at(ms_nvtx_text(told->text_type, told->text, ms_phase_text_other));
    int device = nvtx_device_of(heap.address);
    strncpy(heap.name, *name ? name : "NVTX heap", sizeof heap.name - 1);
    if (device != MS_DEVICE_NONE) {
        heap.row = ms_heap_open(heap.name, device, MS_ROW_INNER_NVTX);
        heap_begin(&heap);
    }
    ms_hook_scope_leave_brief(&scope);
    return told->range->address;
}

static void heap_unregister(const void *domain, const void *handle)
{
    struct ms_hook_scope scope;
    struct heap heap = {0};
    (void)domain;
    if (!ms_inner_enter(&scope))
        return;
    ms_lock(&heaps_lock);
    unsigned place = heap_place((uintptr_t)handle);
    if (handle && place < heaps_used) {
        heap = heaps[place];
        heaps[place].address = 0;
    }
    ms_unlock(&heaps_lock);
    if (heap.address)
        heap_end(place + 1, &heap);
    ms_hook_scope_leave_brief(&scope);
}

static void process_heaps_free_all(void)
{
    for (unsigned i = 0; i < MS_ARRAY_LEN(process_heaps); i++) {
        uint32_t row = atomic_load(&process_heaps[i]);
        if (row)
            ms_inner_free_all(nvtx_heap_key(0, row));
    }
}

static void heap_empty(const void *domain, const void *handle)
{
    struct ms_hook_scope scope;
    struct heap heap;
    (void)domain;
    if (!ms_inner_enter(&scope))
        return;
    unsigned number = heap_at(handle, &heap);
    if (number)
        ms_inner_free_all(nvtx_heap_key(number, heap.row));
    else if (handle == MS_NVTX_HEAP_PROCESS)
        process_heaps_free_all();
    ms_hook_scope_leave_brief(&scope);
}

/* --- regions --- */

/* True unless a block of another allocator's begins there. */
static bool is_vacant_or_ours(uint64_t address)
{
    int api = ms_inner_api(address);
    return api < 0 || api == MS_ROW_INNER_NVTX;
}

static uint32_t process_heap(int device)
{
    _Atomic uint32_t *known = &process_heaps[device + 1];
    uint32_t row = atomic_load(known);
    if (!row) {
        row = ms_heap_open("NVTX", device, MS_ROW_INNER_NVTX);
        atomic_store(known, row);
    }
    return row;
}

static uint64_t heap_of_region(const void *handle, int device)
{
    struct heap heap;
    unsigned number = heap_at(handle, &heap);
    return number ? nvtx_heap_key(number, heap.row) : nvtx_heap_key(0, process_heap(device));
}

static const void *element(const void *elements, size_t stride, size_t i)
{
    return (const char *)elements + i * stride;
}

/* True if they are ranges of addresses that can be read; the scope is entered then. */
static bool ranges_enter(uint32_t type, const void *ranges, size_t stride, struct ms_hook_scope *scope)
{
    return type == MS_NVTX_MEMORY_ADDRESSES && ranges && stride >= sizeof(struct ms_nvtx_range) &&
           ms_inner_enter(scope);
}

static void regions_register(const void *domain, const struct ms_nvtx_regions *told)
{
    struct ms_hook_scope scope;
    (void)domain;
    if (!FITS(told) || !ranges_enter(told->type, told->ranges, told->stride, &scope))
        return;
    for (size_t i = 0; i < told->count; i++) {
        const struct ms_nvtx_range *range = element(told->ranges, told->stride, i);
        uint64_t address = (uintptr_t)range->address;
        int device = address && range->bytes ? nvtx_device_of(address) : MS_DEVICE_NONE;
        if (told->handles)
            told->handles[i] = range->address;
        if (device != MS_DEVICE_NONE && is_vacant_or_ours(address) &&
            ms_inner_fits("nvtxMemRegionsRegister", address, range->bytes))
            ms_inner_record(heap_of_region(told->heap, device), address, range->bytes, device,
                            MS_ROW_INNER_NVTX, __builtin_frame_address(0), __builtin_return_address(0));
    }
    ms_hook_scope_leave_brief(&scope);
}

static void regions_resize(const void *domain, const struct ms_nvtx_resizes *told)
{
    struct ms_hook_scope scope;
    (void)domain;
    if (!FITS(told) || !ranges_enter(told->type, told->ranges, told->stride, &scope))
        return;
    for (size_t i = 0; i < told->count; i++) {
        const struct ms_nvtx_range *range = element(told->ranges, told->stride, i);
        if (ms_inner_api((uintptr_t)range->address) == MS_ROW_INNER_NVTX &&
            ms_inner_fits("nvtxMemRegionsResize", (uintptr_t)range->address, range->bytes))
            ms_inner_resize((uintptr_t)range->address, range->bytes);
    }
    ms_hook_scope_leave_brief(&scope);
}

static bool is_by_address(uint32_t by)
{
    return by == MS_NVTX_REGION_BY_POINTER || by == MS_NVTX_REGION_BY_HANDLE;
}

static void regions_unregister(const void *domain, const struct ms_nvtx_ends *told)
{
    struct ms_hook_scope scope;
    (void)domain;
    if (!FITS(told) || !is_by_address(told->by) || !told->regions || told->stride < sizeof(void *) ||
        !ms_inner_enter(&scope))
        return;
    for (size_t i = 0; i < told->count; i++) {
        uint64_t address = (uintptr_t) * (const void *const *)element(told->regions, told->stride, i);
        if (ms_inner_api(address) == MS_ROW_INNER_NVTX)
            ms_inner_free(address);
    }
    ms_hook_scope_leave_brief(&scope);
}

static void regions_name(const void *domain, const struct ms_nvtx_names *told)
{
    struct ms_hook_scope scope;
    (void)domain;
    if (!FITS(told) || !told->names || told->stride < sizeof(struct ms_nvtx_region_name) ||
        !ms_inner_enter(&scope))
        return;
    for (size_t i = 0; i < told->count; i++) {
        const struct ms_nvtx_region_name *name = element(told->names, told->stride, i);
        uint64_t address = (uintptr_t)name->region;
        if (is_by_address(name->by) && ms_inner_api(address) == MS_ROW_INNER_NVTX)
            ms_inner_name(address, ms_nvtx_text(name->text_type, name->text, ms_phase_text_other));
    }
    ms_hook_scope_leave_brief(&scope);
}

/* --- how the extension finds them --- */

static const struct {
    enum ms_nvtx_memory place;
    ms_nvtx_function_t function;
} nvtx_memory_rows[] = {
    {MS_NVTX_HEAP_REGISTER, (ms_nvtx_function_t)heap_register},
    {MS_NVTX_HEAP_UNREGISTER, (ms_nvtx_function_t)heap_unregister},
    {MS_NVTX_HEAP_RESET, (ms_nvtx_function_t)heap_empty},
    {MS_NVTX_REGIONS_REGISTER, (ms_nvtx_function_t)regions_register},
    {MS_NVTX_REGIONS_RESIZE, (ms_nvtx_function_t)regions_resize},
    {MS_NVTX_REGIONS_UNREGISTER, (ms_nvtx_function_t)regions_unregister},
    {MS_NVTX_REGIONS_NAME, (ms_nvtx_function_t)regions_name},
};

static void nvtx_memory_fill(const struct ms_nvtx_ext_segment *segment)
{
    for (unsigned i = 0; i < MS_ARRAY_LEN(nvtx_memory_rows); i++) {
        if (nvtx_memory_rows[i].place < segment->count)
            segment->places[nvtx_memory_rows[i].place] = (intptr_t)nvtx_memory_rows[i].function;
    }
}

int InitializeInjectionNvtxExtension(struct ms_nvtx_ext_module *module)
{
    if (!module || module->size < sizeof *module || module->id != MS_NVTX_EXT_MEMORY ||
        module->version >> 8 != MS_NVTX_EXT_MEMORY_VERSION >> 8 ||
        module->version < MS_NVTX_EXT_MEMORY_VERSION || !ms_phases_is_preloaded() || !ms_init_active())
        return 0;
    for (size_t i = 0; i < module->segment_count; i++) {
        if (module->segments[i].id == MS_NVTX_EXT_MEMORY_SEGMENT && module->segments[i].places)
            nvtx_memory_fill(&module->segments[i]);
    }
    return 1;
}

static void nvtx_memory_reset(void)
{
    ms_lock_reset(&heaps_lock);
    heaps_used = 0;
    for (unsigned i = 0; i < MS_ARRAY_LEN(process_heaps); i++)
        atomic_store(&process_heaps[i], 0);
}
MS_AT_FORK(MS_FORK_HOOKS, nvtx_memory_reset);
