/*
 * Prototypes of NCCL's exported functions, under both of their names: ncclX, which is weak, and pncclX, which
 * is not.
 *
 * Facts of the public interface (NCCL 2.28), types only; for __typeof__, for the simulator's own definitions
 * and for tests that link against it. Held against the vendor's header by a test.
 */
#ifndef MEMSHIM_GPU_ABI_NCCL_FN_H
#define MEMSHIM_GPU_ABI_NCCL_FN_H

#include "vendor/abi/nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;

#define NCCL_BOTH(result, name, parameters)                                                                  \
    result nccl##name parameters;                                                                            \
    result pnccl##name parameters;

NCCL_BOTH(ncclResult_t, MemAlloc, (void **, size_t))
NCCL_BOTH(ncclResult_t, MemFree, (void *))
NCCL_BOTH(ncclResult_t, GetVersion, (int *))
NCCL_BOTH(ncclResult_t, GetUniqueId, (ncclUniqueId *))
NCCL_BOTH(ncclResult_t, CommInitRankConfig, (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *))
NCCL_BOTH(ncclResult_t, CommInitRank, (ncclComm_t *, int, ncclUniqueId, int))
NCCL_BOTH(ncclResult_t, CommInitAll, (ncclComm_t *, int, const int *))
NCCL_BOTH(ncclResult_t, CommInitRankScalable, (ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *))
NCCL_BOTH(ncclResult_t, CommFinalize, (ncclComm_t))
NCCL_BOTH(ncclResult_t, CommDestroy, (ncclComm_t))
NCCL_BOTH(ncclResult_t, CommAbort, (ncclComm_t))
NCCL_BOTH(ncclResult_t, CommRevoke, (ncclComm_t, int))
NCCL_BOTH(ncclResult_t, CommSplit, (ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *))
NCCL_BOTH(ncclResult_t, CommShrink, (ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int))
NCCL_BOTH(const char *, GetErrorString, (ncclResult_t))
NCCL_BOTH(const char *, GetLastError, (ncclComm_t))
NCCL_BOTH(ncclResult_t, CommGetAsyncError, (ncclComm_t, ncclResult_t *))
NCCL_BOTH(ncclResult_t, CommCount, (const ncclComm_t, int *))
NCCL_BOTH(ncclResult_t, CommCuDevice, (const ncclComm_t, int *))
NCCL_BOTH(ncclResult_t, CommUserRank, (const ncclComm_t, int *))
NCCL_BOTH(ncclResult_t, CommRegister, (const ncclComm_t, void *, size_t, void **))
NCCL_BOTH(ncclResult_t, CommDeregister, (const ncclComm_t, void *))
NCCL_BOTH(ncclResult_t, CommWindowRegister, (ncclComm_t, void *, size_t, ncclWindow_t *, int))
NCCL_BOTH(ncclResult_t, CommWindowDeregister, (ncclComm_t, ncclWindow_t))
NCCL_BOTH(ncclResult_t, RedOpCreatePreMulSum,
          (ncclRedOp_t *, void *, ncclDataType_t, ncclScalarResidence_t, ncclComm_t))
NCCL_BOTH(ncclResult_t, RedOpDestroy, (ncclRedOp_t, ncclComm_t))
NCCL_BOTH(ncclResult_t, Reduce,
          (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, Bcast, (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, Broadcast,
          (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, AllReduce,
          (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, ReduceScatter,
          (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, AllGather, (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, AlltoAll, (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, Gather, (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, Scatter,
          (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, Send, (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, Recv, (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))
NCCL_BOTH(ncclResult_t, GroupStart, (void))
NCCL_BOTH(ncclResult_t, GroupEnd, (void))
NCCL_BOTH(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t *))

#undef NCCL_BOTH

#ifdef __cplusplus
}
#endif

#endif
