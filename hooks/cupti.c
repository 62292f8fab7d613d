/* cupti.c - the wrappers of CUPTI's interface: every row of cupti.def. */
#include "hooks/wrap.h"

#define MS_FAMILY MS_API_CUPTI
#include "hooks/cupti.def"
