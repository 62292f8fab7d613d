/* cuda_uses.c - the wrappers of what uses memory: every row of cuda_uses.def.
 *
 * Floor 3. They stand behind lookups where MEMSHIM_USES is on. What a program names itself reaches them by
 * libmemshim-uses.so, whose functions jump to those that are exported here under names of memshim's own. */
#define MS_EXPORTS(result, fn, params, forwarded, reached)                                                   \
    MS_EXPORTED(result, fn, params, forwarded, reached, memshim_use_##fn, MS_NODE_NONE)
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_CUDA_DRIVER
#include "hooks/table/cuda_uses.def"
