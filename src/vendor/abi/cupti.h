/* cupti.h - what of CUPTI's interface the signatures of hooks/table/cupti.def need. Facts of
 * cupti_callbacks.h and cupti_activity.h (CUDA 13.0): nothing of it is looked into. */
#ifndef MEMSHIM_GPU_ABI_CUPTI_H
#define MEMSHIM_GPU_ABI_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#include "vendor/abi/cuda_driver.h"

typedef enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_NOT_INITIALIZED = 15,
    CUPTI_ERROR_FORCE_INT = 0x7fffffff
} CUptiResult;
typedef enum { CUPTI_ACTIVITY_KIND_FORCE_INT = 0x7fffffff } CUpti_ActivityKind;
typedef enum { CUPTI_CB_DOMAIN_FORCE_INT = 0x7fffffff } CUpti_CallbackDomain;
typedef uint32_t CUpti_CallbackId;
typedef struct CUpti_Subscriber_st *CUpti_SubscriberHandle;
typedef struct CUpti_SubscriberParams CUpti_SubscriberParams;
typedef void (*CUpti_CallbackFunc)(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *);
typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t **, size_t *, size_t *);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext, uint32_t, uint8_t *, size_t, size_t);

#endif
