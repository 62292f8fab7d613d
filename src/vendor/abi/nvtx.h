/*
 * How a tool attaches to NVTX, version 3, and to its libraries of version 2.
 *
 * Own declarations of public facts (NVTX 3.2, nvtxDetail/nvtxTypes.h, nvToolsExt.h): names are ours, values,
 * sizes and offsets equal the vendor's on 64-bit Linux.
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

#endif
