/* rows_acl.c - the functions of Ascend's runtime: see rows.h. */
#include "tests/limit/rows.h"

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"

static const aclrtPhysicalMemProp pages = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                           .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                           .memAttr = ACL_HBM_MEM_HUGE,
                                           .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
static aclrtMemPool pool;
static aclrtStream stream;

#define EACH_ROW(X)                                                                                          \
    X(aclrtMalloc, aclrtMalloc(&t->pointer, n, 0), aclrtFree(t->pointer))                                    \
    X(aclrtMallocAlign32, aclrtMallocAlign32(&t->pointer, n, 0), aclrtFree(t->pointer))                      \
    X(aclrtMallocCached, aclrtMallocCached(&t->pointer, n, 0), aclrtFree(t->pointer))                        \
    X(aclrtMallocWithCfg, aclrtMallocWithCfg(&t->pointer, n, 0, NULL), aclrtFree(t->pointer))                \
    X(aclrtMallocForTaskScheduler, aclrtMallocForTaskScheduler(&t->pointer, n, 0, NULL),                     \
      aclrtFree(t->pointer))                                                                                 \
    X(aclrtMemAllocManaged, aclrtMemAllocManaged(&t->pointer, n, 1), aclrtFree(t->pointer))                  \
    X(aclrtAllocBuf, aclrtAllocBuf(&t->pointer, n), aclrtFreeBuf(t->pointer))                                \
    X(aclrtMallocPhysical, aclrtMallocPhysical((aclrtDrvMemHandle *)&t->pointer, n, &pages, 0),              \
      aclrtFreePhysical((aclrtDrvMemHandle)t->pointer))                                                      \
    X(aclrtMemPoolMallocAsync, aclrtMemPoolMallocAsync(&t->pointer, n, pool, stream),                        \
      aclrtMemPoolFreeAsync(t->pointer, stream))

EACH_ROW(FUNCTION)

static const struct row rows[] = {EACH_ROW(ROW){NULL, NULL, NULL}};

static int acl_begin(void)
{
    const aclrtMemPoolProps props = {.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    int status = (int)aclInit(NULL);

    if (!status)
        status = (int)aclrtSetDevice(0);
    if (!status)
        status = (int)aclrtCreateStream(&stream);
    return status ? status : (int)aclrtMemPoolCreate(&pool, &props);
}

static int acl_memory(size_t *free_p, size_t *total_p)
{
    return (int)aclrtGetMemInfo(ACL_HBM_MEM, free_p, total_p);
}

static int acl_wait(void)
{
    return (int)aclrtSynchronizeDevice();
}

const struct vendor acl_vendor = {"libascendcl.so", acl_begin, acl_memory, acl_wait, rows};
