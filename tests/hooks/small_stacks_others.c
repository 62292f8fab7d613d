/*
 * small_stacks_others.c - as small_stacks.c, for what NCCL's, Ascend's and HIP's functions take.
 *
 * The libraries are opened, so that one program has all of them. Prints a line for each call, natively and
 * under memshim.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "vendor/abi/acl.h"
#include "tests/hooks/small_stacks_paint.h"

static struct {
    void *p, *handle, *range;
    aclrtPhysicalMemProp prop;
    int status;
} the;

/* Types by which they are called; handles are pointers. */
static int (*nccl_alloc)(void **, size_t), (*nccl_free)(void *), (*nccl_begin)(void), (*nccl_end)(void);
static int (*hip_alloc)(void **, size_t), (*hip_free)(void *), (*hip_host)(void **, size_t, unsigned),
    (*hip_host_free)(void *);
static int (*acl_init)(const char *), (*acl_device)(int32_t), (*acl_alloc)(void **, size_t, int),
    (*acl_free)(void *);
static int (*acl_create)(void **, size_t, const aclrtPhysicalMemProp *, uint64_t), (*acl_release)(void *);
static int (*acl_reserve)(void **, size_t, size_t, void *, uint64_t), (*acl_unmap)(void *);
static int (*acl_map)(void *, size_t, size_t, void *, uint64_t);

static const struct {
    const char *library, *name;
    void *function_p;
} functions[] = {
    {"libnccl.so.2", "ncclMemAlloc", &nccl_alloc},
    {"libnccl.so.2", "ncclMemFree", &nccl_free},
    {"libnccl.so.2", "ncclGroupStart", &nccl_begin},
    {"libnccl.so.2", "ncclGroupEnd", &nccl_end},
    {"libamdhip64.so.6", "hipMalloc", &hip_alloc},
    {"libamdhip64.so.6", "hipFree", &hip_free},
    {"libamdhip64.so.6", "hipHostMalloc", &hip_host},
    {"libamdhip64.so.6", "hipHostFree", &hip_host_free},
    {"libascendcl.so", "aclInit", &acl_init},
    {"libascendcl.so", "aclrtSetDevice", &acl_device},
    {"libascendcl.so", "aclrtMalloc", &acl_alloc},
    {"libascendcl.so", "aclrtFree", &acl_free},
    {"libascendcl.so", "aclrtMallocPhysical", &acl_create},
    {"libascendcl.so", "aclrtFreePhysical", &acl_release},
    {"libascendcl.so", "aclrtReserveMemAddress", &acl_reserve},
    {"libascendcl.so", "aclrtMapMem", &acl_map},
    {"libascendcl.so", "aclrtUnmapMem", &acl_unmap},
};

enum { BYTES = 2 << 20 };

static void nccl_take(void)
{
    the.status = nccl_alloc(&the.p, BYTES);
}
static void nccl_give(void)
{
    the.status = nccl_free(the.p);
}
static void nccl_open(void)
{
    the.status = nccl_begin();
}
static void nccl_close(void)
{
    the.status = nccl_begin() + nccl_end();
}
static void hip_take(void)
{
    the.status = hip_alloc(&the.p, BYTES);
}
static void hip_give(void)
{
    the.status = hip_free(the.p);
}
static void hip_pin(void)
{
    the.status = hip_host(&the.p, BYTES, 0);
}
static void hip_unpin(void)
{
    the.status = hip_host_free(the.p);
}
static void acl_take(void)
{
    the.status = acl_alloc(&the.p, BYTES, 0);
}
static void acl_give(void)
{
    the.status = acl_free(the.p);
}
static void acl_make(void)
{
    the.status = acl_create(&the.handle, BYTES, &the.prop, 0);
}
static void acl_drop(void)
{
    the.status = acl_release(the.handle);
}
static void acl_join(void)
{
    the.status = acl_map(the.range, BYTES, 0, the.handle, 0);
}
static void acl_part(void)
{
    the.status = acl_unmap(the.range);
}

/* A thread of Ascend's has to say its device. */
static void prepare(void)
{
    acl_device(0);
}

static const struct {
    const char *name;
    void (*before)(void), (*call)(void);
} rows[] = {
    {"ncclMemAlloc", NULL, nccl_take},
    {"ncclMemFree", NULL, nccl_give},
    {"ncclMemAlloc/again", NULL, nccl_take},
    {"ncclMemFree/again", NULL, nccl_give},
    {"ncclGroupStart", NULL, nccl_open},
    {"ncclGroupEnd", NULL, nccl_close},
    {"hipMalloc", NULL, hip_take},
    {"hipFree", NULL, hip_give},
    {"hipMalloc/again", NULL, hip_take},
    {"hipFree/again", NULL, hip_give},
    {"hipHostMalloc", NULL, hip_pin},
    {"hipHostFree", NULL, hip_unpin},
    {"aclrtMalloc", prepare, acl_take},
    {"aclrtFree", prepare, acl_give},
    {"aclrtMallocPhysical", prepare, acl_make},
    {"aclrtMapMem", prepare, acl_join},
    {"aclrtUnmapMem", prepare, acl_part},
    {"aclrtFreePhysical", prepare, acl_drop},
    {"aclrtMallocPhysical/again", prepare, acl_make},
    {"aclrtFreePhysical/again", prepare, acl_drop},
};

int main(void)
{
    for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *library = dlopen(functions[i].library, RTLD_NOW | RTLD_LOCAL);
        void *function = library ? dlsym(library, functions[i].name) : NULL;
        if (!function) {
            fprintf(stderr, "%s: %s\n", functions[i].name, dlerror());
            return 3;
        }
        memcpy(functions[i].function_p, &function, sizeof(function));
    }
    the.prop.memAttr = ACL_HBM_MEM_HUGE;
    the.prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    if (acl_init(NULL) != 0 || acl_device(0) != 0 || acl_reserve(&the.range, BYTES, 0, NULL, 0) != 0)
        return 3;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        paint_measure(rows[i].name, rows[i].before, rows[i].call, &the.status);
    return 0;
}
