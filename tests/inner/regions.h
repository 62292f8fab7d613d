/* regions.h - what an object with NVTX's extension for memory compiled in does: at its first call it loads
 * the library that NVTX_INJECTION64_PATH names and has it fill in the places of its functions. Facts of NVTX
 * 3's headers; with REAL_NVTX the same functions are those headers'. */
#ifndef MS_TESTS_INNER_REGIONS_H
#define MS_TESTS_INNER_REGIONS_H

#include <stddef.h>
#include <stdint.h>

enum { REGIONS_MAX = 64 };
struct region {
    size_t bytes;
    void *address;
};

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExtMem.h>

static void *heap_begin(void *address, size_t bytes, const char *name)
{
    nvtxMemVirtualRangeDesc_t range = {.size = bytes, .ptr = address};
    nvtxMemHeapDesc_t told = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                              .structSize = sizeof told,
                              .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
                              .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                              .typeSpecificDescSize = sizeof range,
                              .typeSpecificDesc = &range,
                              .messageType = NVTX_MESSAGE_TYPE_ASCII,
                              .message.ascii = name};
    return nvtxMemHeapRegister(NULL, &told);
}

static void heap_end(void *heap)
{
    nvtxMemHeapUnregister(NULL, heap);
}

static void heap_empty(void *heap)
{
    nvtxMemHeapReset(NULL, heap);
}

static void regions_begin(void *heap, const struct region *regions, size_t count, void **handles)
{
    nvtxMemRegionsRegisterBatch_t told = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                          .structSize = sizeof told,
                                          .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                          .heap = heap,
                                          .regionCount = count,
                                          .regionDescElementSize = sizeof *regions,
                                          .regionDescElements = regions,
                                          .regionHandleElementsOut = (nvtxMemRegionHandle_t *)handles};
    nvtxMemRegionsRegister(NULL, &told);
}

static void regions_resize(const struct region *regions, size_t count)
{
    nvtxMemRegionsResizeBatch_t told = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                        .structSize = sizeof told,
                                        .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                        .regionDescCount = count,
                                        .regionDescElementSize = sizeof *regions,
                                        .regionDescElements = regions};
    nvtxMemRegionsResize(NULL, &told);
}

static void regions_end(void *const *regions, size_t count, int by_handle)
{
    nvtxMemRegionRef_t elements[REGIONS_MAX];
    nvtxMemRegionsUnregisterBatch_t told = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                            .structSize = sizeof told,
                                            .refType = by_handle ? NVTX_MEM_REGION_REF_TYPE_HANDLE
                                                                 : NVTX_MEM_REGION_REF_TYPE_POINTER,
                                            .refCount = count,
                                            .refElementSize = sizeof *elements,
                                            .refElements = elements};
    for (size_t i = 0; i < count; i++)
        elements[i].pointer = regions[i];
    nvtxMemRegionsUnregister(NULL, &told);
}

static void region_name(void *region, const wchar_t *name)
{
    nvtxMemRegionNameDesc_t element = {.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER,
                                       .nameType = NVTX_MESSAGE_TYPE_UNICODE,
                                       .region.pointer = region,
                                       .name.unicode = name};
    nvtxMemRegionsNameBatch_t told = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                      .structSize = sizeof told,
                                      .regionCount = 1,
                                      .regionElementSize = sizeof element,
                                      .regionElements = &element};
    nvtxMemRegionsName(NULL, &told);
}

/* Permissions are memshim's no business: their functions are not filled in, and answer nothing. */
static int permissions(void)
{
    return nvtxMemPermissionsCreate(NULL, 0) != NULL;
}

#else
#include <dlfcn.h>
#include <stdlib.h>

#include "vendor/abi/nvtx.h"

enum { PLACES = 63 };
static uint16_t module_version = MS_NVTX_EXT_MEMORY_VERSION, module_id = MS_NVTX_EXT_MEMORY,
                structure_version = MS_NVTX_EXT_MEMORY_VERSION, structure_more;
static intptr_t places[PLACES];
static int answer = -1;

static void regions_attach(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*start)(struct ms_nvtx_ext_module *) =
        library ? (int (*)(struct ms_nvtx_ext_module *))dlsym(library, "InitializeInjectionNvtxExtension")
                : NULL;
    struct ms_nvtx_ext_segment segment = {MS_NVTX_EXT_MEMORY_SEGMENT, PLACES, places};
    struct ms_nvtx_ext_module module = {3, sizeof module, module_id, module_version, 1, &segment, NULL, NULL};
    answer = start ? start(&module) : 0;
    for (unsigned i = 0; i < PLACES; i++) {
        if (!answer || places[i] == MS_NVTX_EXT_FRESH)
            places[i] = MS_NVTX_EXT_DISABLED;
    }
}

static intptr_t place_of(enum ms_nvtx_memory place)
{
    if (answer < 0)
        regions_attach();
    return places[place] == MS_NVTX_EXT_DISABLED ? 0 : places[place];
}

#define HEAD(type) .version = structure_version, .size = (uint16_t)(sizeof(type) + structure_more)
#define TELL(place, told)                                                                                    \
    do {                                                                                                     \
        void (*function)(void *, const void *) = (void (*)(void *, const void *))place_of(place);            \
        if (function)                                                                                        \
            function(NULL, told);                                                                            \
    } while (0)

static void *heap_begin(void *address, size_t bytes, const char *name)
{
    struct ms_nvtx_range range = {.bytes = bytes, .address = address};
    struct ms_nvtx_heap told = {HEAD(struct ms_nvtx_heap),
                                .usage = 1,
                                .type = MS_NVTX_MEMORY_ADDRESSES,
                                .range_bytes = sizeof range,
                                .range = &range,
                                .text_type = MS_NVTX_TEXT_ASCII,
                                .text = name};
    void *(*function)(void *, const struct ms_nvtx_heap *) =
        (void *(*)(void *, const struct ms_nvtx_heap *))place_of(MS_NVTX_HEAP_REGISTER);
    return function ? function(NULL, &told) : NULL;
}

static void heap_end(void *heap)
{
    TELL(MS_NVTX_HEAP_UNREGISTER, heap);
}

static void heap_empty(void *heap)
{
    TELL(MS_NVTX_HEAP_RESET, heap);
}

static void regions_begin(void *heap, const struct region *regions, size_t count, void **handles)
{
    struct ms_nvtx_regions told = {HEAD(struct ms_nvtx_regions),
                                   .type = MS_NVTX_MEMORY_ADDRESSES,
                                   .heap = heap,
                                   .count = count,
                                   .stride = sizeof *regions,
                                   .ranges = regions,
                                   .handles = (const void **)handles};
    TELL(MS_NVTX_REGIONS_REGISTER, &told);
}

static void regions_resize(const struct region *regions, size_t count)
{
    struct ms_nvtx_resizes told = {HEAD(struct ms_nvtx_resizes), .type = MS_NVTX_MEMORY_ADDRESSES,
                                   .count = count, .stride = sizeof *regions, .ranges = regions};
    TELL(MS_NVTX_REGIONS_RESIZE, &told);
}

static void regions_end(void *const *regions, size_t count, int by_handle)
{
    struct ms_nvtx_ends told = {HEAD(struct ms_nvtx_ends),
                                .by = by_handle ? MS_NVTX_REGION_BY_HANDLE : MS_NVTX_REGION_BY_POINTER,
                                .count = count, .stride = sizeof *regions, .regions = regions};
    TELL(MS_NVTX_REGIONS_UNREGISTER, &told);
}

static void region_name(void *region, const wchar_t *name)
{
    struct ms_nvtx_region_name element = {
        .by = MS_NVTX_REGION_BY_POINTER, .text_type = MS_NVTX_TEXT_WIDE, .region = region, .text = name};
    struct ms_nvtx_names told = {HEAD(struct ms_nvtx_names), .count = 1, .stride = sizeof element,
                                 .names = &element};
    TELL(MS_NVTX_REGIONS_NAME, &told);
}

static int permissions(void)
{
    return place_of(MS_NVTX_PERMISSIONS_ASSIGN) != 0;
}
#endif

#endif
