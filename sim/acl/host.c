/*
 * Host memory: pinned, and registered. No lock of its own.
 */
#include "sim/acl/acl.h"

static aclError allocate(void **address_p, size_t bytes)
{
    ACL_CHECK(address_p && bytes, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    return acl_status(cuMemHostAlloc(address_p, bytes, CU_MEMHOSTALLOC_PORTABLE));
}

ACL_API(aclrtMallocHost)(void **address_p, size_t bytes)
{
    ACL_ENTER(aclrtMallocHost);
    return allocate(address_p, bytes);
}

ACL_API(aclrtMallocHostWithCfg)(void **address_p, uint64_t bytes, aclrtMallocConfig *config)
{
    ACL_ENTER(aclrtMallocHostWithCfg);
    (void)config;
    return allocate(address_p, bytes);
}

ACL_API(aclrtFreeHost)(void *address)
{
    ACL_ENTER(aclrtFreeHost);
    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemFreeHost(address));
}

ACL_API(aclrtFreeHostWithDevSync)(void *address)
{
    ACL_ENTER(aclrtFreeHostWithDevSync);
    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuCtxSynchronize()));
    return acl_status(cuMemFreeHost(address));
}

ACL_API(aclrtHostRegister)(void *address, uint64_t bytes, aclrtHostRegisterType type, void **device_address_p)
{
    ACL_ENTER(aclrtHostRegister);
    ACL_CHECK(address && bytes && device_address_p && type == ACL_HOST_REGISTER_MAPPED,
              ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuMemHostRegister_v2(address, bytes, CU_MEMHOSTREGISTER_DEVICEMAP)));
    *device_address_p = address;
    return ACL_SUCCESS;
}

ACL_API(aclrtHostRegisterV2)(void *address, uint64_t bytes, uint32_t flag)
{
    ACL_ENTER(aclrtHostRegisterV2);
    (void)flag;
    ACL_CHECK(address && bytes, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemHostRegister_v2(address, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
}

ACL_API(aclrtHostGetDevicePointer)(void *address, void **device_address_p, uint32_t flag)
{
    ACL_ENTER(aclrtHostGetDevicePointer);
    CUdeviceptr mapped;

    ACL_CHECK(address && device_address_p && !flag, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuMemHostGetDevicePointer_v2(&mapped, address, 0)));
    *device_address_p = (void *)(uintptr_t)mapped;
    return ACL_SUCCESS;
}

ACL_API(aclrtHostUnregister)(void *address)
{
    ACL_ENTER(aclrtHostUnregister);
    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemHostUnregister(address));
}
