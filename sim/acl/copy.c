/*
 * Copies and fills. Without a stream they run in a stream of the context's own and are waited for; they wait
 * for nothing else. No lock.
 */
#include "sim/acl/acl.h"

static aclError copy(void *to, size_t to_bytes, const void *from, size_t bytes, aclrtMemcpyKind kind,
                     CUstream stream)
{
    CUdeviceptr device_to = (uintptr_t)to, device_from = (uintptr_t)from;

    ACL_CHECK(to && from && bytes <= to_bytes, ACL_ERROR_INVALID_PARAM);
    switch ((int)kind) {
    case ACL_MEMCPY_HOST_TO_DEVICE:
        return acl_status(cuMemcpyHtoDAsync_v2(device_to, from, bytes, stream));
    case ACL_MEMCPY_DEVICE_TO_HOST:
        return acl_status(cuMemcpyDtoHAsync_v2(to, device_from, bytes, stream));
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
        return acl_status(cuMemcpyDtoDAsync_v2(device_to, device_from, bytes, stream));
    case ACL_MEMCPY_HOST_TO_HOST:
    case ACL_MEMCPY_DEFAULT:
        return acl_status(cuMemcpyAsync(device_to, device_from, bytes, stream));
    default:
        return ACL_ERROR_INVALID_PARAM;
    }
}

ACL_API(aclrtMemcpy)(void *to, size_t to_bytes, const void *from, size_t bytes, aclrtMemcpyKind kind)
{
    ACL_ENTER(aclrtMemcpy);
    CUstream stream;

    ACL_TRY(acl_sync_stream(&stream));
    ACL_TRY(copy(to, to_bytes, from, bytes, kind, stream));
    return acl_status(cuStreamSynchronize(stream));
}

ACL_API(aclrtMemcpyAsync)
(void *to, size_t to_bytes, const void *from, size_t bytes, aclrtMemcpyKind kind, aclrtStream stream)
{
    ACL_ENTER(aclrtMemcpyAsync);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    ACL_TRY(acl_context());
    return copy(to, to_bytes, from, bytes, kind, stream);
}

static aclError fill(void *to, size_t to_bytes, int32_t value, size_t bytes, CUstream stream)
{
    ACL_CHECK(to && bytes <= to_bytes, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemsetD8Async((uintptr_t)to, (unsigned char)value, bytes, stream));
}

ACL_API(aclrtMemset)(void *to, size_t to_bytes, int32_t value, size_t bytes)
{
    ACL_ENTER(aclrtMemset);
    CUstream stream;

    ACL_TRY(acl_sync_stream(&stream));
    ACL_TRY(fill(to, to_bytes, value, bytes, stream));
    return acl_status(cuStreamSynchronize(stream));
}

ACL_API(aclrtMemsetAsync)(void *to, size_t to_bytes, int32_t value, size_t bytes, aclrtStream stream)
{
    ACL_ENTER(aclrtMemsetAsync);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    ACL_TRY(acl_context());
    return fill(to, to_bytes, value, bytes, stream);
}
