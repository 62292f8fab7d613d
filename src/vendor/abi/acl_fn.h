/*
 * Prototypes of the Ascend runtime's exported functions: every memory function, and every one that the
 * simulator carries.
 *
 * Facts of the public interface, types only; the letters behind a line are those of acl.h and say where it
 * comes from. Where there is none it is [api]: the page of that function in the CANN Runtime API reference.
 */
#ifndef MEMSHIM_GPU_ABI_ACL_FN_H
#define MEMSHIM_GPU_ABI_ACL_FN_H

#include "vendor/abi/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The library and its devices. */
aclError aclInit(const char *);
aclError aclFinalize(void);
aclError aclrtCreateContext(aclrtContext *, int32_t);
aclError aclrtDestroyContext(aclrtContext);
aclError aclrtDeviceCanAccessPeer(int32_t *, int32_t, int32_t);
aclError aclrtDeviceDisablePeerAccess(int32_t);
aclError aclrtDeviceEnablePeerAccess(int32_t, uint32_t);
aclError aclrtDeviceGetBareTgid(int32_t *);
aclError aclrtGetCurrentContext(aclrtContext *);
aclError aclrtGetDevice(int32_t *);
aclError aclrtGetDeviceCount(uint32_t *);
aclError aclrtGetPrimaryCtxState(int32_t, uint32_t *, int32_t *); /* [rt] */
aclError aclrtGetRunMode(aclrtRunMode *);
const char *aclrtGetSocName(void);
aclError aclrtGetVersion(int32_t *, int32_t *, int32_t *);
aclError aclrtResetDevice(int32_t);
aclError aclrtResetDeviceForce(int32_t);
aclError aclrtSetCurrentContext(aclrtContext);
aclError aclrtSetDevice(int32_t);
aclError aclrtSynchronizeDevice(void);
aclError aclrtSynchronizeDeviceWithTimeout(int32_t);

/* Streams and events. */
aclError aclrtCreateEvent(aclrtEvent *);
aclError aclrtCreateEventExWithFlag(aclrtEvent *, uint32_t);
aclError aclrtCreateEventWithFlag(aclrtEvent *, uint32_t);
aclError aclrtCreateStream(aclrtStream *);
aclError aclrtCreateStreamWithConfig(aclrtStream *, uint32_t, uint32_t);
aclError aclrtDestroyEvent(aclrtEvent);
aclError aclrtDestroyStream(aclrtStream);
aclError aclrtDestroyStreamForce(aclrtStream);
aclError aclrtEventElapsedTime(float *, aclrtEvent, aclrtEvent);
aclError aclrtLaunchHostFunc(aclrtStream, aclrtHostFunc, void *); /* [rt] */
aclError aclrtQueryEvent(aclrtEvent, aclrtEventStatus *);
aclError aclrtQueryEventStatus(aclrtEvent, aclrtEventRecordedStatus *);
aclError aclrtQueryEventWaitStatus(aclrtEvent, aclrtEventWaitStatus *);
aclError aclrtRecordEvent(aclrtEvent, aclrtStream);
aclError aclrtStreamQuery(aclrtStream, aclrtStreamStatus *);
aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent);
aclError aclrtSynchronizeEvent(aclrtEvent);
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent, int32_t);
aclError aclrtSynchronizeStream(aclrtStream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t);

/* Device memory. */
aclError aclrtFree(void *);
aclError aclrtFreeWithDevSync(void *);
aclError aclrtMalloc(void **, size_t, aclrtMemMallocPolicy);
aclError aclrtMallocAlign32(void **, size_t, aclrtMemMallocPolicy);
aclError aclrtMallocCached(void **, size_t, aclrtMemMallocPolicy);
aclError aclrtMallocForTaskScheduler(void **, size_t, aclrtMemMallocPolicy, aclrtMallocConfig *);
aclError aclrtMallocWithCfg(void **, size_t, aclrtMemMallocPolicy, aclrtMallocConfig *);
aclError aclrtMemAllocManaged(void **, uint64_t, uint32_t);
aclError aclrtMemcpy(void *, size_t, const void *, size_t, aclrtMemcpyKind);
aclError aclrtMemcpyAsync(void *, size_t, const void *, size_t, aclrtMemcpyKind, aclrtStream);
aclError aclrtMemset(void *, size_t, int32_t, size_t);
aclError aclrtMemsetAsync(void *, size_t, int32_t, size_t, aclrtStream);

/* Host memory, and memory that a program brings. */
aclError aclrtFreeHost(void *);
aclError aclrtFreeHostWithDevSync(void *);
aclError aclrtHostGetDevicePointer(void *, void **, uint32_t);
aclError aclrtHostMemMapCapabilities(uint32_t, aclrtHacType, aclrtHostMemMapCapability *);
aclError aclrtHostRegister(void *, uint64_t, aclrtHostRegisterType, void **);
aclError aclrtHostRegisterV2(void *, uint64_t, uint32_t);
aclError aclrtHostUnregister(void *);
aclError aclrtMallocHost(void **, size_t);
aclError aclrtMallocHostWithCfg(void **, uint64_t, aclrtMallocConfig *);

/* Physical handles, addresses, mappings. */
aclError aclrtFreePhysical(aclrtDrvMemHandle);
aclError aclrtMallocPhysical(aclrtDrvMemHandle *, size_t, const aclrtPhysicalMemProp *, uint64_t);
aclError aclrtMapMem(void *, size_t, size_t, aclrtDrvMemHandle, uint64_t);
aclError aclrtMemGetAccess(void *, aclrtMemLocation *, uint64_t *);
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *, aclrtMemGranularityOptions, size_t *);
aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle, aclrtPhysicalMemProp *);
aclError aclrtMemMapNoAccess(void *, size_t, size_t, aclrtDrvMemHandle,
                             uint64_t); /* that it maps a handle onto an address is
public, its parameters are taken to be aclrtMapMem's; a hook hands all of them on as they came */
aclError aclrtMemMapSelectedLink(void *, size_t, void *, uint32_t);
aclError aclrtMemMapSetLink(aclrtDrvMemHandle, aclrtMemLinkType);
aclError aclrtMemP2PMap(void *, size_t, int32_t, uint64_t);
aclError aclrtMemRetainAllocationHandle(void *, aclrtDrvMemHandle *);
aclError aclrtMemSetAccess(void *, size_t, aclrtMemAccessDesc *, size_t);
aclError aclrtReleaseMemAddress(void *);
aclError aclrtReserveMemAddress(void **, size_t, size_t, void *, uint64_t);
aclError aclrtReserveMemAddressNoUCMemory(void **, size_t, size_t, void *, uint64_t);
aclError aclrtUnmapMem(void *);

/* Between processes. */
aclError aclrtIpcMemClose(const char *);
aclError aclrtIpcMemGetExportKey(void *, size_t, char *, size_t, uint64_t);
aclError aclrtIpcMemImportByKey(void **, const char *, uint64_t);
aclError aclrtIpcMemImportPidInterServer(const char *, aclrtServerPid *, size_t);
aclError aclrtIpcMemSetAttr(const char *, aclrtIpcMemAttrType, uint64_t);
aclError aclrtIpcMemSetImportPid(const char *, int32_t *, size_t);
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle, aclrtMemHandleType, uint64_t, uint64_t *);
aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle, uint64_t, aclrtMemSharedHandleType, void *);
aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t, aclrtDrvMemHandle *);
aclError aclrtMemImportFromShareableHandleV2(void *, aclrtMemSharedHandleType, uint64_t, aclrtDrvMemHandle *);
aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t *, size_t);
aclError aclrtMemSetPidToShareableHandleV2(void *, aclrtMemSharedHandleType, int32_t *, size_t);

/* Pools. */
aclError aclrtMemPoolCreate(aclrtMemPool *, const aclrtMemPoolProps *);
aclError aclrtMemPoolDestroy(aclrtMemPool);
aclError aclrtMemPoolFreeAsync(void *, aclrtStream);
aclError aclrtMemPoolGetAttr(aclrtMemPool, aclrtMemPoolAttr, void *);
aclError aclrtMemPoolMallocAsync(void **, size_t, aclrtMemPool, aclrtStream);
aclError aclrtMemPoolSetAttr(aclrtMemPool, aclrtMemPoolAttr, void *);
aclError aclrtMemPoolTrimTo(aclrtMemPool, size_t);

/* Questions. */
aclError aclrtCheckMemType(void **, uint32_t, uint32_t, uint32_t *, uint32_t);
aclError aclrtGetMemInfo(aclrtMemAttr, size_t *, size_t *);
aclError aclrtGetMemUceInfo(int32_t, aclrtMemUceInfo *, size_t, size_t *);
aclError aclrtGetMemUsageInfo(int32_t, aclrtMemUsageInfo *, size_t, size_t *);
aclError aclrtMemGetAddressRange(void *, void **, size_t *);
aclError aclrtMemUceRepair(int32_t, aclrtMemUceInfo *, size_t);
aclError aclrtPointerGetAttributes(const void *, aclrtPtrAttributes *);

/* Managed memory and message buffers. */
aclError aclrtAllocBuf(aclrtMbuf *, size_t);
aclError aclrtFreeBuf(aclrtMbuf);
aclError aclrtMemManagedAdvise(const void *, uint64_t, aclrtMemManagedAdviseType, aclrtMemManagedLocation);
aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute, const void *, size_t, void *, size_t);
aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute *, size_t, const void *, size_t, void **,
                                 size_t *);
aclError aclrtMemManagedPrefetchAsync(const void *, size_t, aclrtMemManagedLocation, uint32_t, aclrtStream);
aclError aclrtMemManagedPrefetchBatchAsync(const void **, size_t *, size_t, aclrtMemManagedLocation *,
                                           size_t *, size_t, uint64_t, aclrtStream);

#ifdef __cplusplus
}
#endif

#endif
