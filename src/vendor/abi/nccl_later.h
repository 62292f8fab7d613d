/*
 * Additions of NCCL 2.29 and 2.30 to its interface, as far as they are simulated: constants, structures
 * and prototypes.
 *
 * Own declarations of public facts (nccl.h and nccl_device/core.h of NCCL 2.30.7). They stand apart from
 * nccl.h and nccl_fn.h, which are held against the header of the toolkit's NCCL, 2.28.
 */
#ifndef MEMSHIM_GPU_ABI_NCCL_LATER_H
#define MEMSHIM_GPU_ABI_NCCL_LATER_H

#include "vendor/abi/nccl_fn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_SUSPEND_MEM 0x01

typedef enum {
    ncclStatGpuMemSuspend = 0,
    ncclStatGpuMemSuspended = 1,
    ncclStatGpuMemPersist = 2,
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef struct {
    int opCnt;
    int peer;
    int sigIdx;
    int ctx;
} ncclWaitSignalDesc_t;

#define NCCL_BOTH(name, parameters)                                                                          \
    ncclResult_t nccl##name parameters;                                                                      \
    ncclResult_t pnccl##name parameters;

NCCL_BOTH(CommGetUniqueId, (ncclComm_t, ncclUniqueId *))
NCCL_BOTH(CommGrow, (ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *))
NCCL_BOTH(CommSuspend, (ncclComm_t, int))
NCCL_BOTH(CommResume, (ncclComm_t))
NCCL_BOTH(CommMemStats, (ncclComm_t, ncclCommMemStat_t, uint64_t *))
NCCL_BOTH(WinGetUserPtr, (ncclComm_t, ncclWindow_t, void **))
NCCL_BOTH(GetPeerDevicePointer, (ncclWindow_t, size_t, int, void **))
NCCL_BOTH(GetLsaDevicePointer, (ncclWindow_t, size_t, int, void **))
NCCL_BOTH(GetLsaMultimemDevicePointer, (ncclWindow_t, size_t, void **))
NCCL_BOTH(PutSignal, (const void *, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int, unsigned int,
                      ncclComm_t, cudaStream_t))
NCCL_BOTH(Signal, (int, int, int, unsigned int, ncclComm_t, cudaStream_t))
NCCL_BOTH(WaitSignal, (int, ncclWaitSignalDesc_t *, ncclComm_t, cudaStream_t))

#undef NCCL_BOTH

#ifdef __cplusplus
}
#endif

#endif
