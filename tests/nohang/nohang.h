/*
 * nohang.h - what the programs that hold the device share.
 *
 * Each program holds a stream with something that only the host ends, and meanwhile does what the vendor lets
 * it do without waiting. It ends natively, so it has to end under memshim too. Nothing here knows of
 * memshim. */
#ifndef MS_TESTS_NOHANG_H
#define MS_TESTS_NOHANG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/program.h"

#define MIB ((size_t)1 << 20)

struct program {
    const char *name;
    void (*run)(void);
    const char *environment; /* NAME=VALUE words for the simulator, or NULL */
};
extern const struct program programs_plain[], programs_full[], programs_threads[], programs_streams[],
    programs_pools[], programs_bound[];

/** What holds a stream: a kernel that reads a flag, a wait for a value in memory, a host function. */
enum hold_kind { HOLD_KERNEL, HOLD_VALUE, HOLD_FUNCTION };
extern enum hold_kind hold_kind;

struct helper;
struct hold {
    volatile uint32_t *flag; /* mapped host memory */
    CUdeviceptr device_flag;
    CUfunction kernel;
    struct helper *later; /* ends the hold when its time is over, where the kernel cannot */
};

/** Prepares a hold for the current device, so that nothing needs memory later. */
void hold_prepare(struct hold *hold);
/** Holds the stream until hold_end, or `limit_ms` if that is not 0. */
void hold_begin(struct hold *hold, cudaStream_t stream, unsigned limit_ms);
void hold_end(struct hold *hold);

cudaStream_t new_stream(void); /* one that waits for no other */
void *take(size_t bytes);
/** As many blocks as there is memory for, at most `most`. */
int take_all(void **blocks, int most, size_t bytes);
void give_all(void **blocks, int count);
/** Runs a function in a thread of its own; finish waits for it. */
struct helper *start(void (*function)(void *), void *argument);
void finish(struct helper *helper);

#endif
