/* What a device says of itself: attributes and facts that the record has of several cards. See record.h. */
#include "vendor/abi/nvml.h"
#include "tests/sim/record.h"

/* clang-format off */
#define ATTRIBUTES(A)                                                                                        \
    A(ASYNC_ENGINE_COUNT)                                                                                    \
    A(UNIFIED_ADDRESSING)                                                                                    \
    A(CAN_MAP_HOST_MEMORY)                                                                                   \
    A(TEXTURE_ALIGNMENT)                                                                                     \
    A(TEXTURE_PITCH_ALIGNMENT) A(SURFACE_ALIGNMENT) A(MAX_PITCH) A(CONCURRENT_KERNELS)                       \
        A(STREAM_PRIORITIES_SUPPORTED) A(MANAGED_MEMORY) A(HOST_NATIVE_ATOMIC_SUPPORTED)                     \
            A(PAGEABLE_MEMORY_ACCESS) A(CONCURRENT_MANAGED_ACCESS) A(COMPUTE_PREEMPTION_SUPPORTED) A(        \
                CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) A(COOPERATIVE_LAUNCH) A(CAN_FLUSH_REMOTE_WRITES)    \
                A(HOST_REGISTER_SUPPORTED) A(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) A(                \
                    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST) A(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)              \
                    A(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) A(GENERIC_COMPRESSION_SUPPORTED) A(       \
                        MAX_ACCESS_POLICY_WINDOW_SIZE) A(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)            \
                        A(RESERVED_SHARED_MEMORY_PER_BLOCK) A(SPARSE_CUDA_ARRAY_SUPPORTED) A(                \
                            READ_ONLY_HOST_REGISTER_SUPPORTED) A(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)       \
                            A(MEMORY_POOLS_SUPPORTED) A(GPU_DIRECT_RDMA_SUPPORTED) A(                        \
                                GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) A(GPU_DIRECT_RDMA_WRITES_ORDERING)     \
                                A(MEMPOOL_SUPPORTED_HANDLE_TYPES) A(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)   \
                                    A(CAN_USE_64_BIT_STREAM_MEM_OPS) A(CAN_USE_STREAM_WAIT_VALUE_NOR)        \
                                        A(DMA_BUF_SUPPORTED) A(IPC_EVENT_SUPPORTED)                          \
                                            A(HANDLE_TYPE_FABRIC_SUPPORTED) A(NUMA_CONFIG) A(NUMA_ID)        \
                                                A(MULTICAST_SUPPORTED) A(MPS_ENABLED) A(HOST_NUMA_ID)        \
                                                    A(HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)         \
                                                        A(HOST_NUMA_MEMORY_POOLS_SUPPORTED)                  \
                                                            A(HOST_NUMA_MULTINODE_IPC_SUPPORTED) A(          \
                                                                HOST_MEMORY_POOLS_SUPPORTED)                 \
                                                                A(HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)  \
                                                                    A(HOST_ALLOC_DMA_BUF_SUPPORTED)
/* clang-format on */

static int answer(CUdevice_attribute attribute)
{
    int value = -1;

    must(cuDeviceGetAttribute(&value, attribute, 0));
    return value;
}

#define VALUE(name) answer(CU_DEVICE_ATTRIBUTE_##name)

static void attributes(void)
{
#define TELL(name) told("attribute " #name, CUDA_SUCCESS, "%d", VALUE(name));
    ATTRIBUTES(TELL)
#undef TELL
}

/* The management library's total, in MiB, as nvidia-smi prints it. */
static void tell_as_managed(void)
{
    nvmlMemory_t memory = {0};
    nvmlDevice_t device;
    nvmlReturn_t result = nvmlInit_v2();

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetHandleByIndex_v2(0, &device);
    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetMemoryInfo(device, &memory);
    told("memory as nvidia-smi tells it", (int)result, "%llu", memory.total >> 20);
}

static void sizes(void)
{
    CUmemAllocationProp plain = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool;
    CUdeviceptr p;
    size_t total = 0, granule = 0;
    cuuint64_t reserved = 0;

    must(cuDeviceTotalMem_v2(&total, 0));
    must(cuMemGetAllocationGranularity(&granule, &plain, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    must(cuMemAllocAsync(&p, 1, NULL));
    must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    told("memory", CUDA_SUCCESS, "%zu", total);
    tell_as_managed();
    told("granularity", CUDA_SUCCESS, "%zu", granule);
    told("unit of a pool", CUDA_SUCCESS, "%zu", (size_t)reserved);
}

int main(void)
{
    char name[256] = "";
    int least = 0, greatest = 0;

    begin();
    attributes();
    must(cuDeviceGetName(name, sizeof name, 0));
    must(cuCtxGetStreamPriorityRange(&least, &greatest));
    told("name", CUDA_SUCCESS, "%s", name);
    sizes();
    told("compute capability", CUDA_SUCCESS, "%d.%d", VALUE(COMPUTE_CAPABILITY_MAJOR),
         VALUE(COMPUTE_CAPABILITY_MINOR));
    told("PCI device", CUDA_SUCCESS, "0x%04x", (unsigned)VALUE(GPU_PCI_DEVICE_ID) >> 16);
    told("priorities", CUDA_SUCCESS, "%d..%d", least, greatest);
#define TELL(fact, attribute) told(fact, CUDA_SUCCESS, "%d", VALUE(attribute))
    TELL("multiprocessors", MULTIPROCESSOR_COUNT);
    TELL("level 2 cache", L2_CACHE_SIZE);
    TELL("level 2 cache that persists", MAX_PERSISTING_L2_CACHE_SIZE);
    TELL("bus width", GLOBAL_MEMORY_BUS_WIDTH);
    TELL("copy engines", ASYNC_ENGINE_COUNT);
    TELL("memory pools", MEMORY_POOLS_SUPPORTED);
    TELL("handles of pools", MEMPOOL_SUPPORTED_HANDLE_TYPES);
    TELL("memory by handle", VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    TELL("descriptors as handles", HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    TELL("fabric handles", HANDLE_TYPE_FABRIC_SUPPORTED);
    TELL("managed memory beside the host", CONCURRENT_MANAGED_ACCESS);
    TELL("pageable memory", PAGEABLE_MEMORY_ACCESS);
    TELL("registered memory at the host's address", CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    TELL("pools at the host", HOST_MEMORY_POOLS_SUPPORTED);
    TELL("pools at a node of the host", HOST_NUMA_MEMORY_POOLS_SUPPORTED);
    TELL("events between processes", IPC_EVENT_SUPPORTED);
    TELL("DMA-BUF", DMA_BUF_SUPPORTED);
    TELL("RDMA to memory by handle", GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    TELL("memory registered for reading", READ_ONLY_HOST_REGISTER_SUPPORTED);
    return 0;
}
