/*
 * Access between devices. Where the card has a way between them every device can reach every other, but not
 * itself; a context must be told to. Memory pools and mapped handles have access lists of their own, which
 * this does not change. The order in which arguments are looked at, and the statuses, are those of recorded
 * hardware (tests/sim/record.tsv, table peer).
 */
#include "sim/cuda/sim.h"

#define ONLY_PARTIAL_NATIVE_ATOMIC 5 /* of CUDA 13; 12's headers do not name it */

SIM_API(cuDeviceCanAccessPeer)(int *can_p, CUdevice device, CUdevice peer)
{
    SIM_ENTER(cuDeviceCanAccessPeer);
    if (!can_p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device) || !sim_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can_p = device != peer && sim_card_peers();
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetP2PAttribute)
(int *value_p, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
    SIM_ENTER(cuDeviceGetP2PAttribute);
    if (!sim_device(device) || !sim_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value_p || device == peer)
        return device == peer ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case ONLY_PARTIAL_NATIVE_ATOMIC:
        *value_p = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED:
        *value_p = sim_card_peers();
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Whose memory a context asks for. A device has no way to itself, nor has one to a card without any: neither
 * can be switched on, and so neither is on. */
static CUresult peer_of(CUcontext handle, struct CUctx_st *ctx, unsigned *bit_p)
{
    struct CUctx_st *peer = sim_object_get(handle, SIM_CONTEXT);

    if (!peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    bool reached = peer->device != ctx->device && sim_card_peers();
    CUresult status = peer->alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    *bit_p = reached ? 1U << peer->device->ordinal : 0;
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
    if (status != CUDA_SUCCESS || !bit)
        return status != CUDA_SUCCESS ? status : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
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
