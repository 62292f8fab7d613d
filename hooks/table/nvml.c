/* nvml.c - the wrappers of NVML: every row of nvml.def. */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_NVML
#include "hooks/table/nvml.def"
