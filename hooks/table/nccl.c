/* nccl.c - the wrappers of the NCCL interface: every row of nccl.def. */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_NCCL
#include "hooks/table/nccl.def"
