/*
 * The HIP runtime interface as far as memshim needs it: types, enumerations, structures and constants.
 *
 * Own declarations of public facts (HIP 5.2 and 6.x headers): names, values, sizes and offsets equal the
 * vendor's on 64-bit Linux, and a test compares them where the headers are present. Where libamdhip64.so.5
 * and .so.6 differ, both forms are here under names of their own. Never include it together with the vendor's
 * header. Prototypes are in hip_fn.h.
 */
#ifndef MEMSHIM_GPU_ABI_HIP_H
#define MEMSHIM_GPU_ABI_HIP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of CUresult as far as both have a name for it. */
typedef enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorInvalidDevicePointer = 17,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidContext = 201,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorStreamCaptureUnsupported = 900,
    hipErrorStreamCaptureInvalidated = 901,
    hipErrorUnknown = 999,
} hipError_t;

typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipCtx_t *hipCtx_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct hipExecutionCtx_st *hipExecutionCtx_t; /* since 7.3 */
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphEdgeData hipGraphEdgeData; /* of 6.1; never looked into */
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef struct hipArray hipArray;
typedef hipArray *hipArray_t;
typedef struct hipMipmappedArray *hipMipmappedArray_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct hipLaunchParams_t hipLaunchParams;
typedef struct hipFunctionLaunchParams_t hipFunctionLaunchParams;
typedef struct hipLaunchConfig_st hipLaunchConfig_t;
typedef struct HIP_LAUNCH_CONFIG_st HIP_LAUNCH_CONFIG;
typedef void *hipExternalMemory_t;
typedef struct _hipGraphicsResource hipGraphicsResource;
typedef hipGraphicsResource *hipGraphicsResource_t;

#define hipStreamPerThread            ((hipStream_t)2)
#define hipStreamDefault              0x00
#define hipStreamNonBlocking          0x01
#define hipEventDefault               0x0
#define hipEventBlockingSync          0x1
#define hipEventDisableTiming         0x2
#define hipEventInterprocess          0x4
#define hipHostMallocDefault          0x0
#define hipHostMallocPortable         0x1
#define hipHostMallocMapped           0x2
#define hipHostMallocWriteCombined    0x4
#define hipHostMallocNumaUser         0x20000000
#define hipHostMallocCoherent         0x40000000
#define hipHostMallocNonCoherent      0x80000000
#define hipMemAttachGlobal            0x01
#define hipMemAttachHost              0x02
#define hipDeviceMallocDefault        0x0
#define hipDeviceMallocFinegrained    0x1
#define hipMallocSignalMemory         0x2
#define hipIpcMemLazyEnablePeerAccess 0x01 /* 0 until 5 */
#define hipStreamWaitValueGte         0x0
#define hipStreamWaitValueEq          0x1
#define hipStreamWaitValueAnd         0x2
#define hipStreamWaitValueNor         0x3

typedef struct hipUUID_t {
    char bytes[16];
} hipUUID;

typedef enum hipMemcpyKind {
    hipMemcpyHostToHost = 0,
    hipMemcpyHostToDevice = 1,
    hipMemcpyDeviceToHost = 2,
    hipMemcpyDeviceToDevice = 3,
    hipMemcpyDefault = 4
} hipMemcpyKind;

/* Types of memory in hipPointerAttribute_t: renumbered from 5 to 6. */
enum {
    hipMemoryType5Host = 0,
    hipMemoryType5Device = 1,
    hipMemoryType5Array = 2,
    hipMemoryType5Unified = 3,
    hipMemoryType6Unregistered = 0,
    hipMemoryType6Host = 1,
    hipMemoryType6Device = 2,
    hipMemoryType6Managed = 3,
};

typedef struct hipPointerAttribute_t {
    unsigned type; /* memoryType until 5 */
    int device;
    void *devicePointer;
    void *hostPointer;
    int isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

typedef enum hipDeviceAttribute_t {
    hipDeviceAttributeManagedMemory = 24,
    hipDeviceAttributeMultiprocessorCount = 63,
    hipDeviceAttributeWarpSize = 87,
    hipDeviceAttributeMemoryPoolsSupported = 88,
    hipDeviceAttributeVirtualMemoryManagementSupported = 89,
    hipDeviceAttributeHostRegisterSupported = 90
} hipDeviceAttribute_t;

typedef enum hipPointer_attribute {
    HIP_POINTER_ATTRIBUTE_CONTEXT = 1,
    HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    HIP_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    HIP_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    HIP_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    HIP_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
} hipPointer_attribute;

typedef struct hipPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct hipExtent {
    size_t width, height, depth;
} hipExtent;

typedef enum hipChannelFormatKind {
    hipChannelFormatKindSigned = 0,
    hipChannelFormatKindUnsigned = 1,
    hipChannelFormatKindFloat = 2,
    hipChannelFormatKindNone = 3
} hipChannelFormatKind;

typedef struct hipChannelFormatDesc {
    int x, y, z, w;
    enum hipChannelFormatKind f;
} hipChannelFormatDesc;

/* The values of `Format` are CUarray_format's. */
typedef struct HIP_ARRAY_DESCRIPTOR {
    size_t Width, Height;
    int Format;
    unsigned NumChannels;
} HIP_ARRAY_DESCRIPTOR;

typedef struct HIP_ARRAY3D_DESCRIPTOR {
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} HIP_ARRAY3D_DESCRIPTOR;

typedef enum hipStreamCaptureMode {
    hipStreamCaptureModeGlobal = 0,
    hipStreamCaptureModeThreadLocal,
    hipStreamCaptureModeRelaxed
} hipStreamCaptureMode;

typedef enum hipStreamCaptureStatus {
    hipStreamCaptureStatusNone = 0,
    hipStreamCaptureStatusActive,
    hipStreamCaptureStatusInvalidated
} hipStreamCaptureStatus;

/* --- pools and mapping by handle --- */

typedef enum hipMemAllocationType {
    hipMemAllocationTypeInvalid = 0,
    hipMemAllocationTypePinned = 1
} hipMemAllocationType;
typedef enum hipMemAllocationHandleType {
    hipMemHandleTypeNone = 0,
    hipMemHandleTypePosixFileDescriptor = 1
} hipMemAllocationHandleType;
typedef enum hipMemLocationType {
    hipMemLocationTypeInvalid = 0,
    hipMemLocationTypeDevice = 1
} hipMemLocationType;
typedef enum hipMemAllocationGranularity_flags {
    hipMemAllocationGranularityMinimum = 0,
    hipMemAllocationGranularityRecommended = 1
} hipMemAllocationGranularity_flags;
typedef enum hipMemAccessFlags {
    hipMemAccessFlagsProtNone = 0,
    hipMemAccessFlagsProtRead = 1,
    hipMemAccessFlagsProtReadWrite = 3
} hipMemAccessFlags;
typedef enum hipMemPoolAttr {
    hipMemPoolReuseFollowEventDependencies = 1,
    hipMemPoolReuseAllowOpportunistic = 2,
    hipMemPoolReuseAllowInternalDependencies = 3,
    hipMemPoolAttrReleaseThreshold = 4,
    hipMemPoolAttrReservedMemCurrent = 5,
    hipMemPoolAttrReservedMemHigh = 6,
    hipMemPoolAttrUsedMemCurrent = 7,
    hipMemPoolAttrUsedMemHigh = 8
} hipMemPoolAttr;

typedef struct hipMemLocation {
    hipMemLocationType type;
    int id;
} hipMemLocation;

typedef struct hipMemAccessDesc {
    hipMemLocation location;
    hipMemAccessFlags flags;
} hipMemAccessDesc;

/* Until 5 there is no maxSize: its place is the first of 64 reserved bytes. */
typedef struct hipMemPoolProps {
    hipMemAllocationType allocType;
    hipMemAllocationHandleType handleTypes;
    hipMemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
} hipMemPoolProps;

typedef struct hipMemPoolPtrExportData {
    unsigned char reserved[64];
} hipMemPoolPtrExportData;

/* From 6 on laid out as CUDA's. */
typedef struct hipMemAllocationProp {
    hipMemAllocationType type;
    hipMemAllocationHandleType requestedHandleType;
    hipMemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
    } allocFlags;
} hipMemAllocationProp;

typedef struct {
    unsigned char compressionType;
    hipMemLocation location;
    hipMemAllocationHandleType requestedHandleType;
    hipMemAllocationType type;
    unsigned short usage;
    void *win32HandleMetaData;
} hipMemAllocationProp5;

/* --- sharing --- */

typedef struct hipIpcMemHandle_st {
    char reserved[64];
} hipIpcMemHandle_t;

typedef struct hipIpcEventHandle_st {
    char reserved[64];
} hipIpcEventHandle_t;

/* The fields that follow `size` differ between versions. */
typedef struct hipExternalMemoryHandleDesc_st {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned flags;
} hipExternalMemoryHandleDesc;

/* `size` stands at one place in every version; `flags` is followed by reserved words from 6 on. */
typedef struct hipExternalMemoryBufferDesc_st {
    unsigned long long offset, size;
    unsigned flags;
} hipExternalMemoryBufferDesc;

/* Nodes of graphs: numbers and places are CUDA's. */
typedef struct hipMemAllocNodeParams {
    hipMemPoolProps poolProps;
    const hipMemAccessDesc *accessDescs;
    size_t accessDescCount, bytesize;
    void *dptr;
} hipMemAllocNodeParams;

typedef enum hipGraphNodeType {
    hipGraphNodeTypeGraph = 4,
    hipGraphNodeTypeEmpty = 5,
    hipGraphNodeTypeMemAlloc = 10,
    hipGraphNodeTypeMemFree = 11
} hipGraphNodeType;

typedef struct hipGraphNodeParams {
    hipGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        hipMemAllocNodeParams alloc;
        struct {
            void *dptr;
        } free;
    };
    long long reserved2;
} hipGraphNodeParams;

typedef enum hipGraphMemAttributeType {
    hipGraphMemAttrUsedMemCurrent = 0,
    hipGraphMemAttrUsedMemHigh = 1,
    hipGraphMemAttrReservedMemCurrent = 2,
    hipGraphMemAttrReservedMemHigh = 3
} hipGraphMemAttributeType;

typedef struct hipGraphInstantiateParams hipGraphInstantiateParams; /* handed on, never looked into */
typedef enum hipDriverProcAddressQueryResult {
    HIP_GET_PROC_ADDRESS_SUCCESS = 0,
    HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} hipDriverProcAddressQueryResult;
typedef enum hipDriverEntryPointQueryResult {
    hipDriverEntryPointSuccess = 0,
    hipDriverEntryPointSymbolNotFound = 1,
    hipDriverEntryPointVersionNotSufficent = 2
} hipDriverEntryPointQueryResult;

typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *user_data);
typedef void (*hipHostFn_t)(void *user_data);

/* --- properties of a device: what is asked for, at its place in each version --- */

typedef struct {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate,
        memoryClockRate, memoryBusWidth;
    size_t totalConstMem;
    int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode,
        clockInstructionRate;
    unsigned arch; /* bits */
    int concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
    size_t maxSharedMemoryPerMultiProcessor;
    int isMultiGpuBoard, canMapHostMemory, gcnArch;
    char gcnArchName[256];
    unsigned char rest[140];
} hipDeviceProp_tR0000;

typedef struct hipFuncAttributes {
    int binaryVersion;
    int cacheModeCA;
    size_t constSizeBytes;
    size_t localSizeBytes;
    int maxDynamicSharedSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int preferredShmemCarveout;
    int ptxVersion;
    size_t sharedSizeBytes;
} hipFuncAttributes;

typedef struct {
    char name[256];
    hipUUID uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
        computeMode;
    unsigned char images[168]; /* limits of textures and surfaces */
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount,
        unifiedAddressing;
    unsigned char caches[44];
    int managedMemory;
    unsigned char access[88];
    int memoryPoolsSupported;
    unsigned char more[412];
    char gcnArchName[256];
    size_t maxSharedMemoryPerMultiProcessor;
    unsigned char rest[48];
} hipDeviceProp_tR0600;

#ifndef __cplusplus
_Static_assert(sizeof(hipDeviceProp_tR0000) == 792, "hipDeviceProp_t of 5.2");
_Static_assert(offsetof(hipDeviceProp_tR0000, gcnArchName) == 396, "hipDeviceProp_t of 5.2");
_Static_assert(sizeof(hipDeviceProp_tR0600) == 1472, "hipDeviceProp_t of 6.0");
_Static_assert(offsetof(hipDeviceProp_tR0600, images) == 408 &&
                   offsetof(hipDeviceProp_tR0600, concurrentKernels) == 576 &&
                   offsetof(hipDeviceProp_tR0600, managedMemory) == 652 &&
                   offsetof(hipDeviceProp_tR0600, memoryPoolsSupported) == 744 &&
                   offsetof(hipDeviceProp_tR0600, gcnArchName) == 1160,
               "hipDeviceProp_t of 6.0");
#endif

#ifdef __cplusplus
}
#endif

#endif
