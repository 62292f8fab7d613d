/*
 * Products that are computed (MEMSIM_COMPUTE=1): which are, and what the kernel that does it is told. Those
 * of float and double matrices by columns are, up to a size; of all others nothing is touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cublas/cublas.h"

/* Multiplications in one product: about a tenth of a second of one processor's time.
 * docs/internals/simulator.md names it. */
#define MOST_STEPS ((double)(1 << 26))

static bool wanted(void)
{
    static int known; /* 0: not yet read; else 1 or 2: on */
    const char *value;

    if (!__atomic_load_n(&known, __ATOMIC_RELAXED)) {
        value = secure_getenv("MEMSIM_COMPUTE");
        if (value && strcmp(value, "0") && strcmp(value, "1") && *value)
            fprintf(stderr, "memsim: MEMSIM_COMPUTE=%s: 0 and 1 are allowed; ignored\n", value);
        __atomic_store_n(&known, value && !strcmp(value, "1") ? 2 : 1, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&known, __ATOMIC_RELAXED) == 2;
}

static bool fits(int64_t rows, int64_t columns, const struct sim_matrix *matrix)
{
    return matrix->stride >= (rows ? rows : 1) && columns >= 0 && matrix->step >= 0;
}

/* A factor as the kernel takes it: its value, or where the device has it. */
static uint64_t factor(const struct sim_gemm *gemm, const void *given)
{
    double value;
    float narrow;
    uint64_t bits;

    if (gemm->factors_there)
        return (uintptr_t)given;
    if (gemm->type == CUDA_R_64F) {
        memcpy(&value, given, sizeof value);
    } else {
        memcpy(&narrow, given, sizeof narrow);
        value = narrow;
    }
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t flags(const struct sim_gemm *gemm)
{
    return (gemm->type == CUDA_R_64F ? SIM_MULTIPLY_DOUBLE : 0) | (gemm->turn_a ? SIM_MULTIPLY_TURN_A : 0) |
           (gemm->turn_b ? SIM_MULTIPLY_TURN_B : 0) | (gemm->factors_there ? SIM_MULTIPLY_FACTORS_THERE : 0);
}

bool sim_compute(const struct sim_gemm *gemm, uint64_t *p)
{
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;

    if (!wanted() || (gemm->type != CUDA_R_32F && gemm->type != CUDA_R_64F) || !gemm->alpha || !gemm->beta)
        return false;
    if (m < 0 || n < 0 || k < 0 || gemm->count < 0 ||
        (double)m * (double)n * (double)k * (double)gemm->count > MOST_STEPS)
        return false;
    if (!fits(gemm->turn_a ? k : m, gemm->turn_a ? m : k, &gemm->a) ||
        !fits(gemm->turn_b ? n : k, gemm->turn_b ? k : n, &gemm->b) || !fits(m, n, &gemm->c) ||
        !fits(m, n, &gemm->d))
        return false;
    const uint64_t all[SIM_MULTIPLY_ARGUMENTS] = {
        [SIM_MULTIPLY_FLAGS] = flags(gemm),
        [SIM_MULTIPLY_M] = (uint64_t)m,
        [SIM_MULTIPLY_N] = (uint64_t)n,
        [SIM_MULTIPLY_K] = (uint64_t)k,
        [SIM_MULTIPLY_COUNT] = (uint64_t)gemm->count,
        [SIM_MULTIPLY_A] = (uintptr_t)gemm->a.memory,
        [SIM_MULTIPLY_B] = (uintptr_t)gemm->b.memory,
        [SIM_MULTIPLY_C] = (uintptr_t)gemm->c.memory,
        [SIM_MULTIPLY_D] = (uintptr_t)gemm->d.memory,
        [SIM_MULTIPLY_LDA] = (uint64_t)gemm->a.stride,
        [SIM_MULTIPLY_LDB] = (uint64_t)gemm->b.stride,
        [SIM_MULTIPLY_LDC] = (uint64_t)gemm->c.stride,
        [SIM_MULTIPLY_LDD] = (uint64_t)gemm->d.stride,
        [SIM_MULTIPLY_STEP_A] = (uint64_t)gemm->a.step,
        [SIM_MULTIPLY_STEP_B] = (uint64_t)gemm->b.step,
        [SIM_MULTIPLY_STEP_C] = (uint64_t)gemm->c.step,
        [SIM_MULTIPLY_STEP_D] = (uint64_t)gemm->d.step,
        [SIM_MULTIPLY_ALPHA] = factor(gemm, gemm->alpha),
        [SIM_MULTIPLY_BETA] = factor(gemm, gemm->beta),
        [SIM_MULTIPLY_BIAS] = (uintptr_t)gemm->bias,
    };
    memcpy(p, all, sizeof all);
    return true;
}
