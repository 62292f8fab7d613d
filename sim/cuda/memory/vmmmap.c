/*
 * Virtual memory management, the virtual half: reserved addresses, and mappings of handles (vmm.c) onto them.
 * A mapping is a second view of the handle's file, inaccessible until access is set. Lock: memory, for
 * writing.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/memory/vmm.h"

struct reservation {
    struct sim_range range; /* first; in sim_windows */
    struct reservation *next;
};

static struct reservation *reservations;

static size_t granularity(void)
{
    return sim_config.granularity_bytes;
}

static void *reserve_at(CUdeviceptr hint, size_t bytes, size_t align)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *place = MAP_FAILED;

    if (hint && !(hint % align)) /* a wish: what does not fit is overlooked */
        place = mmap((void *)(uintptr_t)hint, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != MAP_FAILED && (uintptr_t)place != hint) { /* an old kernel took it for a hint */
        munmap(place, bytes);
        place = MAP_FAILED;
    }
    if (place != MAP_FAILED)
        return place;
    if (bytes + align < bytes)
        return MAP_FAILED;
    char *wide = mmap(NULL, bytes + align, PROT_NONE, flags, -1, 0);
    if (wide == MAP_FAILED)
        return MAP_FAILED;
    size_t before = -(uintptr_t)wide & (align - 1);
    if (before)
        munmap(wide, before);
    munmap(wide + before + bytes, align - before);
    return wide + before;
}

SIM_API(cuMemAddressReserve)
(CUdeviceptr *address_p, size_t bytes, size_t align, CUdeviceptr hint, unsigned long long flags)
{
    SIM_ENTER(cuMemAddressReserve);
    if (!address_p || !bytes || bytes % granularity() || flags || (align & (align - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (align < granularity())
        align = granularity();
    struct reservation *reservation = calloc(1, sizeof *reservation);
    if (!reservation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_memory_write_lock();
    void *place = reserve_at(hint, bytes, align);
    if (place != MAP_FAILED) {
        reservation->range.start = (uintptr_t)place;
        reservation->range.bytes = bytes;
        sim_range_insert(&sim_windows, &reservation->range);
        reservation->next = reservations;
        reservations = reservation;
        *address_p = reservation->range.start;
    }
    sim_memory_unlock();
    if (place != MAP_FAILED)
        return CUDA_SUCCESS;
    free(reservation);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* True if nothing is mapped between two addresses. */
static bool unmapped(CUdeviceptr address, size_t bytes)
{
    struct sim_range *above = sim_range_above(sim_blocks, (uintptr_t)address);

    return !sim_block_at(address) && (!above || above->start >= address + bytes);
}

SIM_API(cuMemAddressFree)(CUdeviceptr address, size_t bytes)
{
    SIM_ENTER(cuMemAddressFree);
    struct reservation **link = &reservations;

    sim_memory_write_lock();
    while (*link && (*link)->range.start != address)
        link = &(*link)->next;
    struct reservation *reservation = *link;
    bool good = reservation && reservation->range.bytes == bytes && unmapped(address, bytes);
    if (good) {
        *link = reservation->next;
        sim_range_remove(&sim_windows, &reservation->range);
        munmap((void *)(uintptr_t)address, bytes);
    }
    sim_memory_unlock();
    if (good)
        free(reservation);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- mappings ------------------------------------------------------------------------------------------- */

static bool reserved(CUdeviceptr address, size_t bytes)
{
    for (const struct reservation *r = reservations; r; r = r->next)
        if (address >= r->range.start && address - r->range.start <= r->range.bytes &&
            bytes <= r->range.bytes - (size_t)(address - r->range.start))
            return true;
    return false;
}

static bool is_whole(CUdeviceptr address, size_t bytes, size_t offset)
{
    return !(address % granularity() || bytes % granularity() || offset % granularity());
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset, struct sim_phys *phys)
{
    if (!phys)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_whole(address, bytes, offset) || offset > phys->bytes || bytes > phys->bytes - offset ||
        !reserved(address, bytes) || !unmapped(address, bytes))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sim_arena_valid_fd(phys->arena))
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct sim_block *block = sim_block_new(SIM_BLOCK_MAPPED, (uintptr_t)address, bytes);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             phys->arena->fd, (off_t)(phys->offset + offset)) == MAP_FAILED) {
        sim_block_drop(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->device =
        phys->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? phys->prop.location.id : SIM_HOST;
    block->owner = phys;
    block->readable = block->writable = 0;
    phys->maps++;
    return CUDA_SUCCESS;
}

SIM_API(cuMemMap)
(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
 unsigned long long flags)
{
    SIM_ENTER(cuMemMap);
    if (!bytes || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_write_lock();
    CUresult status = map(address, bytes, offset, sim_phys_find(handle));
    sim_memory_unlock();
    return status;
}

/* The range must begin and end with mappings, and consist of them. (Where nothing of a reservation is mapped,
 * unmapping it is nothing, and is no error.) */
static bool whole_mappings(CUdeviceptr address, size_t bytes)
{
    while (bytes) {
        struct sim_block *block = sim_block_base(address);
        if (!block || block->kind != SIM_BLOCK_MAPPED || block->range.bytes > bytes)
            return false;
        address += block->range.bytes;
        bytes -= block->range.bytes;
    }
    return true;
}

static void unmap_block(struct sim_block *block)
{
    struct sim_phys *phys = block->owner;

    mmap((void *)block->range.start, block->range.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    sim_block_drop(block);
    phys->maps--;
    sim_phys_settle(phys);
}

SIM_API(cuMemUnmap)(CUdeviceptr address, size_t bytes)
{
    SIM_ENTER(cuMemUnmap);
    sim_memory_write_lock();
    bool mapped = bytes && whole_mappings(address, bytes);
    bool good = mapped || (bytes && is_whole(address, bytes, 0) && reserved(address, bytes) &&
                           unmapped(address, bytes));
    for (size_t done = 0; mapped && done < bytes;) {
        struct sim_block *block = sim_block_base(address + done);
        done += block->range.bytes;
        unmap_block(block);
    }
    sim_memory_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- access --------------------------------------------------------------------------------------------- */

static CUresult check_access(const CUmemAccessDesc *desc, unsigned *bit_p)
{
    bool known = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    if (!known)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device(desc->location.id)) {
        *bit_p = 1U << desc->location.id;
        return CUDA_SUCCESS;
    }
    *bit_p = SIM_ACCESS_HOST;
    return desc->location.type == CU_MEM_LOCATION_TYPE_HOST ||
                   desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA
               ? CUDA_SUCCESS
           : desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
                                                                : CUDA_ERROR_INVALID_VALUE;
}

static void set_access(struct sim_block *block, unsigned bit, CUmemAccess_flags flags)
{
    block->readable = flags & CU_MEM_ACCESS_FLAGS_PROT_READ ? block->readable | bit : block->readable & ~bit;
    block->writable =
        flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? block->writable | bit : block->writable & ~bit;
    mprotect((void *)block->range.start, block->range.bytes,
             block->writable   ? PROT_READ | PROT_WRITE
             : block->readable ? PROT_READ
                               : PROT_NONE);
}

SIM_API(cuMemSetAccess)(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descs, size_t count)
{
    SIM_ENTER(cuMemSetAccess);
    CUresult status = bytes && descs && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    unsigned bit;

    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = check_access(&descs[i], &bit);
    if (status != CUDA_SUCCESS)
        return status;
    sim_memory_write_lock();
    if (!whole_mappings(address, bytes))
        status = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
        check_access(&descs[i], &bit);
        for (struct sim_block *block = sim_block_at(address); block && block->range.start < address + bytes;
             block = sim_block_next(block))
            set_access(block, bit, descs[i].flags);
    }
    sim_memory_unlock();
    return status;
}

SIM_API(cuMemGetAccess)(unsigned long long *flags_p, const CUmemLocation *location, CUdeviceptr address)
{
    SIM_ENTER(cuMemGetAccess);
    unsigned bit;

    if (!flags_p || !location)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemAccessDesc desc = {*location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUresult status = check_access(&desc, &bit);
    if (status != CUDA_SUCCESS)
        return status;
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(address);
    if (!block || (block->kind != SIM_BLOCK_MAPPED && block->kind != SIM_BLOCK_DEVICE))
        status = CUDA_ERROR_INVALID_VALUE;
    else if (block->kind == SIM_BLOCK_DEVICE) /* the driver's own */
        *flags_p = block->device == location->id ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    else
        *flags_p = block->writable & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                   : block->readable & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    sim_memory_unlock();
    return status;
}
