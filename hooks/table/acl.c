/* acl.c - the wrappers of the Ascend runtime interface: every row of acl.def. */
#include "vendor/abi/acl_fn.h" /* a row that differs from it does not compile */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_ACL
#include "hooks/table/acl.def"
