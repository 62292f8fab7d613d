/*
 * The parts that the files of the simulated CUDA runtime share: the table of driver functions, the calling
 * thread's state, and the short forms every exported function is written in. The same sources are compiled
 * into libcudart.so.12 and libcudart.so.13, and into a static library of each version; SIM_CUDART says for
 * which. Nothing happens before the first call of an exported function.
 */
#ifndef SIM_CUDART_RUNTIME_H
#define SIM_CUDART_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#define MS_CUDART_MAJOR SIM_CUDART
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "sim/cudart/export.h"

#if SIM_CUDART == 12
#define SIM_CUDART_VERSION 12090
#define SIM_CUDART_SONAME  "libcudart.so.12"
#else
#define SIM_CUDART_VERSION 13000
#define SIM_CUDART_SONAME  "libcudart.so.13"
#endif

/* The two halves of the driver table: which default stream a NULL handle means. */
enum { SIM_LEGACY, SIM_PER_THREAD };

struct sim_driver {
#define DRIVER(symbol, base, version, per_thread) __typeof__(&symbol) symbol;
#include "sim/cudart/driver.def"
#undef DRIVER
};
extern struct sim_driver sim_driver[2];
/* How often a driver function was wanted that the driver lacks. */
extern unsigned long long sim_driver_absent;

/** Call a driver function through the table; one that the driver lacks answers cudaErrorNotSupported. */
#define SIM_DRV_OF(half, symbol, ...)                                                                        \
    (sim_driver[half].symbol ? (cudaError_t)sim_driver[half].symbol(__VA_ARGS__)                             \
                             : sim_unsupported(#symbol, &sim_driver_absent))
#define SIM_DRV(symbol, ...) SIM_DRV_OF(SIM_LEGACY, symbol, __VA_ARGS__)

/** Leave the exported function with EXPR's status if it is not success, and remember it as the thread's last
 * error. */
#define SIM_TRY(expr)                                                                                        \
    do {                                                                                                     \
        cudaError_t rc_ = (expr);                                                                            \
        if (rc_ != cudaSuccess)                                                                              \
            return sim_fail(rc_);                                                                            \
    } while (0)
#define SIM_CHECK(condition, status) SIM_TRY((condition) ? cudaSuccess : (status))

/** Define an exported function and its per-thread twin from one body, whose first argument is the half to
 * use. */
#define SIM_TWINS(name, suffix, body, parameters, ...)                                                       \
    SIM_API cudaError_t name parameters                                                                      \
    {                                                                                                        \
        return body(SIM_LEGACY, __VA_ARGS__);                                                                \
    }                                                                                                        \
    SIM_API cudaError_t name##suffix parameters                                                              \
    {                                                                                                        \
        return body(SIM_PER_THREAD, __VA_ARGS__);                                                            \
    }

/* driver.c */

/** Open the driver on the first call of the process; its outcome is the same ever after. */
cudaError_t sim_runtime(void);
/** The version the driver reports, 0 where there is none. Opens it. */
int sim_driver_version(void);
/** Look NAME up as a program asks for it, through the pointer the runtime itself uses. */
cudaError_t sim_driver_lookup(const char *name, void **function_p, int version, cuuint64_t flags,
                              CUdriverProcAddressQueryResult *status_p);

/* error.c */

/** Remember STATUS as the calling thread's last error and return it. */
cudaError_t sim_fail(cudaError_t status);
/** Forget the calling thread's last error, sticky ones too: the device was reset. */
void sim_error_clear(void);
/** Count a call of something that is not simulated: one more in *CALLS, and a line in the file MEMSIM_LOG
 * names. Returns cudaErrorNotSupported, which is not yet the thread's last error. */
cudaError_t sim_unsupported(const char *name, unsigned long long *calls);

/* context.c */

enum { SIM_MAX_DEVICES = 64 };

/** Make sure the calling thread has a context: its own choice, or else its device's primary context. */
cudaError_t sim_context(void);
/** The ordinal of the calling thread's device; creates no context. */
cudaError_t sim_current_device(int *ordinal_p);
/** The driver's handle of a device, or cudaErrorInvalidDevice. */
cudaError_t sim_device(int ordinal, CUdevice *device_p);
/** The primary context of a device, retained once for the process. */
cudaError_t sim_primary_context(int ordinal, CUcontext *context_p);

/* module.c */

/** The kernel behind the host's stub FUNC, or behind a handle given out earlier. Loads its image on first
 * use. */
cudaError_t sim_kernel(const void *func, CUkernel *kernel_p);
/* A kernel node's parameters in the driver's terms. */
cudaError_t sim_kernel_node(const struct cudaKernelNodeParams *in, CUDA_KERNEL_NODE_PARAMS *out);
/** Remember a kernel handle that was given to the program, so that it is accepted as a function. */
void sim_kernel_publish(CUkernel kernel);
/** The host's stub under which a kernel was registered, or the handle itself. */
const void *sim_kernel_stub(CUkernel kernel);
/** The address of the device variable behind the host's symbol, and its size. */
cudaError_t sim_symbol(const void *symbol, CUdeviceptr *address_p, size_t *bytes_p);

/* copy_shape.c */

/** The driver's word for the memory at each end of a copy in that direction. */
cudaError_t sim_copy_ends(enum cudaMemcpyKind kind, CUmemorytype *from_p, CUmemorytype *to_p);
/** A copy of boxes in the driver's terms, and back. */
cudaError_t sim_copy_box(const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *op);
cudaError_t sim_copy_unbox(const CUDA_MEMCPY3D *op, struct cudaMemcpy3DParms *parms);

/* array.c */

/** Bytes per element of an array. */
cudaError_t sim_array_element_bytes(cudaArray_const_t array, size_t *bytes_p);
/** Bytes in a row of an array, and how many rows a plane of it has. */
cudaError_t sim_array_rows(cudaArray_const_t array, size_t *row_bytes_p, size_t *rows_p);
/** The driver's name for a channel format; cudaErrorInvalidChannelDescriptor if it has none. */
cudaError_t sim_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format_p,
                             unsigned *channels_p);

static inline CUdeviceptr sim_devptr(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static inline void *sim_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

#endif
