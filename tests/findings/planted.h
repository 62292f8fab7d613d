/* planted.h - what the programs of tests/findings have in common: see planted.c. */
#ifndef MS_TESTS_FINDINGS_PLANTED_H
#define MS_TESTS_FINDINGS_PLANTED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "vendor/abi/cublas.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"
#include "include/memshim.h"

#define SCENE __attribute__((noinline)) void

enum { KIB = 1 << 10, MIB = 1 << 20, MANY = 120, GROWING = 400 };

/* Not known when compiled, so that loops stay one place. */
extern volatile int many;

/* A call that must not fail did, and the program ends with 3. */
void must(int status, const char *what);
#define MUST(call) must((int)(call), #call)

/* A millisecond. */
void rest_a_moment(void);

/* From now on CLOCK_MONOTONIC stands still, but for what is passed: one of so many parts of a time by which
 * the scene is much longer than all that was before it. */
void take_clock(void);
void pass_time(unsigned parts);

#define PLANTED(name) void name(bool clean);
#include "planted.def"
#undef PLANTED

#endif
