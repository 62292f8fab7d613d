/*
 * conform_vmm.c: memory mapped by handle: sizes, order of calls, aliases, access, and what the other calls
 * say to it.
 */
#include "conform.h"

#include <unistd.h>

static size_t granule;

static void sizes(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = conform_prop;
    CUdeviceptr d;

    say("granularity_minimum", "%zu", granule);
    say_status("create_zero", cuMemCreate(&handle, 0, &prop, 0));
    say_status("create_odd", cuMemCreate(&handle, granule + 4096, &prop, 0));
    say_status("create_flags", cuMemCreate(&handle, granule, &prop, 1));
    say_status("create_no_properties", cuMemCreate(&handle, granule, NULL, 0));
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    say_status("create_no_type", cuMemCreate(&handle, granule, &prop, 0));
    prop = conform_prop;
    prop.location.id = 99;
    say_status("create_bad_device", cuMemCreate(&handle, granule, &prop, 0));
    say_status("create_beyond", cuMemCreate(&handle, (size_t)1 << 50, &conform_prop, 0));
    say_status("reserve_zero", cuMemAddressReserve(&d, 0, 0, 0, 0));
    say_status("reserve_odd", cuMemAddressReserve(&d, granule + 1, 0, 0, 0));
    say_status("reserve_bad_alignment", cuMemAddressReserve(&d, granule, 3000000, 0, 0));
    kit_must(cuMemAddressReserve(&d, granule, 16 * granule, 0, 0));
    say_yes("reserve_aligned", d % (16 * granule) == 0);
    say_status("release_range", cuMemAddressFree(d, granule));
    say_status("release_range_twice", cuMemAddressFree(d, granule));
}

static void mapping(void)
{
    CUmemAccessDesc access = {.location = conform_prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned long long flags = 99;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr d, base;
    size_t bytes = 0;
    const size_t all = 4 * granule;

    kit_must(cuMemAddressReserve(&d, all, 0, 0, 0));
    kit_must(cuMemCreate(&handle, 2 * granule, &conform_prop, 0));
    say_status("set_access_unmapped", cuMemSetAccess(d, granule, &access, 1));
    say_status("map_odd_offset", cuMemMap(d, granule, 4096, handle, 0));
    say_status("map_beyond_handle", cuMemMap(d, 3 * granule, 0, handle, 0));
    say_status("map_odd_address", cuMemMap(d + 4096, granule, 0, handle, 0));
    say_status("map", cuMemMap(d, 2 * granule, 0, handle, 0));
    say_status("map_over", cuMemMap(d + granule, granule, 0, handle, 0));
    say_status("get_access_before", cuMemGetAccess(&flags, &conform_prop.location, d));
    say("access_before", "%llu", flags);
    say_status("set_access", cuMemSetAccess(d, 2 * granule, &access, 1));
    kit_must(cuMemGetAccess(&flags, &conform_prop.location, d));
    say("access_after", "%llu", flags);
    say_status("use", cuMemsetD8_v2(d, 3, 2 * granule));
    say("content", "%d %d", conform_byte(d), conform_byte(d + 2 * granule - 1));
    say_status("range", cuMemGetAddressRange_v2(&base, &bytes, d + granule));
    say("range_is", "base %s, %zu granules", base == d ? "its own" : "another", bytes / granule);
    say_status("unmap_half", cuMemUnmap(d, granule));
    say_status("free_range_while_mapped", cuMemAddressFree(d, all));
    say_status("release_while_mapped", cuMemRelease(handle));
    say("content_after_release", "%d", conform_byte(d));
    say_status("unmap", cuMemUnmap(d, 2 * granule));
    say_status("unmap_twice", cuMemUnmap(d, 2 * granule));
    say_status("release_again", cuMemRelease(handle));
    say_status("free_range", cuMemAddressFree(d, all));
}

static void handles(void)
{
    CUmemGenericAllocationHandle handle, retained = 0, imported = 0;
    CUmemAllocationProp prop;
    CUdeviceptr one = conform_map(granule, &handle), two, plain = conform_get(KIT_MIB);
    CUmemAccessDesc access = {.location = conform_prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUipcMemHandle ipc;
    int fd = -1, on = 1;

    say_status("retain", cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)(one + 100)));
    say_yes("retained_is_same", retained == handle);
    say_status("retain_of_plain", cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)plain));
    say_status("properties", cuMemGetAllocationPropertiesFromHandle(&prop, handle));
    say("properties_are", "type %d, location %d %d", (int)prop.type, (int)prop.location.type,
        prop.location.id);
    say_status("release_retained", cuMemRelease(handle));
    say_status("export_fd",
               cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    say_status("import_fd", cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)fd,
                                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    if (fd >= 0)
        close(fd);
    kit_must(cuMemAddressReserve(&two, granule, 0, 0, 0));
    say_status("map_alias", cuMemMap(two, granule, 0, imported, 0));
    kit_must(cuMemSetAccess(two, granule, &access, 1));
    kit_must(cuMemsetD8_v2(one, 9, granule));
    kit_must(cuCtxSynchronize());
    say("alias_shows", "%d", conform_byte(two));
    say_status("legacy_ipc", cuIpcGetMemHandle(&ipc, one));
    say_status("sync_memops", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, one));
    say_status("plain_free", cuMemFree_v2(one));
    say_status("async_free", cuMemFreeAsync(one, NULL));
    kit_must(cuMemUnmap(two, granule));
    kit_must(cuMemRelease(imported));
    kit_must(cuMemUnmap(one, granule));
    kit_must(cuMemRelease(handle));
    kit_must(cuMemFree_v2(plain));
}

static void accounts(void)
{
    size_t before = conform_free_bytes();
    CUmemGenericAllocationHandle handle;

    kit_must(cuMemCreate(&handle, 64 * granule, &conform_prop, 0));
    say("create_takes_granules", "%zu", (before - conform_free_bytes()) / granule);
    kit_must(cuMemRelease(handle));
    say("release_gives_back", "%zu", (before - conform_free_bytes()) / granule);
}

void conform_vmm(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cuMemGetAllocationGranularity(&granule, &conform_prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    sizes();
    mapping();
    handles();
    accounts();
}
