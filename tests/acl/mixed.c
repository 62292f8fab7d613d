/*
 * A process that uses CUDA and Ascend at once, each found by dlsym: some memory of each stays, some is used
 * again.
 */
#include <dlfcn.h>

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "tests/tap.h"

#define MIB                (1024UL * 1024UL)
#define GET(library, name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)
#define must(call)                                                                                           \
    do {                                                                                                     \
        int must_status = (int)(call);                                                                       \
        if (must_status)                                                                                     \
            bail("%s: %d", #call, must_status);                                                              \
    } while (0)

int main(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *acl = dlopen("libascendcl.so", RTLD_NOW);
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr p;
    CUcontext context;
    void *block, *host;

    if (!cuda || !acl)
        bail("%s", dlerror());
    GET(cuda, cuInit);
    GET(cuda, cuDevicePrimaryCtxRetain);
    GET(cuda, cuCtxSetCurrent);
    GET(cuda, cuMemAlloc_v2);
    GET(cuda, cuMemFree_v2);
    GET(acl, aclrtSetDevice);
    GET(acl, aclrtMalloc);
    GET(acl, aclrtMallocHost);
    GET(acl, aclrtMallocPhysical);
    GET(acl, aclrtFreePhysical);
    plan(0);
    must(p_cuInit(0));
    must(p_cuDevicePrimaryCtxRetain(&context, 0));
    must(p_cuCtxSetCurrent(context));
    must(p_aclrtSetDevice(0));
    for (int i = 0; i < 3; i++) {
        aclrtDrvMemHandle handle;
        must(p_cuMemAlloc_v2(&p, 3 * MIB));
        must(p_aclrtMallocPhysical(&handle, 20 * MIB, &prop, 0));
        must(p_cuMemFree_v2(p));
        must(p_aclrtFreePhysical(handle));
    }
    must(p_cuMemAlloc_v2(&p, 5 * MIB));
    must(p_aclrtMalloc(&block, 7 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    must(p_aclrtMallocHost(&host, MIB));
    ok(true, "both were used");
    return done();
}
