/* Memory by handle, as the record has it: granularity, and what each call does with what does not fit. See
 * record.h. */
#include "tests/sim/record.h"

static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const CUmemAccessDesc writable = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static size_t g;

static void granularity(const char *fact, const CUmemAllocationProp *prop, int option)
{
    size_t bytes = 0;
    CUresult status = cuMemGetAllocationGranularity(&bytes, prop, (CUmemAllocationGranularity_flags)option);

    told(fact, status, "%zu", status == CUDA_SUCCESS ? bytes : 0);
}

static CUmemAllocationProp at(int type, int id)
{
    CUmemAllocationProp prop = plain;

    prop.location.type = (CUmemLocationType)type;
    prop.location.id = id;
    return prop;
}

static void granularities(void)
{
    CUmemAllocationProp shared = plain, host = at(CU_MEM_LOCATION_TYPE_HOST, 0), odd = at(99, 0),
                        far = at(1, 7), packed = plain;

    shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    packed.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    granularity("least granularity", &plain, 0);
    granularity("recommended granularity", &plain, 1);
    granularity("least granularity of what can be exported", &shared, 0);
    granularity("recommended granularity of what can be exported", &shared, 1);
    granularity("least granularity at the host", &host, 0);
    granularity("least granularity at a place of unknown type", &odd, 0);
    granularity("least granularity of a device that is not there", &far, 0);
    granularity("recommended granularity of compressible memory", &packed, 1);
    granularity("granularity by option 2", &plain, 2);
    granularity("granularity by option -1", &plain, -1);
    granularity("granularity of no properties", NULL, 0);
    TOLD("granularity to nowhere", cuMemGetAllocationGranularity(NULL, &plain, 0));
    must(cuMemGetAllocationGranularity(&g, &plain, 0));
}

static void sizes(void)
{
    const size_t asked[] = {1, 4096, 65536, g / 2, g - 1, g, g + 1, 2 * g, 3 * g / 2, 3 * g, 0};

    for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        CUmemGenericAllocationHandle handle = 0;
        char fact[64];
        CUresult status = cuMemCreate(&handle, asked[i], &plain, 0);
        snprintf(fact, sizeof fact, "a handle of %zu bytes", asked[i]);
        TOLD(fact, status);
        if (status == CUDA_SUCCESS)
            must(cuMemRelease(handle));
    }
}

static void reserve(const char *fact, size_t bytes, size_t align)
{
    CUdeviceptr p = 0;
    CUresult status = cuMemAddressReserve(&p, bytes, align, 0, 0);

    if (status != CUDA_SUCCESS) {
        TOLD(fact, status);
        return;
    }
    told(fact, status, "%s", p % g ? "not aligned" : "aligned to a granule");
    must(cuMemAddressFree(p, bytes));
}

static void reservations(void)
{
    CUdeviceptr p = 0;

    reserve("addresses: 1 byte", 1, 0);
    reserve("addresses: 4 KiB", 4096, 0);
    reserve("addresses: 64 KiB", 65536, 0);
    reserve("addresses: a granule", g, 0);
    reserve("addresses: a granule and a byte", g + 1, 0);
    reserve("addresses: two granules", 2 * g, 0);
    reserve("addresses: a granule and a half", 3 * g / 2, 0);
    reserve("addresses: aligned to 4 KiB", g, 4096);
    reserve("addresses: aligned to 64 KiB", g, 65536);
    reserve("addresses: aligned to a granule", g, g);
    reserve("addresses: aligned to two", g, 2 * g);
    reserve("addresses: aligned to three", g, 3 * g);
    reserve("addresses: aligned to 1 GiB", g, 1UL << 30);
    reserve("addresses: aligned to 5", g, 5);
    TOLD("addresses: none", cuMemAddressReserve(&p, 0, 0, 0, 0));
    TOLD("addresses: with a flag", cuMemAddressReserve(&p, g, 0, 0, 1));
    TOLD("addresses: to nowhere", cuMemAddressReserve(NULL, g, 0, 0, 0));
}

/* On four granules of addresses, with a handle of two. */
static void mappings(CUdeviceptr base, CUmemGenericAllocationHandle handle)
{
    TOLD("mapping half a granule", cuMemMap(base, g / 2, 0, handle, 0));
    TOLD("mapping a granule and a byte", cuMemMap(base, g + 1, 0, handle, 0));
    TOLD("mapping nothing", cuMemMap(base, 0, 0, handle, 0));
    TOLD("mapping 4 KiB into the addresses", cuMemMap(base + 4096, g, 0, handle, 0));
    TOLD("mapping 64 KiB into the addresses", cuMemMap(base + 65536, g, 0, handle, 0));
    TOLD("mapping from 4 KiB into the handle", cuMemMap(base, g, 4096, handle, 0));
    TOLD("mapping from 64 KiB into the handle", cuMemMap(base, g, 65536, handle, 0));
    TOLD("mapping from the handle's end", cuMemMap(base, g, 2 * g, handle, 0));
    TOLD("mapping more than the handle has", cuMemMap(base, 3 * g, 0, handle, 0));
    TOLD("mapping over the handle's end", cuMemMap(base, g, g + g / 2, handle, 0));
    TOLD("mapping with a flag", cuMemMap(base, g, 0, handle, 1));
    TOLD("mapping no handle", cuMemMap(base, g, 0, 0, 0));
    TOLD("mapping all of it", cuMemMap(base, 2 * g, 0, handle, 0));
    TOLD("mapping over the mapping's beginning", cuMemMap(base, g, 0, handle, 0));
    TOLD("mapping over the mapping's end", cuMemMap(base + g, g, 0, handle, 0));
}

static void accesses(CUdeviceptr base)
{
    TOLD("access to half a granule", cuMemSetAccess(base, g / 2, &writable, 1));
    TOLD("access to a granule and a byte", cuMemSetAccess(base, g + 1, &writable, 1));
    TOLD("access to nothing", cuMemSetAccess(base, 0, &writable, 1));
    TOLD("access from 4 KiB on", cuMemSetAccess(base + 4096, g, &writable, 1));
    TOLD("access from 64 KiB on", cuMemSetAccess(base + 65536, g, &writable, 1));
    TOLD("access behind the mapping", cuMemSetAccess(base + 2 * g, g, &writable, 1));
    TOLD("access for no list", cuMemSetAccess(base, g, NULL, 1));
    TOLD("access for an empty list", cuMemSetAccess(base, g, &writable, 0));
    TOLD("access to half of the mapping", cuMemSetAccess(base, g, &writable, 1));
    TOLD("access to all of it", cuMemSetAccess(base, 2 * g, &writable, 1));
}

static void unmappings(CUdeviceptr base)
{
    TOLD("unmapping half a granule", cuMemUnmap(base, g / 2));
    TOLD("unmapping a granule and a byte", cuMemUnmap(base, g + 1));
    TOLD("unmapping nothing", cuMemUnmap(base, 0));
    TOLD("unmapping from 4 KiB on", cuMemUnmap(base + 4096, g));
    TOLD("unmapping from 64 KiB on", cuMemUnmap(base + 65536, g));
    TOLD("unmapping the mapping's end", cuMemUnmap(base + g, g));
    TOLD("unmapping the mapping's beginning", cuMemUnmap(base, g));
    TOLD("freeing addresses that are mapped", cuMemAddressFree(base, 4 * g));
    TOLD("unmapping all of it", cuMemUnmap(base, 2 * g));
    TOLD("unmapping what is not mapped", cuMemUnmap(base, 2 * g));
}

static void frees(CUdeviceptr base, CUmemGenericAllocationHandle handle)
{
    TOLD("freeing half a granule of addresses", cuMemAddressFree(base, g / 2));
    TOLD("freeing a part of them", cuMemAddressFree(base, g));
    TOLD("freeing a byte more", cuMemAddressFree(base, 4 * g + 1));
    TOLD("freeing from 4 KiB on", cuMemAddressFree(base + 4096, 4 * g));
    TOLD("freeing their end", cuMemAddressFree(base + g, 3 * g));
    TOLD("freeing a granule more", cuMemAddressFree(base, 5 * g));
    TOLD("freeing none of them", cuMemAddressFree(base, 0));
    TOLD("freeing all of them", cuMemAddressFree(base, 4 * g));
    TOLD("freeing them again", cuMemAddressFree(base, 4 * g));
    TOLD("releasing the handle", cuMemRelease(handle));
    TOLD("releasing it again", cuMemRelease(handle));
}

int main(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;

    begin();
    granularities();
    sizes();
    reservations();
    must(cuMemAddressReserve(&base, 4 * g, 0, 0, 0));
    must(cuMemCreate(&handle, 2 * g, &plain, 0));
    mappings(base, handle);
    accesses(base);
    unmappings(base);
    frees(base, handle);
    return 0;
}
