/* pytorch.c - the wrappers of PyTorch's report of its blocks: every row of pytorch.def.
 *
 * Floor 3. */
#include "hooks/table/wrap.h"

#define MS_FAMILY MS_API_PYTORCH
#include "hooks/table/pytorch.def"
