/*
 * How the driver is reached by a runtime, be it a library of its own or contained in another: linked with
 * nobody; one dlopen of libcuda.so.1, one dlsym of cuGetProcAddress_v2, and everything else, that function
 * included, through the pointer that gives. Shared by the simulated runtime, NCCL and cuBLAS, which are
 * compiled each with its own copy of entry.c.
 */
#ifndef SIM_EMBEDDED_ENTRY_H
#define SIM_EMBEDDED_ENTRY_H

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

/** The library opens and is asked: cuInit, or NULL if there is no driver. Once in the process, by whoever
 * fills a table. Costs and faults in the environment that name functions beginning with `prefix` are
 * complained of: they belong to the driver's. */
__typeof__(&cuInit) sim_entry_open(const char *prefix);
/** A driver function by name, version and flags; NULL if the driver lacks it. After sim_entry_open has given
 * something. */
void *sim_entry_ask(const char *name, int version, cuuint64_t flags);
/** As sim_entry_ask, with everything that the driver answers. */
CUresult sim_entry_look_up(const char *name, void **function_p, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *status_p);

#endif
