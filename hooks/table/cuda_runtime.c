/* cuda_runtime.c - the wrappers of the CUDA runtime interface: every row of cuda_runtime.def. */
#define MS_EXPORTS(result, fn, params, forwarded, reached)                                                   \
    MS_EXPORTED(result, fn, params, forwarded, reached, ms_at_any_##fn, MS_NODE_NONE)                        \
    MS_SYMVER("ms_at_any_" #fn, #fn "@@MEMSHIM");                                                            \
    MS_RUNTIME_NODES(MS_EXPORTED_AT, result, fn, params, forwarded, reached)
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_CUDA_RUNTIME
#include "hooks/table/cuda_runtime.def"
