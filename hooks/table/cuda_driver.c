/* cuda_driver.c - the wrappers of the CUDA driver interface: every row of cuda_driver.def. */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_CUDA_DRIVER
#include "hooks/table/cuda_driver.def"
