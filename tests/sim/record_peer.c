/*
 * Two devices and managed memory, as the record has them of two cards without a way between them and without
 * managed memory beside the host: through the runtime of CUDA 13 and the driver. See record.h.
 */
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/sim/record.h"

#define BYTES MIB
#define NONE  (-99) /* of a call that is refused */

#define NUMBER(fact, variable, call)                                                                         \
    do {                                                                                                     \
        int number_status = (int)(call);                                                                     \
        told(fact, number_status, "%d", number_status ? NONE : (variable));                                  \
    } while (0)

static void attributes(void)
{
    static const struct {
        const char *name;
        int number;
    } asked[] = {
        {"managed memory beside the host", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
        {"managed memory at once for the host", CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
        {"pageable memory", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
        {"the host's page tables", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES},
        {"managed memory", CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
        {"one space of addresses", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING}};
    char fact[96];
    int value = 0;

    for (int device = 0; device < 2; device++)
        for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++) {
            snprintf(fact, sizeof fact, "device %d: %s", device, asked[i].name);
            NUMBER(fact, value, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)asked[i].number, device));
        }
}

static void ways(void)
{
    static const int pairs[][2] = {{0, 1}, {1, 0}, {0, 0}, {0, 7}, {-1, 0}};
    char fact[96];
    int value = 0;

    for (unsigned i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        snprintf(fact, sizeof fact, "runtime: a way from %d to %d", pairs[i][0], pairs[i][1]);
        NUMBER(fact, value, cudaDeviceCanAccessPeer(&value, pairs[i][0], pairs[i][1]));
    }
    TOLD("runtime: a way, told to nowhere", cudaDeviceCanAccessPeer(NULL, 0, 1));
    for (int attribute = 0; attribute <= 7; attribute++)
        for (int from = 0; from < 2; from++) {
            snprintf(fact, sizeof fact, "runtime: attribute %d of the way from %d to %d", attribute, from,
                     1 - from);
            NUMBER(fact, value,
                   cudaDeviceGetP2PAttribute(&value, (enum cudaDeviceP2PAttr)attribute, from, 1 - from));
        }
    NUMBER("runtime: an attribute of the way from 0 to 0", value, cudaDeviceGetP2PAttribute(&value, 2, 0, 0));
    NUMBER("runtime: an attribute of the way from 0 to 7", value, cudaDeviceGetP2PAttribute(&value, 2, 0, 7));
    TOLD("runtime: an attribute of a way, told to nowhere", cudaDeviceGetP2PAttribute(NULL, 2, 0, 1));
}

static void switched(void)
{
    cudaSetDevice(0);
    TOLD("runtime: peer access switched on", cudaDeviceEnablePeerAccess(1, 0));
    TOLD("runtime: peer access switched on again", cudaDeviceEnablePeerAccess(1, 0));
    TOLD("runtime: peer access with a flag", cudaDeviceEnablePeerAccess(1, 1));
    TOLD("runtime: peer access to itself", cudaDeviceEnablePeerAccess(0, 0));
    TOLD("runtime: peer access to no device", cudaDeviceEnablePeerAccess(5, 0));
    TOLD("runtime: peer access switched off", cudaDeviceDisablePeerAccess(1));
    TOLD("runtime: peer access to itself switched off", cudaDeviceDisablePeerAccess(0));
    TOLD("runtime: peer access to no device switched off", cudaDeviceDisablePeerAccess(5));
    cudaGetLastError();
}

static void driver(CUcontext first, CUcontext second)
{
    char fact[96];
    int value = -1;
    CUresult status = cuDeviceCanAccessPeer(&value, 0, 1);

    told("a way from 0 to 1", status, "%d", value);
    status = cuDeviceCanAccessPeer(&value, 0, 0);
    told("a way from 0 to 0", status, "%d", value);
    TOLD("a way from 0 to 7", cuDeviceCanAccessPeer(&value, 0, 7));
    for (int attribute = 0; attribute <= 7; attribute++) {
        snprintf(fact, sizeof fact, "attribute %d of the way from 0 to 1", attribute);
        NUMBER(fact, value, cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)attribute, 0, 1));
    }
    must(cuCtxSetCurrent(first));
    TOLD("peer access switched on", cuCtxEnablePeerAccess(second, 0));
    TOLD("peer access switched on again", cuCtxEnablePeerAccess(second, 0));
    TOLD("peer access to itself", cuCtxEnablePeerAccess(first, 0));
    TOLD("peer access with a flag", cuCtxEnablePeerAccess(second, 1));
    TOLD("peer access switched off", cuCtxDisablePeerAccess(second));
}

/* Copies between devices need no way between them. */
static void copies(void)
{
    void *from = NULL, *to = NULL;
    unsigned char seen = 0;

    cudaSetDevice(0);
    cudaMalloc(&from, BYTES);
    cudaMemset(from, 0x5a, BYTES);
    cudaSetDevice(1);
    cudaMalloc(&to, BYTES);
    cudaMemset(to, 0, BYTES);
    TOLD("a copy between the devices", cudaMemcpyPeer(to, 1, from, 0, BYTES));
    cudaMemcpy(&seen, to, 1, cudaMemcpyDeviceToHost);
    told("the first byte that it copied", 0, "%02x", seen);
    cudaMemset(to, 0, BYTES);
    TOLD("a copy of default kind", cudaMemcpy(to, from, BYTES, cudaMemcpyDefault));
    cudaMemcpy(&seen, to, 1, cudaMemcpyDeviceToHost);
    told("the first byte that that copied", 0, "%02x", seen);
    cudaFree(to);
    cudaSetDevice(0);
    cudaFree(from);
}

static CUmemLocation on(int device)
{
    return (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device};
}

static void prefetches(CUdeviceptr managed, CUdeviceptr plain)
{
    const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};

    TOLD("prefetching to device 0", cuMemPrefetchAsync_v2(managed, BYTES, on(0), 0, NULL));
    TOLD("prefetching to device 1", cuMemPrefetchAsync_v2(managed, BYTES, on(1), 0, NULL));
    TOLD("prefetching to no device", cuMemPrefetchAsync_v2(managed, BYTES, on(9), 0, NULL));
    TOLD("prefetching to the host", cuMemPrefetchAsync_v2(managed, BYTES, host, 0, NULL));
    TOLD("prefetching with a flag", cuMemPrefetchAsync_v2(managed, BYTES, host, 7, NULL));
    TOLD("prefetching device memory", cuMemPrefetchAsync_v2(plain, BYTES, on(0), 0, NULL));
    TOLD("prefetching no memory", cuMemPrefetchAsync_v2(0, BYTES, on(0), 0, NULL));
    TOLD("prefetching no bytes", cuMemPrefetchAsync_v2(managed, 0, on(0), 0, NULL));
    TOLD("prefetching a few bytes", cuMemPrefetchAsync_v2(managed + 1, 100, on(0), 0, NULL));
}

static void advice(CUdeviceptr managed, CUdeviceptr plain)
{
    const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};

    TOLD("advice: mostly read", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, on(0)));
    TOLD("advice: mostly read, taken back",
         cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_UNSET_READ_MOSTLY, on(0)));
    TOLD("advice: at the host", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    TOLD("advice: at device 0", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on(0)));
    TOLD("advice: at device 1", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on(1)));
    TOLD("advice: at a place, taken back",
         cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, on(0)));
    TOLD("advice: used by the host", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    TOLD("advice: used by device 1", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, on(1)));
    TOLD("advice: used by device 0, taken back",
         cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_UNSET_ACCESSED_BY, on(0)));
    TOLD("advice: used by no device", cuMemAdvise_v2(managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, on(9)));
    TOLD("advice for device memory: mostly read",
         cuMemAdvise_v2(plain, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, on(0)));
    TOLD("advice for device memory: at device 0",
         cuMemAdvise_v2(plain, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on(0)));
    TOLD("advice of an unknown kind", cuMemAdvise_v2(managed, BYTES, (CUmem_advise)99, on(0)));
}

static void by_the_runtime(void)
{
    const struct cudaMemLocation host = {cudaMemLocationTypeHost, 0}, first = {cudaMemLocationTypeDevice, 0},
                                 second = {cudaMemLocationTypeDevice, 1};
    void *managed = NULL, *plain = NULL;

    cudaMallocManaged(&managed, BYTES, cudaMemAttachGlobal);
    cudaMalloc(&plain, BYTES);
    TOLD("runtime: prefetching to device 0", cudaMemPrefetchAsync(managed, BYTES, first, 0, NULL));
    TOLD("runtime: prefetching to the host", cudaMemPrefetchAsync(managed, BYTES, host, 0, NULL));
    TOLD("runtime: prefetching with a flag", cudaMemPrefetchAsync(managed, BYTES, host, 7, NULL));
    TOLD("runtime: prefetching device memory", cudaMemPrefetchAsync(plain, BYTES, first, 0, NULL));
    TOLD("runtime: advice: mostly read", cudaMemAdvise(managed, BYTES, cudaMemAdviseSetReadMostly, first));
    TOLD("runtime: advice: at the host",
         cudaMemAdvise(managed, BYTES, cudaMemAdviseSetPreferredLocation, host));
    TOLD("runtime: advice: at device 0",
         cudaMemAdvise(managed, BYTES, cudaMemAdviseSetPreferredLocation, first));
    TOLD("runtime: advice: at a place, taken back",
         cudaMemAdvise(managed, BYTES, cudaMemAdviseUnsetPreferredLocation, first));
    TOLD("runtime: advice: used by device 1",
         cudaMemAdvise(managed, BYTES, cudaMemAdviseSetAccessedBy, second));
    TOLD("runtime: advice: used by the host",
         cudaMemAdvise(managed, BYTES, cudaMemAdviseSetAccessedBy, host));
    TOLD("runtime: advice for device memory: mostly read",
         cudaMemAdvise(plain, BYTES, cudaMemAdviseSetReadMostly, first));
    static const char *const facts[] = {"runtime: mostly read?", "runtime: at which place?",
                                        "runtime: last prefetched where?"};
    static const int asked[] = {1, 2, 4}; /* cudaMemRangeAttribute* */
    for (unsigned i = 0; i < 3; i++) {
        int value = -1;
        NUMBER(facts[i], value,
               cudaMemRangeGetAttribute(&value, sizeof value, (enum cudaMemRangeAttribute)asked[i], managed,
                                        BYTES));
    }
    int users[2] = {-1, -1};
    int status =
        (int)cudaMemRangeGetAttribute(users, sizeof users, (enum cudaMemRangeAttribute)3, managed, BYTES);
    told("runtime: used by whom?", status, "%d %d", users[0], users[1]);
    cudaFree(managed);
    cudaFree(plain);
}

int main(void)
{
    CUcontext first, second;
    CUdeviceptr managed, plain;

    attributes();
    ways();
    switched();
    must(cuDevicePrimaryCtxRetain(&first, 0));
    must(cuDevicePrimaryCtxRetain(&second, 1));
    driver(first, second);
    copies();
    must(cuCtxSetCurrent(first));
    must(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    must(cuMemAlloc_v2(&plain, BYTES));
    prefetches(managed, plain);
    advice(managed, plain);
    by_the_runtime();
    must(cuMemFree_v2(plain));
    must(cuMemFree_v2(managed));
    return 0;
}
