/*
 * A program against the vendor's own headers, linked with -lcudart: what it sees through the vendor's
 * structures must be what the simulated runtime put there. Prints TAP lines; run by runtime_vendor.sh, never
 * linked into anything else.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int count;

static void ok(int condition, const char *name)
{
    printf("%sok %d - %s\n", condition ? "" : "not ", ++count, name);
}

static void properties(void)
{
    struct cudaDeviceProp prop;
    int value = -1;

    memset(&prop, 0xff, sizeof(prop));
    ok(cudaGetDeviceProperties(&prop, 0) == cudaSuccess, "properties");
    ok(prop.warpSize == 32 && prop.maxThreadsPerBlock == 1024, "begin where the header says");
    cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0);
    ok(prop.memoryPoolsSupported == value && value == 1, "hold the memory pools' flag");
    cudaDeviceGetAttribute(&value, cudaDevAttrHostNumaId, 0);
    ok(prop.hostNumaId == value, "hold the last of the fields");
    ok(prop.reserved[0] == 0 && prop.reserved[55] == 0, "end where the header says");
}

static void memory(void)
{
    struct cudaPointerAttributes attributes;
    struct cudaMemPoolProps props;
    cudaMemPool_t pool;
    uint64_t threshold = 1 << 20, back = 0;
    char text[] = "from one end to the other", copy[sizeof(text)] = "";
    void *p;

    ok(cudaMalloc(&p, sizeof(text)) == cudaSuccess, "cudaMalloc");
    ok(cudaPointerGetAttributes(&attributes, p) == cudaSuccess && attributes.type == cudaMemoryTypeDevice &&
           attributes.devicePointer == p,
       "pointer attributes");
    cudaMemcpy(p, text, sizeof(text), cudaMemcpyHostToDevice);
    cudaMemcpy(copy, p, sizeof(text), cudaMemcpyDeviceToHost);
    ok(strcmp(text, copy) == 0, "there and back");
    ok(cudaFree(p) == cudaSuccess, "cudaFree");
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    ok(cudaMemPoolCreate(&pool, &props) == cudaSuccess, "cudaMemPoolCreate");
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back) == cudaSuccess &&
           back == threshold,
       "a pool's attribute");
    ok(cudaMallocFromPoolAsync(&p, 100, pool, cudaStreamPerThread) == cudaSuccess, "cudaMallocFromPoolAsync");
    ok(cudaFreeAsync(p, cudaStreamPerThread) == cudaSuccess, "cudaFreeAsync");
    ok(cudaMemPoolDestroy(pool) == cudaSuccess, "cudaMemPoolDestroy");
    ok(cudaFree(&props) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue,
       "a bad free");
}

int main(void)
{
    properties();
    memory();
    printf("1..%d\n", count);
    return 0;
}
