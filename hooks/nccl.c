/* nccl.c - the wrappers of the NCCL interface: every row of nccl.def. */
#include "hooks/wrap.h"

#define MS_FAMILY MS_API_NCCL
#define MS_EXPORTS(result, fn, params, forwarded, reached) MS_EXPORTED(result, fn, params, forwarded, reached, fn, MS_NODE_NONE)
#include "hooks/nccl.def"
