/*
 * The parts that the files of the simulated HIP runtime share. The same sources are compiled into
 * libamdhip64.so.5, .6 and .7 (SIM_HIP says for which), each on a private copy of the simulated driver's
 * rooms: a device of HIP's is a device of theirs, and its memory, streams and events belong to its primary
 * context, which is made current where a function needs it. The numbers of statuses are the same, so most
 * functions hand on the rooms' answer.
 */
#ifndef MEMSIM_HIP_HIP_H
#define MEMSIM_HIP_HIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"
#include "sim/cuda/front.h"

#ifndef SIM_HIP
#define SIM_HIP 7
#endif

#define HIP_API __attribute__((visibility("default"))) hipError_t

enum hip_fn {
#define X(name) HIP_FN_##name,
#include "sim/hip/version.def"
#undef X
    HIP_FN_COUNT
};

/* error.c */

/** Leaves the function with `status`, which becomes the thread's last error as the version has it. */
hipError_t hip_leave(int status);
/** Costs, faults and counts of a call; 0, or the status to answer. */
int hip_enter(enum hip_fn fn);

/* device.c */

/** The primary context of the thread's device is current afterwards. */
int hip_bind(void);
/** The primary context of this device is current afterwards; 101 if there is no such device. */
int hip_bind_to(int device);
int hip_device(void);
int hip_device_count(void);
/** The primary context of a device; NULL if it cannot be had. */
CUcontext hip_context(int device);

static inline CUdeviceptr hip_address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* Until 7 the number 1 is no stream's name; the rooms refuse what they do not know. */
static inline CUstream hip_stream(hipStream_t stream)
{
    return SIM_HIP < 7 && (uintptr_t)stream == 1 ? (CUstream)8 : (CUstream)stream;
}

/* The first line of a function, and of one that needs the device's context. */
#define HIP_ENTER(name)                                                                                      \
    do {                                                                                                     \
        int enter_status_ = hip_enter(HIP_FN_##name);                                                        \
        if (enter_status_ != 0)                                                                              \
            return hip_leave(enter_status_);                                                                 \
    } while (0)
#define HIP_ENTER_DEVICE(name)                                                                               \
    do {                                                                                                     \
        HIP_ENTER(name);                                                                                     \
        int bind_status_ = hip_bind();                                                                       \
        if (bind_status_ != 0)                                                                               \
            return hip_leave(bind_status_);                                                                  \
    } while (0)

/** A function that is the rooms' with the same arguments. */
#define HIP_AS(name, parameters, answer)                                                                     \
    HIP_API name parameters                                                                                  \
    {                                                                                                        \
        HIP_ENTER_DEVICE(name);                                                                              \
        return hip_leave((int)(answer));                                                                     \
    }

#endif
