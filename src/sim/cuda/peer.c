/*
 * Access between devices. Every device can reach every other; a context must be told to. Memory pools and mapped handles
 * have access lists of their own, which this does not change.
 */
#include "sim.h"

SIM_API(cuDeviceCanAccessPeer)(int *can_p, CUdevice device, CUdevice peer)
{
    SIM_ENTER(cuDeviceCanAccessPeer);
    if (!can_p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device) || !sim_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can_p = device != peer;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetP2PAttribute)(int *value_p, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
    SIM_ENTER(cuDeviceGetP2PAttribute);
    if (!sim_device(device) || !sim_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value_p || device == peer)
        return device == peer ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value_p = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED:
        *value_p = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult peer_of(CUcontext handle, struct CUctx_st *ctx, unsigned *bit_p)
{
    struct CUctx_st *peer = sim_object_get(handle, SIM_CONTEXT);

    if (!peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult status = CUDA_SUCCESS;
    if (!peer->alive || peer->device == ctx->device)
        status = peer->alive ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_CONTEXT;
    *bit_p = 1U << peer->device->ordinal;
    sim_object_put(peer);
    return status;
}

SIM_API(cuCtxEnablePeerAccess)(CUcontext peer, unsigned flags)
{
    SIM_ENTER_CTX(cuCtxEnablePeerAccess);
    unsigned bit;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = peer_of(peer, ctx, &bit);
    if (status != CUDA_SUCCESS)
        return status;
    return atomic_fetch_or(&ctx->peers, bit) & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

SIM_API(cuCtxDisablePeerAccess)(CUcontext peer)
{
    SIM_ENTER_CTX(cuCtxDisablePeerAccess);
    unsigned bit;
    CUresult status = peer_of(peer, ctx, &bit);

    if (status != CUDA_SUCCESS)
        return status;
    return atomic_fetch_and(&ctx->peers, ~bit) & bit ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
