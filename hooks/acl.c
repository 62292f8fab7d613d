/* acl.c - the wrappers of the Ascend runtime interface: every row of acl.def. */
#include "gpu/abi/acl_fn.h" /* a row that differs from it does not compile */
#include "hooks/wrap.h"

#define MS_FAMILY MS_API_ACL
#define MS_EXPORTS(result, fn, params, forwarded, reached) MS_EXPORTED(result, fn, params, forwarded, reached, fn, MS_NODE_NONE)
#include "hooks/acl.def"
