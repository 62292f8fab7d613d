/* layouts.c - what the parameters of kernels are, as the driver tells (cuFuncGetParamInfo and
 * cuKernelGetParamInfo, CUDA 12.4).
 *
 * Floor 3. What was asked once is kept by the function's handle, in a table that is read without a lock. Its
 * sizes count until a module or a context ends, since the handle may then be another function's. Entries are
 * replaced and never changed, and their memory stays: somebody may be reading. A kernel of a library may be
 * launched in the place of a function but is no function to the driver's questions, so what handed it out is
 * seen (cuLibraryGetKernel). */
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "vendor/gpu.h"
#include "hooks/follow/uses.h"

enum { ENTRIES = 1 << 14, TRIES = 16, PARAMETERS_MAX = 4096, KEPT_MAX = 1 << 17 };

struct layout {
    CUfunction kernel;
    uint32_t generation;
    uint16_t is_kernel, count;
    uint16_t sizes[];
};

static struct layout *_Atomic *entries;
static _Atomic uint32_t generation, kept;
static atomic_bool lost_kernels; /* of some handles nobody knows whether they are kernels */

/* libmemshim-uses.so has it: without that one calls by name are not seen, and nothing may be told. */
extern const char memshim_uses_companion __attribute__((weak, visibility("default")));

void ms_layouts_start(void)
{
    if (ms_uses_wanted() && !&memshim_uses_companion) {
        ms_uses_no_layouts();
        ms_diagnostic(MS_LOG_WARN, "uses",
                      "MEMSHIM_USES: libmemshim-uses.so is not preloaded before libmemshim.so, so nothing is "
                      "told of uses");
    }
    entries = ms_uses_wanted() ? ms_arena_alloc(ENTRIES * sizeof *entries) : NULL;
    atomic_store(&lost_kernels, false);
    atomic_store(&kept, 0);
}

void ms_layouts_forget(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static CUresult layouts_query(const struct ms_gpu *gpu, CUfunction kernel, bool is_kernel, size_t index,
                              size_t *bytes_p)
{
    size_t offset;

    *bytes_p = 0;
    if (is_kernel)
        return gpu->kernel_param_info ? gpu->kernel_param_info((CUkernel)kernel, index, &offset, bytes_p)
                                      : CUDA_ERROR_NOT_SUPPORTED;
    return gpu->func_param_info(kernel, index, &offset, bytes_p);
}

/* How many there are; -1 if the driver does not say. The one behind the last is an invalid value. */
static int count_of(const struct ms_gpu *gpu, CUfunction kernel, bool is_kernel)
{
    size_t bytes;

    for (int i = 0; i < PARAMETERS_MAX; i++) {
        CUresult status = layouts_query(gpu, kernel, is_kernel, (size_t)i, &bytes);
        if (status == CUDA_ERROR_INVALID_VALUE)
            return i;
        if (status != CUDA_SUCCESS || bytes > UINT16_MAX)
            return -1;
    }
    return -1;
}

static struct layout *_Atomic *layouts_place_of(CUfunction kernel, unsigned number)
{
    return &entries[((((uintptr_t)kernel >> 4) * 0x9e3779b97f4a7c15u >> 40) + number) % ENTRIES];
}

static const struct layout *layouts_find(CUfunction kernel)
{
    for (unsigned i = 0; i < TRIES; i++) {
        const struct layout *layout = atomic_load_explicit(layouts_place_of(kernel, i), memory_order_acquire);
        if (!layout || layout->kernel == kernel)
            return layout;
    }
    return NULL;
}

/* In the place of what was known of the handle, or a free one. */
static bool layouts_keep(struct layout *layout)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct layout *_Atomic *place = layouts_place_of(layout->kernel, i);
        struct layout *there = atomic_load_explicit(place, memory_order_acquire);
        if ((!there || there->kernel == layout->kernel) &&
            atomic_compare_exchange_strong(place, &there, layout))
            return true;
    }
    return false;
}

/* Asks, and keeps the answer where there is room. `*count_p` -1: the driver does not say. */
static const struct layout *layouts_learn(const struct ms_gpu *gpu, CUfunction kernel, bool is_kernel,
                                          int *count_p)
{
    uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    struct layout *layout;
    size_t bytes;

    *count_p = count_of(gpu, kernel, is_kernel);
    if (*count_p < 0 || atomic_load_explicit(&kept, memory_order_relaxed) >= KEPT_MAX ||
        !(layout = ms_arena_alloc(sizeof *layout + (size_t)*count_p * sizeof layout->sizes[0])))
        return NULL;
    atomic_fetch_add_explicit(&kept, 1, memory_order_relaxed);
    layout->kernel = kernel;
    layout->generation = now;
    layout->is_kernel = is_kernel;
    layout->count = (uint16_t)*count_p;
    for (int i = 0; i < *count_p; i++) {
        layouts_query(gpu, kernel, is_kernel, (size_t)i, &bytes);
        layout->sizes[i] = (uint16_t)bytes;
    }
    return layouts_keep(layout) ? layout : NULL;
}

void ms_layout_is_kernel(const struct ms_gpu *gpu, CUkernel kernel)
{
    int count;

    if (entries && kernel && gpu->func_param_info && !layouts_learn(gpu, (CUfunction)kernel, true, &count))
        atomic_store_explicit(&lost_kernels, true, memory_order_relaxed);
}

bool ms_layout_each(const struct ms_gpu *gpu, CUfunction kernel, void *const *arguments,
                    ms_argument_func_t each, void *arg)
{
    const struct layout *layout = entries ? layouts_find(kernel) : NULL;
    bool is_kernel = layout && layout->is_kernel;
    int count = layout ? layout->count : -1;

    if (!gpu->func_param_info || !entries)
        return false;
    if (!layout && atomic_load_explicit(&lost_kernels, memory_order_relaxed))
        return false;
    if (!layout || layout->generation != atomic_load_explicit(&generation, memory_order_relaxed))
        layout = layouts_learn(gpu, kernel, is_kernel, &count);
    for (int i = 0; i < count; i++) {
        size_t bytes = layout ? layout->sizes[i] : 0;
        if (!layout)
            layouts_query(gpu, kernel, is_kernel, (size_t)i, &bytes);
        if (arguments[i])
            each(arg, arguments[i], bytes);
    }
    return count >= 0;
}
