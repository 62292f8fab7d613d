/*
 * Device memory between processes by key. A key is text; the memory behind it is opened as the rooms below
 * open legacy handles. Own: which keys this process has made and opened, under one mutex.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/acl/share.h"

#define KEY_BYTES 65
#define KEY_TEXT  "memsim-%016" PRIx64

struct opened {
    struct opened *next;
    uint64_t shared;
    CUdeviceptr address;
    unsigned count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *opened_keys;

static bool read_key(const char *key, uint64_t *shared_p)
{
    char again[KEY_BYTES];

    if (!key || sscanf(key, "memsim-%16" SCNx64, shared_p) != 1)
        return false;
    snprintf(again, sizeof again, KEY_TEXT, *shared_p);
    return !strcmp(key, again);
}

ACL_API(aclrtIpcMemGetExportKey)(void *address, size_t bytes, char *key, size_t key_bytes, uint64_t flags)
{
    ACL_ENTER(aclrtIpcMemGetExportKey);
    struct acl_share_row row = {.kind = ACL_SHARE_KEY,
                                .anybody = flags & ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION};
    CUdeviceptr base = 0;
    size_t whole = 0;

    ACL_CHECK(address && bytes && key && key_bytes >= KEY_BYTES && flags <= 1, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    ACL_CHECK(cuMemGetAddressRange_v2(&base, &whole, (uintptr_t)address) == CUDA_SUCCESS &&
                  base == (uintptr_t)address,
              ACL_ERROR_RT_IPC_ERROR);
    ACL_CHECK(cuIpcGetMemHandle(&row.memory, base) == CUDA_SUCCESS, ACL_ERROR_RT_IPC_ERROR);
    uint64_t shared = acl_share_enter(&row);
    ACL_CHECK(shared, ACL_ERROR_RT_IPC_ERROR);
    snprintf(key, key_bytes, KEY_TEXT, shared);
    return ACL_SUCCESS;
}

ACL_API(aclrtIpcMemSetImportPid)(const char *key, int32_t *pids, size_t count)
{
    ACL_ENTER(aclrtIpcMemSetImportPid);
    uint64_t shared;

    ACL_CHECK(key && pids && count, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(read_key(key, &shared) && acl_share_permit(shared, ACL_SHARE_KEY, pids, count) == ACL_SUCCESS,
              ACL_ERROR_RT_IPC_ERROR);
    return ACL_SUCCESS;
}

static struct opened **find_opened(uint64_t shared)
{
    struct opened **link = &opened_keys;

    while (*link && (*link)->shared != shared)
        link = &(*link)->next;
    return link;
}

ACL_API(aclrtIpcMemImportByKey)(void **address_p, const char *key, uint64_t flags)
{
    ACL_ENTER(aclrtIpcMemImportByKey);
    struct acl_share_row row;
    CUdeviceptr address;
    uint64_t shared;

    ACL_CHECK(address_p && key && flags <= 1, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    ACL_CHECK(read_key(key, &shared) && acl_share_find(shared, ACL_SHARE_KEY, &row) == ACL_SUCCESS,
              ACL_ERROR_RT_IPC_ERROR);
    ACL_CHECK(cuIpcOpenMemHandle_v2(&address, row.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS,
              ACL_ERROR_RT_IPC_ERROR);
    pthread_mutex_lock(&lock);
    struct opened **link = find_opened(shared);
    if (!*link && (*link = calloc(1, sizeof **link)))
        (*link)->shared = shared;
    struct opened *opened = *link;
    if (opened) {
        opened->count++;
        opened->address = address;
    }
    pthread_mutex_unlock(&lock);
    if (!opened) {
        cuIpcCloseMemHandle(address);
        return ACL_ERROR_RT_IPC_ERROR;
    }
    *address_p = (void *)(uintptr_t)address;
    return ACL_SUCCESS;
}

/* In the process that made the key it ends the key, elsewhere what was opened with it. */
ACL_API(aclrtIpcMemClose)(const char *key)
{
    ACL_ENTER(aclrtIpcMemClose);
    CUdeviceptr address = 0;
    uint64_t shared;

    ACL_CHECK(key, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(read_key(key, &shared), ACL_ERROR_RT_IPC_ERROR);
    if (acl_share_owner(shared) == getpid()) {
        acl_share_forget(shared);
        return ACL_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    struct opened **link = find_opened(shared), *opened = *link;
    if (opened) {
        address = opened->address;
        if (!--opened->count) {
            *link = opened->next;
            free(opened);
        }
    }
    pthread_mutex_unlock(&lock);
    ACL_CHECK(address, ACL_ERROR_RT_IPC_ERROR);
    return acl_status(cuIpcCloseMemHandle(address));
}
