/* cupti.c - the wrappers of CUPTI's interface: every row of cupti.def. */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_CUPTI
#include "hooks/table/cupti.def"
