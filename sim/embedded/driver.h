/*
 * The driver as a library with an embedded runtime reaches it: shared by the simulated NCCL and cuBLAS, which
 * are compiled each with its own copy of driver.c. entry.h says how it is found.
 *
 * A library that uses it defines SIM_DRIVER_DEF, the file of its rows DRIVER(symbol, name and version that
 * cuGetProcAddress is asked for), which have at least those of embedded.def.
 */
#ifndef SIM_EMBEDDED_DRIVER_H
#define SIM_EMBEDDED_DRIVER_H

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

struct sim_driver {
#define DRIVER(symbol, name, version) __typeof__(&symbol) symbol;
#include "sim/embedded/embedded.def"
#ifdef SIM_DRIVER_DEF
#include SIM_DRIVER_DEF
#endif
#undef DRIVER
};
extern struct sim_driver sim_driver;

/** Call a driver function; one that the driver lacks answers 801. */
#define SIM_DRV(symbol, ...) (sim_driver.symbol ? sim_driver.symbol(__VA_ARGS__) : CUDA_ERROR_NOT_SUPPORTED)

/** Open the driver, once in the process. NULL, or why there is none. Costs and faults in the environment that
 * name functions beginning with `prefix` are complained of then: they belong to the driver's. */
const char *sim_driver_open(const char *prefix);
/** Make sure that the thread has a context, as the runtime does: its own, or else the first device's primary
 * one. After sim_driver_open. */
CUresult sim_driver_context(void);
/** The primary context of a device, retained at its first use, and again when a reset has emptied it. */
CUresult sim_driver_primary(CUdevice device, CUcontext *context_p);

#endif
