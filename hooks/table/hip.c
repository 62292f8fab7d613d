/* hip.c - the wrappers of the HIP runtime interface: every row of hip.def.
 *
 * One name without a version satisfies a reference at any of the library's nodes (hip_4.2 ...), which are the
 * same in every version of the library: which of two that are loaded a call belongs to, its caller's
 * dependencies say (libraries.c). */
#define MS_KEEPS_ERROR
#define MS_ONE_HOOK
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_HIP
#include "hooks/table/hip.def"
