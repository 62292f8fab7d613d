/*
 * traps.h - what the groups of traps share.
 *
 * A trap is a small part of a program that relies on something the vendor's allocator does. It prints what it
 * sees, in words that are the same on every run; traps.py compares what it prints natively and under memshim.
 * Each runs in a process of its own. Nothing here knows of memshim.
 */
#ifndef MS_TESTS_TRAPS_H
#define MS_TESTS_TRAPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/program.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

struct trap {
    const char *name;
    void (*run)(void);
    const char *environment; /* NAME=VALUE words that the simulator needs for it, or NULL */
};

/* One table per group, ended by a row without a name. */
extern const struct trap traps_order[], traps_free[], traps_identity[], traps_capture[], traps_figures[],
    traps_life[], traps_misc[], traps_share[];

/** A size of each tier: shared 2 MiB, a chunk's part, an allocation of its own. */
extern const size_t trap_sizes[3];
extern const char *const trap_size_names[3];

/** Holds a stream, as a long kernel would, until it is opened, or for `ms` from the time it is closed. */
struct gate {
    atomic_int open;
    unsigned ms;
    double closed_at;
};
void gate_close(struct gate *gate, unsigned ms, cudaStream_t stream);
void gate_close_driver(struct gate *gate, unsigned ms, CUstream stream);
void gate_open(struct gate *gate);

/** Memory that must be there; ends the program otherwise. */
void *take(size_t bytes);
CUdeviceptr take_driver(size_t bytes);

/** Fills what `differing` looks at, in stream order. */
void fill(void *device, size_t bytes, int value, cudaStream_t stream);
/** How many of the first, last and some middle bytes of device memory differ from `value`; -1 if they cannot
 * be read. */
int differing(const void *device, size_t bytes, int value);
int differing_driver(CUdeviceptr device, size_t bytes, int value);

/** Bytes free on the current device. */
size_t free_bytes(void);

/** Runs a function in another thread, to its end. */
void elsewhere(void (*function)(void *), void *argument);

/** The primary context of a device, initialised and current. */
CUcontext primary(CUdevice device);

#endif
