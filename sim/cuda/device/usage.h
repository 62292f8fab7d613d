/*
 * The record of what a process takes of the devices, for other processes to see, the management library first
 * of all: a small file in memory, which the driver makes when it first has something to tell and whoever may
 * open the process's descriptors can read.
 */
#ifndef SIM_CUDA_DEVICE_USAGE_H
#define SIM_CUDA_DEVICE_USAGE_H

#include <stdint.h>

#include "sim/cuda/sim.h"

#define SIM_USAGE_NAME  "memsim.usage"
#define SIM_USAGE_MAGIC 0x6d656d75u

/** The file. A fork child has a descriptor of its parent's: `pid` says whose it is. */
struct sim_usage {
    uint32_t magic;
    int32_t pid;
    struct {
        uint64_t used_bytes; /* of the capacity */
        uint64_t contexts;
    } devices[SIM_MAX_DEVICES];
};

/* usage.c, of the driver alone: where another vendor's library stands on the driver's rooms nothing is told
 * (front.c). */

void sim_usage_bytes(int ordinal, uint64_t used_bytes);
void sim_usage_context(int ordinal, int more);

/** survey.c: call `look` with what each process tells, in the order of /proc. The caller's own process
 * too. */
void sim_usage_survey(void (*look)(void *arg, const struct sim_usage *usage), void *arg);

#endif
