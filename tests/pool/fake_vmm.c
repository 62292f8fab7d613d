/* fake_vmm.c - memory that is mapped by handle, of the driver in fake.h: as strict as the vendor's says of
 * itself. A mapping is unmapped as a whole, access is set for whole mappings, and an address range is free
 * only without any. Under the driver's one lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct handle {
    uint64_t bytes;
    int device;
    bool held, mapped;
};

struct page {
    uint32_t handle; /* + 1 */
    bool first;      /* of its mapping */
    uint64_t access; /* devices */
};

struct range {
    uint64_t address, bytes;
    struct page *pages;
    struct range *next;
};

static struct handle *handles;
static uint64_t handle_count, handle_room, next_address;
static struct range *ranges;

static struct handle *handle_of(CUmemGenericAllocationHandle number)
{
    return number && number <= handle_count && handles[number - 1].held ? &handles[number - 1] : NULL;
}

static void settle(struct handle *handle)
{
    if (!handle->held && !handle->mapped)
        fake.used[handle->device] -= handle->bytes;
}

/* All the pages of [address, address + bytes), or NULL. */
static struct page *pages_at(CUdeviceptr address, size_t bytes)
{
    for (struct range *r = ranges; r; r = r->next) {
        if (address >= r->address && address - r->address < r->bytes &&
            bytes <= r->bytes - (address - r->address))
            return &r->pages[(address - r->address) / fake.granularity];
    }
    return NULL;
}

static bool on_pages(CUdeviceptr address, size_t bytes)
{
    return bytes && address % fake.granularity == 0 && bytes % fake.granularity == 0;
}

static CUresult granularity(size_t *bytes_p, const CUmemAllocationProp *prop,
                            CUmemAllocationGranularity_flags flags)
{
    (void)prop;
    (void)flags;
    *bytes_p = fake.granularity;
    return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *address_p, size_t bytes, size_t align, CUdeviceptr hint,
                        unsigned long long flags)
{
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    fake_lock();
    if (fake_count(FAKE_RESERVE)) {
        status = (CUresult)fake.fail_status;
    } else if (bytes && bytes % fake.granularity == 0 && !hint && !flags && align && !(align & (align - 1))) {
        struct range *range = calloc(1, sizeof(*range));
        next_address = (next_address + align - 1) / align * align;
        *range = (struct range){next_address, bytes, calloc(bytes / fake.granularity, sizeof(struct page)),
                                ranges};
        next_address += bytes + fake.granularity;
        ranges = range;
        fake.ranges++;
        *address_p = range->address;
        status = CUDA_SUCCESS;
    }
    fake_unlock();
    return status;
}

static bool is_mapped(const struct range *range)
{
    for (uint64_t i = 0; i < range->bytes / fake.granularity; i++) {
        if (range->pages[i].handle)
            return true;
    }
    return false;
}

static CUresult address_free(CUdeviceptr address, size_t bytes)
{
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    fake_lock();
    struct range **link = &ranges, *range;
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    range = *link;
    if (fake_count(FAKE_ADDRESS_FREE)) {
        status = (CUresult)fake.fail_status;
    } else if (range && range->bytes == bytes && !is_mapped(range)) {
        *link = range->next;
        free(range->pages);
        free(range);
        fake.ranges--;
        status = CUDA_SUCCESS;
    } else {
        fake.vmm_errors++;
    }
    fake_unlock();
    return status;
}

static CUresult create(CUmemGenericAllocationHandle *handle_p, size_t bytes, const CUmemAllocationProp *prop,
                       unsigned long long flags)
{
    int device = prop->location.id;
    CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
    fake_lock();
    if (fake_count(FAKE_CREATE)) {
        status = (CUresult)fake.fail_status;
    } else if (!bytes || bytes % fake.granularity || flags ||
               prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        fake.vmm_errors++;
        status = CUDA_ERROR_INVALID_VALUE;
    } else if ((!fake.handle_most_bytes || bytes <= fake.handle_most_bytes) &&
               fake.used[device] + fake.leaving[device] + bytes <= fake.capacity) {
        if (handle_count == handle_room) {
            handle_room = handle_room ? handle_room * 2 : 1024;
            handles = realloc(handles, handle_room * sizeof(*handles));
        }
        handles[handle_count++] = (struct handle){.bytes = bytes, .device = device, .held = true};
        fake.used[device] += bytes;
        if (fake.longest_handle_bytes < bytes)
            fake.longest_handle_bytes = bytes;
        fake.handles++;
        *handle_p = handle_count;
        status = CUDA_SUCCESS;
    }
    fake_unlock();
    return status;
}

static CUresult release(CUmemGenericAllocationHandle number)
{
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    fake_lock();
    struct handle *handle = handle_of(number);
    if (fake_count(FAKE_RELEASE)) {
        status = (CUresult)fake.fail_status;
    } else if (handle) {
        handle->held = false;
        fake.handles--;
        settle(handle);
        status = CUDA_SUCCESS;
    } else {
        fake.vmm_errors++;
    }
    fake_unlock();
    return status;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle number,
                    unsigned long long flags)
{
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    fake_lock();
    struct handle *handle = handle_of(number);
    struct page *pages = pages_at(address, bytes);
    bool empty = pages != NULL && on_pages(address, bytes);
    for (uint64_t i = 0; pages && i < bytes / fake.granularity; i++)
        empty = empty && !pages[i].handle;
    if (fake_count(FAKE_MAP)) {
        status = (CUresult)fake.fail_status;
    } else if (!handle || handle->mapped || handle->bytes != bytes || offset || flags || !empty) {
        fake.vmm_errors++;
    } else {
        for (uint64_t i = 0; i < bytes / fake.granularity; i++)
            pages[i] = (struct page){.handle = (uint32_t)number, .first = !i};
        handle->mapped = true;
        status = CUDA_SUCCESS;
    }
    fake_unlock();
    return status;
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    fake_lock();
    struct page *pages = on_pages(address, bytes) ? pages_at(address, bytes) : NULL;
    struct handle *handle = pages && pages->handle && pages->first ? &handles[pages->handle - 1] : NULL;
    if (fake_count(FAKE_UNMAP)) {
        status = (CUresult)fake.fail_status;
    } else if (!handle || handle->bytes != bytes) {
        fake.vmm_errors++;
    } else {
        fake.blocking_frees += fake_is_busy();
        fake.unmaps++;
        for (uint64_t i = 0; i < bytes / fake.granularity; i++)
            pages[i] = (struct page){0};
        handle->mapped = false;
        settle(handle);
        status = CUDA_SUCCESS;
    }
    fake_unlock();
    return status;
}

/* Whether `count` pages are mappings from end to end: of a part of one the driver refuses both. */
static bool whole_mappings(const struct page *pages, uint64_t count)
{
    for (uint64_t i = 0; i < count;) {
        const struct handle *handle = pages[i].handle ? &handles[pages[i].handle - 1] : NULL;
        if (!handle || !pages[i].first || handle->bytes / fake.granularity > count - i)
            return false;
        i += handle->bytes / fake.granularity;
    }
    return true;
}

static CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descs, size_t count)
{
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    fake_lock();
    struct page *pages = on_pages(address, bytes) ? pages_at(address, bytes) : NULL;
    bool there = pages != NULL && whole_mappings(pages, bytes / fake.granularity);
    if (fake_count(FAKE_ACCESS)) {
        status = (CUresult)fake.fail_status;
    } else if (there) {
        for (uint64_t i = 0; i < bytes / fake.granularity; i++) {
            for (size_t k = 0; k < count; k++) {
                uint64_t bit = (uint64_t)1 << descs[k].location.id;
                pages[i].access = descs[k].flags ? pages[i].access | bit : pages[i].access & ~bit;
            }
        }
        status = CUDA_SUCCESS;
    }
    fake_unlock();
    return status;
}

uint64_t fake_access(uint64_t address)
{
    fake_lock();
    const struct page *page = pages_at(address, 1);
    uint64_t access = page ? page->access : 0;
    fake_unlock();
    return access;
}

void fake_vmm_start(struct ms_gpu *gpu)
{
    while (ranges) {
        struct range *next = ranges->next;
        free(ranges->pages);
        free(ranges);
        ranges = next;
    }
    handle_count = 0;
    next_address = (uint64_t)1 << 45;
    fake.granularity = 2u << 20;
    gpu->granularity = granularity;
    gpu->address_reserve = reserve;
    gpu->address_free = address_free;
    gpu->handle_create = create;
    gpu->handle_release = release;
    gpu->handle_map = map;
    gpu->handle_unmap = unmap;
    gpu->set_access = set_access;
}
