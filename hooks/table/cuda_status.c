/* cuda_status.c - the wrappers of what may answer that there was no memory: every row of cuda_status.def. */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_CUDA_DRIVER
#include "hooks/table/cuda_status.def"
