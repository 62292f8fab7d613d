/*
 * The HIP runtime interface as far as memshim needs it: types, enumerations, structures and constants.
 *
 * Own declarations of public facts (HIP 5.2 and 6.x headers): names, values, sizes and offsets equal the vendor's on
 * 64-bit Linux, and a test compares them where the headers are present. What differs between libamdhip64.so.5 and .so.6
 * is declared once for each. Never include it together with the vendor's header.
 */
#ifndef MEMSHIM_GPU_ABI_HIP_H
#define MEMSHIM_GPU_ABI_HIP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* hipError_t: the numbers are those of CUresult as far as both have a name for it (hip_runtime_api.h, hipError_t). */
typedef enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
} hipError_t;

typedef int hipDevice_t;
typedef struct {
    char bytes[16];
} hipUUID;

#ifdef __cplusplus
}
#endif

#endif
