/* tries.h - settings of PyTorch's allocator, tried on a course of tensors by the model.
 *
 * Floor 5. */
#ifndef MS_CLI_TORCH_TRIES_H
#define MS_CLI_TORCH_TRIES_H

#include "cli/torch/torch.h"

struct ms_torch_try {
    const char *settings;          /* "": as it comes */
    const char *reason;            /* for people; NULL as it comes */
    const char *excludes;          /* what it does not go with; NULL */
    struct ms_torch_result result; /* on a device with room to spare */
    uint64_t least; /* the least device for the tensors, in whole granules; 0: not looked for */
    /* memshim tune's alone: */
    uint64_t lost_ns; /* in the driver's calls */
    bool is_shown;    /* on its screen */
    bool is_least;    /* reserves so much at least: with work queued it is more */
};

enum { MS_TORCH_TRIES_MOST = 24 };

/** All of them that there are on such devices, PyTorch as it comes first, on devices of so many bytes
 * (UINT64_MAX: any). Returns how many, 0 where the framework there has an allocator of its own, or -1 without
 * memory. */
int ms_torch_try_all(const struct ms_course *course, uint64_t capacity, struct ms_torch_try *tries);
/** Fills in `least`. 0, or -1 without memory. */
int ms_torch_try_least(const struct ms_course *course, struct ms_torch_try *one);
/** The one that reserves least, by a hundredth at least, of those that go to the end; the first of equal
 * ones. */
size_t ms_torch_try_best(const struct ms_torch_try *tries, size_t count);

/** True where what the model has, as the program ran, is not what it had, by more than a fiftieth. */
static inline bool ms_torch_is_off(uint64_t told, uint64_t had)
{
    return told > had ? told - had > had / 50 : had - told > had / 50;
}

#endif
