/*
 * How a tool attaches to MSTX.
 *
 * Own declarations of public facts (CANN's mstx/ms_tools_ext.h and mstx_detail/mstx_types.h): names are ours,
 * values equal the vendor's. Streams are handed on and never looked into.
 */
#ifndef MEMSHIM_GPU_ABI_MSTX_H
#define MEMSHIM_GPU_ABI_MSTX_H

#include <stdint.h>

enum { MS_MSTX_SUCCESS = 0, MS_MSTX_FAIL = 1 };
enum { MS_MSTX_MODULE_CORE = 1, MS_MSTX_MODULE_DOMAIN = 2 };

/* Places in the tables of the modules. */
enum { MS_MSTX_MARK_A = 1, MS_MSTX_RANGE_START_A, MS_MSTX_RANGE_END, MS_MSTX_GET_TOOL_ID };
enum {
    MS_MSTX_DOMAIN_CREATE_A = 1,
    MS_MSTX_DOMAIN_DESTROY,
    MS_MSTX_DOMAIN_MARK_A,
    MS_MSTX_DOMAIN_RANGE_START_A,
    MS_MSTX_DOMAIN_RANGE_END
};

/* A table has the places of functions; the size that comes with it is one more than its last place. */
typedef void (*ms_mstx_function_t)(void);
typedef int (*ms_mstx_tables_t)(int module, ms_mstx_function_t ***table_p, unsigned *size_p);
typedef int (*ms_mstx_init_t)(ms_mstx_tables_t tables);

#endif
