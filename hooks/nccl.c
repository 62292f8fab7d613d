/* nccl.c - the wrappers of the NCCL interface: every row of nccl.def. */
#include "hooks/wrap.h"

#define MS_FAMILY MS_API_NCCL
#include "hooks/nccl.def"
