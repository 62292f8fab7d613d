/* cuda_runtime.c - the wrappers of the CUDA runtime interface: every row of cuda_runtime.def. */
#include "hooks/wrap.h"

#define MS_FAMILY MS_API_CUDA_RUNTIME
#include "hooks/cuda_runtime.def"
