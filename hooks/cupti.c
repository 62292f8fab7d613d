/* cupti.c - the wrappers of CUPTI's interface: every row of cupti.def. */
#include "hooks/wrap.h"

#define MS_FAMILY MS_API_CUPTI
#define MS_EXPORTS(result, fn, params, forwarded, reached) MS_EXPORTED(result, fn, params, forwarded, reached, fn, MS_NODE_NONE)
#include "hooks/cupti.def"
