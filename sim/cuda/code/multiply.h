/*
 * The arguments of the kernel memsim_multiply, between multiply.c, which runs it, and the simulated cuBLAS,
 * which launches it: D = alpha A B + beta C + bias, for each of a number of matrices one behind the other.
 * Facts alone: nothing here is called.
 */
#ifndef MEMSIM_CUDA_MULTIPLY_H
#define MEMSIM_CUDA_MULTIPLY_H

/** Each is 64 bits wide: addresses, numbers of rows and columns, distances in elements, factors as doubles or
 * as addresses of them. */
enum {
    SIM_MULTIPLY_FLAGS,
    SIM_MULTIPLY_M, /* of the result: rows */
    SIM_MULTIPLY_N, /* columns */
    SIM_MULTIPLY_K, /* and what is summed over */
    SIM_MULTIPLY_COUNT,
    SIM_MULTIPLY_A,
    SIM_MULTIPLY_B,
    SIM_MULTIPLY_C,
    SIM_MULTIPLY_D,
    SIM_MULTIPLY_LDA, /* from column to column */
    SIM_MULTIPLY_LDB,
    SIM_MULTIPLY_LDC,
    SIM_MULTIPLY_LDD,
    SIM_MULTIPLY_STEP_A, /* from matrix to matrix */
    SIM_MULTIPLY_STEP_B,
    SIM_MULTIPLY_STEP_C,
    SIM_MULTIPLY_STEP_D,
    SIM_MULTIPLY_ALPHA,
    SIM_MULTIPLY_BETA,
    SIM_MULTIPLY_BIAS, /* a column that is added to each; 0: none */
    SIM_MULTIPLY_ARGUMENTS
};

/** Of SIM_MULTIPLY_FLAGS. */
enum {
    SIM_MULTIPLY_DOUBLE = 1, /* else float */
    SIM_MULTIPLY_TURN_A = 2, /* transposed */
    SIM_MULTIPLY_TURN_B = 4,
    SIM_MULTIPLY_FACTORS_THERE = 8 /* on the device */
};

#endif
