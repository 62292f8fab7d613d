/* rows.c - the table of rows, in the order of enum ms_row, and that of interfaces. */
#include "hooks/hook.h"

#include "vendor/gpu.h"

#define MS_HOOK(result, symbol, ...)  extern const struct ms_row_info ms_row_##symbol;
#define MS_HOOK0(result, symbol, ...) extern const struct ms_row_info ms_row_##symbol;
#define MS_PASS(symbol, class, reason)
#include "hooks/table/rows.def"
#undef MS_HOOK
#undef MS_HOOK0

#define MS_HOOK(result, symbol, ...)  [MS_ROW_##symbol] = &ms_row_##symbol,
#define MS_HOOK0(result, symbol, ...) [MS_ROW_##symbol] = &ms_row_##symbol,
const struct ms_row_info *const ms_rows[MS_ROW_COUNT] = {
#include "hooks/table/rows.def"
};

#define MS_FAMILY_ROW(api, tag_, title, first, second, vendor_, status, other)                               \
    [MS_API_##api] = {#tag_, {first, second}, vendor_, {status, other}},
const struct ms_family ms_families[MS_API_COUNT] = {
#include "hooks/table/families.def"
};
