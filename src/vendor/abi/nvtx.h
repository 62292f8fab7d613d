/*
 * How a tool attaches to NVTX, version 3, to its libraries of version 2, and to its extension for memory.
 *
 * Own declarations of public facts (NVTX 3.2, nvtxDetail/nvtxTypes.h, nvToolsExt.h; of the extension
 * nvToolsExtMem.h, nvtxDetail/nvtxExtTypes.h, nvtxExtInit.h, nvtxExtImplMem_v1.h of the wheel nvidia-nvtx
 * 13.2): names are ours, values, sizes and offsets equal the vendor's on 64-bit Linux.
 */
#ifndef MEMSHIM_GPU_ABI_NVTX_H
#define MEMSHIM_GPU_ABI_NVTX_H

#include <stddef.h>
#include <stdint.h>

enum { MS_NVTX_TABLE_CALLBACKS = 1 };
enum { MS_NVTX_MODULE_CORE = 1, MS_NVTX_MODULE_CORE2 = 5 };
enum { MS_NVTX_TEXT_ASCII = 1, MS_NVTX_TEXT_WIDE = 2, MS_NVTX_TEXT_REGISTERED = 3 };

/* Places in the tables of the modules. */
enum ms_nvtx_core {
    MS_NVTX_MARK_EX = 1,
    MS_NVTX_MARK_A,
    MS_NVTX_MARK_W,
    MS_NVTX_RANGE_START_EX,
    MS_NVTX_RANGE_START_A,
    MS_NVTX_RANGE_START_W,
    MS_NVTX_RANGE_END,
    MS_NVTX_RANGE_PUSH_EX,
    MS_NVTX_RANGE_PUSH_A,
    MS_NVTX_RANGE_PUSH_W,
    MS_NVTX_RANGE_POP
};
enum ms_nvtx_core2 {
    MS_NVTX_DOMAIN_MARK_EX = 1,
    MS_NVTX_DOMAIN_RANGE_START_EX,
    MS_NVTX_DOMAIN_RANGE_END,
    MS_NVTX_DOMAIN_RANGE_PUSH_EX,
    MS_NVTX_DOMAIN_RANGE_POP,
    MS_NVTX_DOMAIN_REGISTER_STRING_A = 10,
    MS_NVTX_DOMAIN_REGISTER_STRING_W,
    MS_NVTX_DOMAIN_CREATE_A,
    MS_NVTX_DOMAIN_CREATE_W
};

struct ms_nvtx_attributes {
    uint16_t version, size; /* size: of this structure, as the program knows it */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t text_type;
    const void *text; /* char, wchar_t, or what a registered string has for a handle */
};

typedef void (*ms_nvtx_function_t)(void);

struct ms_nvtx_callbacks {
    size_t bytes;
    /* An array of places of functions, and how many; nonzero if there is one. */
    int (*module)(int module, ms_nvtx_function_t ***table_p, unsigned *size_p);
};

typedef const void *(*ms_nvtx_tables_t)(uint32_t table);

/* --- extensions: each calls the injection once per object, with the places of its functions --- */

enum { MS_NVTX_EXT_MEMORY = 1 };
enum { MS_NVTX_EXT_MEMORY_VERSION = 0x0102, MS_NVTX_EXT_MEMORY_SEGMENT = 1 };

/* A place without a function holds one of these; anything else in it is called. */
enum { MS_NVTX_EXT_FRESH = 0, MS_NVTX_EXT_DISABLED = 1 };

struct ms_nvtx_ext_segment {
    size_t id, count;
    intptr_t *places;
};

struct ms_nvtx_ext_module {
    uint16_t nvtx_version, size; /* size: of this structure, as the program knows it */
    uint16_t id, version;        /* the version's upper byte changes with what is not compatible */
    size_t segment_count;
    struct ms_nvtx_ext_segment *segments;
    intptr_t (*exports)(uint32_t);
    const void *info;
};

/* Places of the memory extension. The others are about permissions. */
enum ms_nvtx_memory {
    MS_NVTX_HEAP_REGISTER,
    MS_NVTX_HEAP_UNREGISTER,
    MS_NVTX_HEAP_RESET,
    MS_NVTX_REGIONS_REGISTER,
    MS_NVTX_REGIONS_RESIZE,
    MS_NVTX_REGIONS_UNREGISTER,
    MS_NVTX_REGIONS_NAME,
    MS_NVTX_PERMISSIONS_ASSIGN
};

enum { MS_NVTX_MEMORY_ADDRESSES = 1 }; /* `type`: memory by its address */
enum { MS_NVTX_REGION_BY_POINTER = 1, MS_NVTX_REGION_BY_HANDLE = 2 };
#define MS_NVTX_HEAP_PROCESS NULL /* a heap that is always there: the whole process */

struct ms_nvtx_range {
    size_t bytes;
    const void *address;
};

/* Of each structure below `version` is the extension's and `size` its own, as the program knows it. */
struct ms_nvtx_heap {
    uint16_t version, size;
    uint32_t reserved;
    uint32_t usage, type;
    size_t range_bytes;
    const struct ms_nvtx_range *range;
    uint32_t category;
    uint32_t text_type;
    const void *text;
};

struct ms_nvtx_regions {
    uint16_t version, size;
    uint32_t type;
    const void *heap;
    size_t count, stride;
    const void *ranges;
    const void **handles; /* where they are put; may be NULL */
};

struct ms_nvtx_resizes {
    uint16_t version, size;
    uint32_t type;
    size_t count, stride;
    const void *ranges;
};

/* A region by its pointer, or by its handle. */
struct ms_nvtx_ends {
    uint16_t version, size;
    uint32_t by;
    size_t count, stride;
    const void *regions;
};

struct ms_nvtx_region_name {
    uint32_t by, text_type;
    const void *region, *text;
    uint32_t category, reserved;
};

struct ms_nvtx_names {
    uint16_t version, size;
    uint32_t reserved;
    size_t count, stride;
    const void *names;
    size_t reserved_too;
};

#endif
