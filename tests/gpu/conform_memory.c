/*
 * conform_memory.c: where memory lies and what can be asked about it: alignment, address ranges, pointer
 * attributes, and what the device says is free.
 */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS 200

static const size_t sizes[] = {1,       256,         512,         1000,        4096,        65536,
                               KIT_MIB, KIT_MIB + 1, 2 * KIT_MIB, 3 * KIT_MIB, 20 * KIT_MIB};

void conform_align(int argc, char **argv)
{
    static CUdeviceptr blocks[BLOCKS];
    static size_t bytes[BLOCKS];
    char name[64];
    bool apart = true, whole = true, wide = true, pinned = true, huge = true;

    (void)argc;
    (void)argv;
    kit_begin();
    for (size_t i = 0; i < BLOCKS; i++) {
        bytes[i] = sizes[i % KIT_COUNT(sizes)];
        blocks[i] = conform_get(bytes[i]);
        kit_must(cuMemsetD8_v2(blocks[i], (unsigned char)i, bytes[i]));
        wide = wide && blocks[i] % 512 == 0;
        pinned = pinned && (bytes[i] < 2 * KIT_MIB || blocks[i] % 65536 == 0);
        huge = huge && (bytes[i] < 2 * KIT_MIB || blocks[i] % (2 * KIT_MIB) == 0);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        whole = whole && conform_byte(blocks[i]) == (int)(i % 256) &&
                conform_byte(blocks[i] + bytes[i] - 1) == (int)(i % 256);
        for (size_t k = 0; k < i; k++)
            apart = apart && (blocks[i] + bytes[i] <= blocks[k] || blocks[k] + bytes[k] <= blocks[i]);
    }
    say_yes("every_address_by_512", wide);
    say_yes("from_2MiB_by_64KiB", pinned);
    say_yes("from_2MiB_by_2MiB", huge);
    say_yes("blocks_do_not_overlap", apart);
    say_yes("contents_stay", whole);
    for (size_t i = 0; i < BLOCKS; i += 2)
        kit_must(cuMemFree_v2(blocks[i]));
    for (size_t i = 1; i < BLOCKS; i += 2)
        whole = whole && conform_byte(blocks[i]) == (int)(i % 256);
    say_yes("contents_stay_when_others_go", whole);
    for (size_t i = 0; i < 4; i++) {
        static const size_t widths[] = {1, 100, 513, 5000};
        CUdeviceptr d;
        size_t pitch = 0;
        kit_must(cuMemAllocPitch_v2(&d, &pitch, widths[i], 10, 4));
        snprintf(name, sizeof name, "pitch_of_%zu", widths[i]);
        say(name, "%zu", pitch);
        kit_must(cuMemFree_v2(d));
    }
}

void conform_range(int argc, char **argv)
{
    CUdeviceptr base = 0, first = 0;
    size_t bytes = 0;
    char name[64];

    (void)argc;
    (void)argv;
    kit_begin();
    for (size_t i = 0; i < KIT_COUNT(sizes); i++) {
        CUdeviceptr d = conform_get(sizes[i]);
        CUresult status = cuMemGetAddressRange_v2(&base, &bytes, d + sizes[i] / 2);
        snprintf(name, sizeof name, "of_%zu", sizes[i]);
        say(name, "%d, base %s, %zu", (int)status, base == d ? "its own" : "another", bytes);
        first = d;
        kit_must(cuMemFree_v2(d));
    }
    say_status("after_free", cuMemGetAddressRange_v2(&base, &bytes, first));
    first = conform_get(KIT_MIB);
    say_status("base_alone", cuMemGetAddressRange_v2(&base, NULL, first));
    say_status("size_alone", cuMemGetAddressRange_v2(NULL, &bytes, first));
    say_status("neither", cuMemGetAddressRange_v2(NULL, NULL, first));
    kit_must(cuMemFree_v2(first));
}

/* --- attributes ----------------------------------------------------------------------------------------- */

static void attribute(const char *kind, const char *name, CUpointer_attribute which, CUdeviceptr d)
{
    unsigned long long value = 0; /* or the beginning of it: an int, unsigned or bool */
    char text[64];
    CUresult status = cuPointerGetAttribute(&value, which, d);

    snprintf(text, sizeof text, "%s_%s", kind, name);
    say(text, "%d, %llu", (int)status, status == CUDA_SUCCESS ? value : 0);
}

static void pointers(const char *kind, CUdeviceptr d, CUcontext ctx)
{
    CUdeviceptr device = 0, start = 0;
    CUcontext owner = NULL;
    void *host = NULL;
    size_t bytes = 0;
    char text[64];
    CUresult one = cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, d);
    CUresult two = cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, d);

    snprintf(text, sizeof text, "%s_pointers", kind);
    say(text, "device %d %s, host %d %s", (int)one, one == 0 && device == d ? "same" : "-", (int)two,
        two == 0 && (uintptr_t)host == d ? "same" : "-");
    one = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, d);
    two = cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, d);
    snprintf(text, sizeof text, "%s_range", kind);
    say(text, "start %d %s, size %d %zu", (int)one, one == 0 && start == d ? "same" : "-", (int)two,
        two == 0 ? bytes : 0);
    one = cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, d);
    snprintf(text, sizeof text, "%s_context", kind);
    say(text, "%d, %s", (int)one, one != 0 ? "-" : owner == ctx ? "current" : owner ? "another" : "none");
}

static void all_of(const char *kind, CUdeviceptr d, CUcontext ctx)
{
    attribute(kind, "memory_type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d);
    attribute(kind, "device_ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, d);
    attribute(kind, "is_managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, d);
    attribute(kind, "legacy_ipc_capable", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, d);
    attribute(kind, "mapped", CU_POINTER_ATTRIBUTE_MAPPED, d);
    attribute(kind, "handle_types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, d);
    pointers(kind, d, ctx);
}

static unsigned long long id_of(CUdeviceptr d)
{
    unsigned long long id = 0;

    return cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, d) == CUDA_SUCCESS ? id : 0;
}

static void identities(void)
{
    CUdeviceptr one = conform_get(4096), two = conform_get(4096);
    unsigned long long before = id_of(one);
    int on = 1;

    say_yes("id_given", before != 0);
    say_yes("id_of_interior_same", id_of(one + 100) == before);
    say_yes("id_of_neighbour_differs", id_of(two) != before);
    kit_must(cuMemFree_v2(one));
    one = conform_get(4096);
    say_yes("id_after_free_differs", id_of(one) != before);
    say_status("set_sync_memops", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, one));
    attribute("device_then", "sync_memops", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, one);
    kit_must(cuMemFree_v2(one));
    kit_must(cuMemFree_v2(two));
}

static void runtime_attributes(const char *kind, void *p)
{
    struct cudaPointerAttributes attributes = {0};
    char text[64];
    int status = cudaPointerGetAttributes(&attributes, p);

    snprintf(text, sizeof text, "runtime_%s", kind);
    say(text, "%d, type %d, device %d, device pointer %s, host pointer %s", status, attributes.type,
        attributes.device,
        attributes.devicePointer == p ? "same"
        : attributes.devicePointer    ? "another"
                                      : "none",
        attributes.hostPointer == p ? "same"
        : attributes.hostPointer    ? "another"
                                    : "none");
}

void conform_attributes(int argc, char **argv)
{
    CUcontext ctx = kit_begin();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr device = conform_get(3 * KIT_MIB), small = conform_get(1000), managed, pooled, mapped;
    void *pinned;

    (void)argc;
    (void)argv;
    kit_must(cuMemAllocManaged(&managed, KIT_MIB, CU_MEM_ATTACH_GLOBAL));
    kit_must(cuMemAllocAsync(&pooled, KIT_MIB, NULL));
    kit_must(cuMemHostAlloc(&pinned, KIT_MIB, CU_MEMHOSTALLOC_DEVICEMAP));
    mapped = conform_map(2 * KIT_MIB, &handle);
    kit_must(cuCtxSynchronize());
    all_of("device", device, ctx);
    all_of("small", small, ctx);
    all_of("managed", managed, ctx);
    all_of("pooled", pooled, ctx);
    all_of("pinned", (uintptr_t)pinned, ctx);
    all_of("mapped", mapped, ctx);
    runtime_attributes("device", (void *)(uintptr_t)device);
    runtime_attributes("small", (void *)(uintptr_t)small);
    runtime_attributes("interior", (char *)(uintptr_t)device + 4096);
    runtime_attributes("managed", (void *)(uintptr_t)managed);
    runtime_attributes("pooled", (void *)(uintptr_t)pooled);
    runtime_attributes("pinned", pinned);
    runtime_attributes("mapped", (void *)(uintptr_t)mapped);
    kit_must(cuMemFree_v2(device));
    runtime_attributes("freed", (void *)(uintptr_t)device);
    identities();
}

/* --- what is free --------------------------------------------------------------------------------------- */

void conform_meminfo(int argc, char **argv)
{
    const size_t bytes = 256 * KIT_MIB;
    size_t left = 0, total = 0, device_total = 0, other_left = 0, other_total = 0;
    CUdeviceptr d, small[64];

    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cuMemGetInfo_v2(&left, &total));
    kit_must(cuDeviceTotalMem_v2(&device_total, 0));
    say_yes("free_below_total", left <= total);
    say_yes("total_is_the_devices", total == device_total);
    say_status("runtime", cudaMemGetInfo(&other_left, &other_total));
    say_yes("runtime_same_total", other_total == total);
    d = conform_get(bytes);
    say("alloc_takes_MiB", "%zu", (left - conform_free_bytes()) / KIT_MIB);
    kit_must(cuMemFree_v2(d));
    say("free_gives_back_MiB", "%zu", (left - conform_free_bytes()) / KIT_MIB);
    for (size_t i = 0; i < KIT_COUNT(small); i++)
        small[i] = conform_get(64 * KIT_KIB);
    say("small_take_MiB", "%zu", (left - conform_free_bytes()) / KIT_MIB);
    for (size_t i = 0; i < KIT_COUNT(small); i++)
        kit_must(cuMemFree_v2(small[i]));
    kit_must(cuCtxSynchronize());
    say_yes("small_go_back", left - conform_free_bytes() <= 2 * KIT_MIB);
    say_status("alloc_more_than_free", cuMemAlloc_v2(&d, conform_free_bytes() + 64 * KIT_MIB));
    say_yes("failed_alloc_takes_nothing", left - conform_free_bytes() <= 2 * KIT_MIB);
}
