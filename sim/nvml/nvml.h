/*
 * The interfaces between the rooms of the simulated management library.
 *
 * init.c begins and ends, and says which devices there are; system.c tells versions and texts, device.c
 * what a device is, memory.c what its memory is used for and by whom; stubs.c answers the rest. It stands
 * beside the simulated driver and never calls it: which devices there are is read from the same variables
 * by the same rooms (config.c, card.c, identity.c), and what processes use from what they publish
 * (usage.h). So it can be asked in a process that uses no device, and about others.
 */
#ifndef SIM_NVML_NVML_H
#define SIM_NVML_NVML_H

#include "vendor/abi/nvml.h"
#include "sim/cuda/sim.h"

#define SIM_NVML __attribute__((visibility("default"))) nvmlReturn_t

#define SIM_NVML_TRY(expression)                                                                             \
    do {                                                                                                     \
        nvmlReturn_t result_ = (expression);                                                                 \
        if (result_ != NVML_SUCCESS)                                                                         \
            return result_;                                                                                  \
    } while (0)

/** NVML_SUCCESS between the first init and the last shutdown. */
nvmlReturn_t sim_nvml_ready(void);
/** Ready, the handle is a device's, and `out` is somewhere. */
nvmlReturn_t sim_nvml_device(nvmlDevice_t handle, const void *out, int *ordinal_p);
nvmlDevice_t sim_nvml_handle(int ordinal);
/** Copy a text into the program's buffer; one that is too small is refused. */
nvmlReturn_t sim_nvml_text(char *to, unsigned int bytes, const char *text);

#endif
