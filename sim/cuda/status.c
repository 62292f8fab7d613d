/*
 * Names and texts of status codes. They need no cuInit.
 */
#include "sim/cuda/sim.h"

SIM_API(cuGetErrorName)(CUresult status, const char **name_p)
{
    SIM_ENTER_RAW(cuGetErrorName);
    if (!name_p)
        return CUDA_ERROR_INVALID_VALUE;
    switch (status) {
#define X(name, text)                                                                                        \
    case name:                                                                                               \
        *name_p = #name;                                                                                     \
        return CUDA_SUCCESS;
#include "sim/cuda/status.def"
#undef X
    }
    *name_p = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGetErrorString)(CUresult status, const char **text_p)
{
    SIM_ENTER_RAW(cuGetErrorString);
    if (!text_p)
        return CUDA_ERROR_INVALID_VALUE;
    switch (status) {
#define X(name, text)                                                                                        \
    case name:                                                                                               \
        *text_p = text;                                                                                      \
        return CUDA_SUCCESS;
#include "sim/cuda/status.def"
#undef X
    }
    *text_p = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
