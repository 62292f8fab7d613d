/*
 * Memory in graphs: every call goes to the driver.
 */
#include "sim/cudart/runtime.h"

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
               "allocation nodes have one layout");

SIM_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies, size_t count,
                                             struct cudaMemAllocNodeParams *params)
{
    SIM_TRY(sim_context());
    SIM_CHECK(node && params, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphAddMemAllocNode, node, graph, dependencies, count,
                    (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                                   struct cudaMemAllocNodeParams *params)
{
    SIM_TRY(sim_context());
    SIM_CHECK(params, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphMemAllocNodeGetParams, node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                            const cudaGraphNode_t *dependencies, size_t count, void *pointer)
{
    SIM_TRY(sim_context());
    SIM_CHECK(node, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphAddMemFreeNode, node, graph, dependencies, count, sim_devptr(pointer)));
    return cudaSuccess;
}

/* The runtime's out-pointer has no type; what is stored there is an address. */
SIM_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphMemFreeNodeGetParams, node, &address));
    *(void **)pointer = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGraphMemTrim(int device)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceGraphMemTrim, handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                                   void *value)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceGetGraphMemAttribute, handle, (CUgraphMem_attribute)attribute, value));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                                   void *value)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceSetGraphMemAttribute, handle, (CUgraphMem_attribute)attribute, value));
    return cudaSuccess;
}
