/*
 * The product of matrices that the simulated cuBLAS asks for where it computes (MEMSIM_COMPUTE): a kernel of
 * the few that do something (body.c), by the name memsim_multiply, with what it multiplies as its arguments.
 * Matrices are stored by columns. Each number of the result is summed up in double precision. What it touches
 * has to be there, column by column of the result. No lock is held between columns; nothing is allocated.
 */
#include <string.h>

#include "sim/cuda/code/code.h"
#include "sim/cuda/code/multiply.h"

#define P(name) (p[SIM_MULTIPLY_##name])

enum { ROWS = 64 }; /* summed up side by side, so that a column is read along its length */

/* The bytes from a matrix's first number to its last. */
static size_t span(uint64_t rows, uint64_t columns, uint64_t stride, size_t bytes)
{
    return rows && columns ? ((columns - 1) * stride + rows) * bytes : 0;
}

struct operands {
    CUdeviceptr a, b, c, d;
    double alpha, beta;
};

static bool can_touch(const struct CUctx_st *ctx, const uint64_t *p, const struct operands *at, size_t bytes)
{
    uint64_t m = P(M), n = P(N), k = P(K);
    bool turn_a = P(FLAGS) & SIM_MULTIPLY_TURN_A, turn_b = P(FLAGS) & SIM_MULTIPLY_TURN_B;
    size_t a = span(turn_a ? k : m, turn_a ? m : k, P(LDA), bytes);
    size_t b = span(turn_b ? n : k, turn_b ? k : n, P(LDB), bytes);

    if (k && (!sim_body_reaches(ctx, at->a, a, false) || !sim_body_reaches(ctx, at->b, b, false)))
        return false;
    if (at->beta != 0 && !sim_body_reaches(ctx, at->c, span(m, n, P(LDC), bytes), false))
        return false;
    if (P(BIAS) && !sim_body_reaches(ctx, P(BIAS), m * bytes, false))
        return false;
    return sim_body_reaches(ctx, at->d, span(m, n, P(LDD), bytes), true);
}

/* Column j of the result, some rows of it at a time. */
#define COLUMN(type)                                                                                         \
    static void sum_##type(const uint64_t *p, const struct operands *at, uint64_t j, uint64_t first,         \
                           unsigned count, double *sums)                                                     \
    {                                                                                                        \
        const type *a = (const type *)(uintptr_t)at->a, *b = (const type *)(uintptr_t)at->b;                 \
        bool turn_a = P(FLAGS) & SIM_MULTIPLY_TURN_A, turn_b = P(FLAGS) & SIM_MULTIPLY_TURN_B;               \
                                                                                                             \
        for (uint64_t l = 0; l < P(K); l++) {                                                                \
            double factor = turn_b ? b[l * P(LDB) + j] : b[j * P(LDB) + l];                                  \
            const type *from = turn_a ? a + first * P(LDA) + l : a + l * P(LDA) + first;                     \
            for (unsigned i = 0; i < count; i++)                                                             \
                sums[i] += factor * from[turn_a ? i * P(LDA) : i];                                           \
        }                                                                                                    \
    }                                                                                                        \
    static void column_##type(const uint64_t *p, const struct operands *at, uint64_t j)                      \
    {                                                                                                        \
        const type *c = (const type *)(uintptr_t)at->c, *bias = (const type *)(uintptr_t)P(BIAS);            \
        type *d = (type *)(uintptr_t)at->d;                                                                  \
                                                                                                             \
        for (uint64_t first = 0; first < P(M); first += ROWS) {                                              \
            unsigned count = P(M) - first < ROWS ? (unsigned)(P(M) - first) : ROWS;                          \
            double sums[ROWS] = {0};                                                                         \
            sum_##type(p, at, j, first, count, sums);                                                        \
            for (unsigned i = 0; i < count; i++) {                                                           \
                double more = at->beta == 0 ? 0 : at->beta * c[j * P(LDC) + first + i];                      \
                if (bias)                                                                                    \
                    more += bias[first + i];                                                                 \
                d[j * P(LDD) + first + i] = (type)(at->alpha * sums[i] + more);                              \
            }                                                                                                \
        }                                                                                                    \
    }
COLUMN(float)
COLUMN(double)

/* A factor is there, or on the device, where it is read now. */
static bool factor(const struct CUctx_st *ctx, const uint64_t *p, uint64_t given, double *value_p)
{
    size_t bytes = P(FLAGS) & SIM_MULTIPLY_DOUBLE ? sizeof(double) : sizeof(float);
    float narrow;

    if (!(P(FLAGS) & SIM_MULTIPLY_FACTORS_THERE)) {
        memcpy(value_p, &given, sizeof *value_p);
        return true;
    }
    sim_memory_read_lock();
    bool there = sim_body_reaches(ctx, given, bytes, false);
    if (there && bytes == sizeof(double)) {
        memcpy(value_p, (const void *)(uintptr_t)given, bytes);
    } else if (there) {
        memcpy(&narrow, (const void *)(uintptr_t)given, bytes);
        *value_p = narrow;
    }
    sim_memory_unlock();
    return there;
}

static bool multiply_one(const struct CUctx_st *ctx, const uint64_t *p, const struct operands *at)
{
    bool wide = P(FLAGS) & SIM_MULTIPLY_DOUBLE, there = true;

    for (uint64_t j = 0; there && j < P(N); j++) {
        sim_memory_read_lock();
        there = can_touch(ctx, p, at, wide ? sizeof(double) : sizeof(float));
        if (there)
            (wide ? column_double : column_float)(p, at, j);
        sim_memory_unlock();
    }
    return there;
}

CUresult sim_body_multiply(const uint64_t *p, struct sim_queue *queue)
{
    size_t bytes = P(FLAGS) & SIM_MULTIPLY_DOUBLE ? sizeof(double) : sizeof(float);
    struct operands at;

    if (!factor(queue->ctx, p, P(ALPHA), &at.alpha) || !factor(queue->ctx, p, P(BETA), &at.beta))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if ((P(A) | P(B) | P(C) | P(D) | P(BIAS)) % bytes)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    for (uint64_t i = 0; i < P(COUNT); i++) {
        at.a = P(A) + i * P(STEP_A) * bytes;
        at.b = P(B) + i * P(STEP_B) * bytes;
        at.c = P(C) + i * P(STEP_C) * bytes;
        at.d = P(D) + i * P(STEP_D) * bytes;
        if (!multiply_one(queue->ctx, p, &at))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}
