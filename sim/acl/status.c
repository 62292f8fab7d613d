/*
 * Statuses of the rooms below, as the interface names them. No lock, no memory of its own.
 */
#include "sim/acl/acl.h"

#define FIRST_ACL_STATUS 100000

aclError acl_status(CUresult status)
{
    switch ((int)status) {
    case CUDA_SUCCESS:
        return ACL_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_FOUND:
        return ACL_ERROR_RT_PARAM_INVALID;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    case CUDA_ERROR_NOT_INITIALIZED: /* a child made by fork, or a machine without devices */
        return atomic_load(&sim_initialized) < 0 ? ACL_ERROR_RT_DRV_INTERNAL_ERROR : ACL_ERROR_RT_NO_DEVICE;
    case CUDA_ERROR_NO_DEVICE:
        return ACL_ERROR_RT_NO_DEVICE;
    case CUDA_ERROR_INVALID_DEVICE:
        return ACL_ERROR_RT_INVALID_DEVICEID;
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return ACL_ERROR_RT_CONTEXT_NULL;
    case CUDA_ERROR_INVALID_HANDLE:
        return ACL_ERROR_RT_INVALID_HANDLE;
    case CUDA_ERROR_NOT_SUPPORTED:
        return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    default:
        return (int)status >= FIRST_ACL_STATUS ? (aclError)status : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    }
}
