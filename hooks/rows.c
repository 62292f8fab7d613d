/* rows.c - the table of rows, in the order of enum ms_row. */
#include "hooks/hook.h"

#define MS_HOOK(result, symbol, ...) extern const struct ms_row_info ms_row_##symbol;
#define MS_HOOK0(result, symbol, ...) extern const struct ms_row_info ms_row_##symbol;
#define MS_PASS(symbol, class, reason)
#include "hooks/cuda_driver.def"
#include "hooks/cuda_runtime.def"
#undef MS_HOOK
#undef MS_HOOK0

#define MS_HOOK(result, symbol, ...) [MS_ROW_##symbol] = &ms_row_##symbol,
#define MS_HOOK0(result, symbol, ...) [MS_ROW_##symbol] = &ms_row_##symbol,
const struct ms_row_info *const ms_rows[MS_ROW_COUNT] = {
#include "hooks/cuda_driver.def"
#include "hooks/cuda_runtime.def"
};
