/*
 * cuGetProcAddress: (name, version, flags) to a function. The newest version that is not newer than asked for
 * wins; the per-thread flag prefers the per-thread twin and falls back to the plain function. The table holds
 * this library's own functions (it is linked with -Bsymbolic): a preloaded one never slips in.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

/* Only addresses are needed here, and not every exported function has a prototype. */
#define X(name, version, twin, symbol) extern const char lookup_##symbol[] __asm__(#symbol);
#include "sim/cuda/exports.def"
#undef X

struct lookup_row {
    const char *name;
    int version;
    bool per_thread;
    const void *function;
};

static const struct lookup_row rows[] = {
#define X(name, version, twin, symbol) {#name, version, twin, lookup_##symbol},
#include "sim/cuda/exports.def"
#undef X
};

#define ROWS (sizeof rows / sizeof rows[0])

/* The first row of a name; rows are sorted by name. */
static const struct lookup_row *find_name(const char *name)
{
    size_t low = 0, high = ROWS;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(rows[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ROWS && !strcmp(rows[low].name, name) ? &rows[low] : NULL;
}

static const void *find_function(const struct lookup_row *first, int version, bool per_thread)
{
    const struct lookup_row *best = NULL;

    for (const struct lookup_row *row = first; row < rows + ROWS && !strcmp(row->name, first->name); row++)
        if (row->version <= version && (!row->per_thread || per_thread))
            best = row; /* twins come after the plain ones, newer after older */
    return best ? best->function : NULL;
}

static CUresult look_up(const char *name, void **function_p, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *found_p)
{
    const cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

    if (!name || !function_p || version < 0 || version > CUDA_VERSION || (flags & ~known) || flags == known)
        return CUDA_ERROR_INVALID_VALUE;
    const struct lookup_row *first = find_name(name);
    const void *function =
        first ? find_function(first, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) : NULL;
    *function_p = (void *)(uintptr_t)function;
    if (found_p)
        *found_p = function ? CU_GET_PROC_ADDRESS_SUCCESS
                   : first  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

SIM_API(cuGetProcAddress_v2)
(const char *name, void **function_p, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found_p)
{
    SIM_ENTER_RAW(cuGetProcAddress_v2);
    return look_up(name, function_p, version, flags, found_p);
}

/* The older form has no place to say why: it answers with a status. */
SIM_API(cuGetProcAddress)(const char *name, void **function_p, int version, cuuint64_t flags)
{
    SIM_ENTER_RAW(cuGetProcAddress);
    CUresult status = look_up(name, function_p, version, flags, NULL);

    return status == CUDA_SUCCESS && !*function_p ? CUDA_ERROR_NOT_FOUND : status;
}
