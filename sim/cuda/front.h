/*
 * For libraries of other vendors that are built on a private copy of these rooms (libsimrooms.a), in which
 * nobody sees the driver's own functions: their names, costs, faults and counts are the library's, and its
 * calls of the rooms cost nothing.
 *
 * The library defines sim_front, passes sim_front_enter first in every exported function, and calls the
 * rooms' functions directly. A version script must keep everything but its own exports to itself.
 */
#ifndef MEMSIM_CUDA_FRONT_H
#define MEMSIM_CUDA_FRONT_H

#include "sim/cuda/rules.h"

/** The library's own; its functions are numbered as their names are. */
extern const struct sim_rules sim_front;

/** Costs and faults of one call: the status to answer, or 0. Reads the environment the first time, and starts
 * the rooms. */
int sim_front_enter(unsigned fn);
/** All pools of a device end, with the memory that is in use of them; its default pool is as it was made. The
 * calling thread's context is the device's. */
void sim_front_end_pools(int ordinal);
/** Counts and notes a call of something that is not simulated. */
void sim_front_unsupported(unsigned fn);

#endif
