/*
 * The Ascend runtime interface (AscendCL, `aclrt*`) as far as memshim needs it: types, enumerations,
 * structures, constants.
 *
 * Own declarations of public facts; there are no headers that a test could hold them against, so each says
 * where it comes from: [api]  the CANN Runtime API reference on hiascend.com (8.0 to 9.0, chapters "memory
 * management", "data types", "aclError"), [npu]  torch_npu (Ascend/pytorch): the interface it declares for
 * itself, and NPUCachingAllocator.cpp, which uses it, [rt]   the open CANN runtime (hicann/runtime): names
 * and orders of parameters, argument checks, numbers. Handles are opaque pointers, every function returns an
 * aclError, which is an int. Two things differ from CUDA's twins at first sight: a location is {id, type}, in
 * this order, and unmapping names an address without a size. Prototypes are in acl_fn.h.
 */
#ifndef MEMSHIM_GPU_ABI_ACL_H
#define MEMSHIM_GPU_ABI_ACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* [api] "aclError": 1xxxxx is a wrong call, 2xxxxx a resource that is short, 5xxxxx a failure inside. */
typedef int aclError;
enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_UNINITIALIZE = 100001,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
    ACL_ERROR_REPEAT_FINALIZE = 100037,
    ACL_ERROR_RT_PARAM_INVALID = 107000,
    ACL_ERROR_RT_INVALID_DEVICEID = 107001,
    ACL_ERROR_RT_CONTEXT_NULL = 107002,
    ACL_ERROR_RT_STREAM_CONTEXT = 107003,
    ACL_ERROR_RT_ADDR_UNALIGNED = 107008,
    ACL_ERROR_RT_INVALID_HANDLE = 107017,
    ACL_ERROR_API_NOT_SUPPORT = 200001,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
    ACL_ERROR_RT_MEMORY_ALLOCATION =
        207001, /* [npu] the one code on which its allocator gives back and tries again */
    ACL_ERROR_RT_MEMORY_FREE = 207002,
    ACL_ERROR_RT_NO_DEVICE = 207004,
    ACL_ERROR_RT_IPC_ERROR = 507022,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047,
    ACL_ERROR_RT_DRV_INTERNAL_ERROR = 507899,
};

/* [api] "data types": opaque objects. */
typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtDrvMemHandle;
typedef void *aclrtMemPool;
typedef void *aclrtMbuf;
typedef struct aclrtMallocConfig aclrtMallocConfig; /* handed on, never looked into */
typedef struct aclrtServerPid aclrtServerPid;       /* likewise */
typedef struct aclrtMemUceInfo aclrtMemUceInfo;     /* likewise */
typedef struct aclrtMemUsageInfo aclrtMemUsageInfo; /* likewise */
typedef int aclrtIpcMemAttrType;                    /* [api] an enumeration */
typedef int aclrtMemLinkType;                       /* likewise */
typedef int aclrtHacType;                           /* likewise */
typedef int aclrtHostMemMapCapability;              /* likewise */
typedef int aclrtMemManagedAdviseType;              /* likewise */
typedef int aclrtMemManagedRangeAttribute;          /* likewise */
typedef void (*aclrtHostFunc)(void *args);          /* [rt] */

/* [api] aclrtMemMallocPolicy: huge pages are 2 MiB, "1G" ones 1 GiB. A number that is none of these means the
 * first. */
typedef enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST = 0,
    ACL_MEM_MALLOC_HUGE_ONLY = 1,
    ACL_MEM_MALLOC_NORMAL_ONLY = 2,
    ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
    ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
    ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
    ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
    ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

/* [api] aclrtMemAttr; from 12 on since CANN 8.5. [rt] which of them a physical handle may have. */
typedef enum aclrtMemAttr {
    ACL_DDR_MEM = 0,
    ACL_HBM_MEM = 1,
    ACL_DDR_MEM_HUGE = 2,
    ACL_DDR_MEM_NORMAL = 3,
    ACL_HBM_MEM_HUGE = 4,
    ACL_HBM_MEM_NORMAL = 5,
    ACL_DDR_MEM_P2P_HUGE = 6,
    ACL_DDR_MEM_P2P_NORMAL = 7,
    ACL_HBM_MEM_P2P_HUGE = 8,
    ACL_HBM_MEM_P2P_NORMAL = 9,
    ACL_HBM_MEM_HUGE1G = 10,
    ACL_HBM_MEM_P2P_HUGE1G = 11,
    ACL_MEM_NORMAL = 12,
    ACL_MEM_HUGE = 13,
    ACL_MEM_HUGE1G = 14,
    ACL_MEM_P2P_NORMAL = 15,
    ACL_MEM_P2P_HUGE = 16,
    ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

/* [api] aclrtMemHandleType, [npu]. */
typedef enum aclrtMemHandleType {
    ACL_MEM_HANDLE_TYPE_NONE = 0,
    ACL_MEM_HANDLE_TYPE_POSIX = 2
} aclrtMemHandleType;

/* [api] aclrtMemAllocationType, [npu]. */
typedef enum aclrtMemAllocationType { ACL_MEM_ALLOCATION_TYPE_PINNED = 0 } aclrtMemAllocationType;

/* [api] aclrtMemSharedHandleType. */
typedef enum aclrtMemSharedHandleType {
    ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 1, /* the handle is a uint64_t */
    ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2,  /* the handle is an aclrtMemFabricHandle */
} aclrtMemSharedHandleType;

/* [api] aclrtMemLocationType, [npu]. */
typedef enum aclrtMemLocationType {
    ACL_MEM_LOCATION_TYPE_HOST = 0,
    ACL_MEM_LOCATION_TYPE_DEVICE = 1,
    ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,
    ACL_MEM_LOCATION_TYPE_MANAGED = 3,
    ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,
} aclrtMemLocationType;

/* [api] aclrtMemGranularityOptions. */
typedef enum aclrtMemGranularityOptions {
    ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
    ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF,
} aclrtMemGranularityOptions;

/* [api] aclrtMemAccessFlags. */
typedef enum aclrtMemAccessFlags {
    ACL_RT_MEM_ACCESS_FLAGS_NONE = 0,
    ACL_RT_MEM_ACCESS_FLAGS_READ = 1,
    ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3,
} aclrtMemAccessFlags;

/* [api] aclrtMemcpyKind, [npu]. */
typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
    ACL_MEMCPY_DEFAULT = 4,
} aclrtMemcpyKind;

/* [npu] the states of events and streams; the recorded status counts the other way round. */
typedef enum aclrtEventStatus {
    ACL_EVENT_STATUS_COMPLETE = 0,
    ACL_EVENT_STATUS_NOT_READY = 1,
    ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;
typedef enum aclrtEventRecordedStatus {
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;
typedef enum aclrtEventWaitStatus {
    ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
    ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
    ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF,
} aclrtEventWaitStatus;
typedef enum aclrtStreamStatus {
    ACL_STREAM_STATUS_COMPLETE = 0,
    ACL_STREAM_STATUS_NOT_READY = 1,
    ACL_STREAM_STATUS_RESERVED = 0xFFFF,
} aclrtStreamStatus;

/* [api] aclrtRunMode, aclrtHostRegisterType. */
typedef enum aclrtRunMode { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;
typedef enum aclrtHostRegisterType { ACL_HOST_REGISTER_MAPPED = 0 } aclrtHostRegisterType;

/* [api] aclrtMemPoolAttr: the numbers are those of CUDA's attributes. */
typedef enum aclrtMemPoolAttr {
    ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2,
    ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD = 4,
    ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT = 5,
    ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH = 6,
    ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT = 7,
    ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH = 8,
} aclrtMemPoolAttr;

/* [api] aclrtMemLocation, [npu]: the number comes first, unlike CUDA's. */
typedef struct aclrtMemLocation {
    uint32_t id;
    aclrtMemLocationType type;
} aclrtMemLocation;
typedef aclrtMemLocation aclrtMemManagedLocation; /* [api] the same two members */

/* [api] aclrtPhysicalMemProp, [npu]. */
typedef struct aclrtPhysicalMemProp {
    aclrtMemHandleType handleType;
    aclrtMemAllocationType allocationType;
    aclrtMemAttr memAttr;
    aclrtMemLocation location;
    uint64_t reserve;
} aclrtPhysicalMemProp;

/* [api] aclrtMemAccessDesc. */
typedef struct aclrtMemAccessDesc {
    aclrtMemAccessFlags flags;
    aclrtMemLocation location;
    uint8_t rsv[12];
} aclrtMemAccessDesc;

/* [api] aclrtPtrAttributes. */
typedef struct aclrtPtrAttributes {
    aclrtMemLocation location;
    uint32_t pageSize;
    uint32_t rsv[4];
} aclrtPtrAttributes;

/* [api] aclrtMemFabricHandle. */
typedef struct aclrtMemFabricHandle {
    uint8_t data[128];
} aclrtMemFabricHandle;

/* [api] aclrtMemPoolProps. */
typedef struct aclrtMemPoolProps {
    aclrtMemAllocationType allocType;
    aclrtMemHandleType handleType;
    aclrtMemLocation location;
    size_t maxSize;
    unsigned char reserved[32];
} aclrtMemPoolProps;

/* [api] flags. */
#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT                    0x0UL
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION     0x1UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT                0x0UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT                0x0UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS     0x1UL
#define ACL_RT_MEM_ATTACH_GLOBAL                          0x1U

#ifndef __cplusplus
_Static_assert(sizeof(aclrtMemLocation) == 8 && sizeof(aclrtPhysicalMemProp) == 32,
               "the layouts of the interface");
_Static_assert(offsetof(aclrtPhysicalMemProp, location) == 12 &&
                   offsetof(aclrtPhysicalMemProp, reserve) == 24,
               "the layouts of the interface");
_Static_assert(sizeof(aclrtMemAccessDesc) == 24 && sizeof(aclrtPtrAttributes) == 28 &&
                   sizeof(aclrtMemPoolProps) == 56,
               "the layouts of the interface");
#endif

#ifdef __cplusplus
}
#endif

#endif
