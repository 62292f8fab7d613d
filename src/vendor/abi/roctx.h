/*
 * The part of ROCTX's interface that the signatures of hooks/table/roctx.def need.
 *
 * Own declarations of public facts (roctx.h of roctracer 4.1, rocprofiler-sdk-roctx/roctx.h 0.2).
 */
#ifndef MEMSHIM_GPU_ABI_ROCTX_H
#define MEMSHIM_GPU_ABI_ROCTX_H

#include <stdint.h>

typedef uint64_t roctx_range_id_t;

#endif
