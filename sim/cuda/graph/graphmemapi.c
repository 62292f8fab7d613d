/*
 * Memory nodes of graphs, and the memory that a device keeps for graphs, as programs call for them.
 */
#include <string.h>

#include "sim/cuda/graph/graph.h"

SIM_API(cuGraphAddMemAllocNode)
(CUgraphNode *node_p, CUgraph graph, const CUgraphNode *after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphAddMemAllocNode);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

    if (!in)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&params.alloc, in, sizeof *in);
    CUresult status = sim_graph_add(node_p, graph, after, NULL, count, &params);
    if (status == CUDA_SUCCESS)
        in->dptr = params.alloc.dptr;
    return status;
}

SIM_API(cuGraphMemAllocNodeGetParams)(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
    SIM_ENTER(cuGraphMemAllocNodeGetParams);
    CUgraphNodeParams params;
    CUresult status =
        out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        memcpy(out, &params.alloc, sizeof *out);
    return status;
}

SIM_API(cuGraphAddMemFreeNode)
(CUgraphNode *node_p, CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr address)
{
    SIM_ENTER(cuGraphAddMemFreeNode);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

    params.free.dptr = address;
    return sim_graph_add(node_p, graph, after, NULL, count, &params);
}

SIM_API(cuGraphMemFreeNodeGetParams)(CUgraphNode node, CUdeviceptr *address_p)
{
    SIM_ENTER(cuGraphMemFreeNodeGetParams);
    CUgraphNodeParams params;
    CUresult status =
        address_p ? sim_node_get(node, CU_GRAPH_NODE_TYPE_MEM_FREE, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *address_p = params.free.dptr;
    return status;
}

SIM_API(cuDeviceGraphMemTrim)(CUdevice ordinal)
{
    SIM_ENTER(cuDeviceGraphMemTrim);
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    sim_memory_write_lock();
    sim_heap_refund(device, device->graphs.reserved - device->graphs.busy);
    device->graphs.reserved = device->graphs.busy;
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetGraphMemAttribute)(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    SIM_ENTER(cuDeviceGetGraphMemAttribute);
    struct sim_device *device = sim_device(ordinal);
    CUresult status = CUDA_SUCCESS;
    cuuint64_t number = 0;

    if (!device || !value)
        return device ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    sim_memory_read_lock();
    switch ((int)attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: /* all that is kept, freed or not: so a driver was seen to tell
                                                it */
        number = device->graphs.reserved;
        break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        number = device->graphs.used_high;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        number = device->graphs.reserved;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        number = device->graphs.reserved_high;
        break;
    default:
        status = CUDA_ERROR_INVALID_VALUE;
    }
    sim_memory_unlock();
    if (status == CUDA_SUCCESS)
        *(cuuint64_t *)value = number;
    return status;
}

/* High-water marks can only be set back to what is current, by writing 0. */
SIM_API(cuDeviceSetGraphMemAttribute)(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    SIM_ENTER(cuDeviceSetGraphMemAttribute);
    struct sim_device *device = sim_device(ordinal);

    if (!device || !value || *(const cuuint64_t *)value)
        return device ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    CUresult status = CUDA_SUCCESS;
    sim_memory_write_lock();
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        device->graphs.used_high = device->graphs.reserved;
    else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        device->graphs.reserved_high = device->graphs.reserved;
    else
        status = CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return status;
}
