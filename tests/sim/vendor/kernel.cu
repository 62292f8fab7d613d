/*
 * A program compiled by nvcc with -cudart shared: registration, launches and device variables as compiled code makes
 * them. Kernels touch nothing on the simulator, so none of what they would write is looked at. Prints TAP lines; run by
 * runtime_vendor.sh.
 */
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

__device__ int counter[16];
__constant__ float factor;
__managed__ int shared_with_host[4];

__global__ void scale(float *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        data[i] *= factor;
}

template <typename T> __global__ void generic(T *data)
{
    data[threadIdx.x] = T();
}

static int count;

static void ok(bool condition, const char *name)
{
    printf("%sok %d - %s\n", condition ? "" : "not ", ++count, name);
}

static void launches(cudaStream_t stream)
{
    float *data;
    int blocks = 0;
    cudaFuncAttributes attributes;

    ok(cudaMalloc(&data, 1000 * sizeof(float)) == cudaSuccess, "cudaMalloc of a typed pointer");
    scale<<<8, 128, 0, stream>>>(data, 1000);
    ok(cudaGetLastError() == cudaSuccess, "a launch");
    generic<double><<<1, 32>>>(reinterpret_cast<double *>(data));
    ok(cudaGetLastError() == cudaSuccess, "a launch of a template");
    ok(cudaDeviceSynchronize() == cudaSuccess, "and they end");
    scale<<<0, 128>>>(data, 1000);
    ok(cudaGetLastError() == cudaErrorInvalidConfiguration, "an empty grid is refused");
    ok(cudaFuncGetAttributes(&attributes, scale) == cudaSuccess && attributes.maxThreadsPerBlock > 0,
       "cudaFuncGetAttributes");
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 128, 0) == cudaSuccess && blocks > 0,
       "occupancy");
    ok(cudaFree(data) == cudaSuccess, "cudaFree");
}

static void variables()
{
    int values[16], back[16];
    size_t bytes = 0;
    float number = 2.5f, read = 0;

    for (int i = 0; i < 16; i++)
        values[i] = i * 3;
    memset(back, 0, sizeof(back));
    ok(cudaGetSymbolSize(&bytes, counter) == cudaSuccess && bytes == sizeof(counter), "a variable's size");
    ok(cudaMemcpyToSymbol(counter, values, sizeof(values)) == cudaSuccess, "cudaMemcpyToSymbol");
    ok(cudaMemcpyFromSymbol(back, counter, sizeof(back)) == cudaSuccess, "cudaMemcpyFromSymbol");
    ok(memcmp(values, back, sizeof(back)) == 0, "the bytes are right");
    cudaMemcpyToSymbol(factor, &number, sizeof(number));
    cudaMemcpyFromSymbol(&read, factor, sizeof(read));
    ok(read == number, "a constant too");
    shared_with_host[2] = 77;
    ok(shared_with_host[2] == 77, "the host writes and reads a managed variable");
}

static void overloads(cudaStream_t stream)
{
    cudaMemPool_t pool;
    float *data = nullptr;

    cudaDeviceGetDefaultMemPool(&pool, 0);
    ok(cudaMallocAsync(&data, 4096, pool, stream) == cudaSuccess, "cudaMallocAsync from a pool, the C++ form");
    ok(cudaFreeAsync(data, stream) == cudaSuccess, "cudaFreeAsync");
    ok(cudaMallocHost(&data, 4096) == cudaSuccess, "cudaMallocHost of a typed pointer");
    ok(cudaFreeHost(data) == cudaSuccess, "cudaFreeHost");
    ok(cudaMallocManaged(&data, 4096) == cudaSuccess, "cudaMallocManaged with its default");
    data[5] = 1.5f;
    ok(cudaFree(data) == cudaSuccess, "cudaFree of it");
}

int main()
{
    cudaStream_t stream;

    setvbuf(stdout, nullptr, _IOLBF, 0); /* a crash must not swallow what was reported before it */
    ok(cudaStreamCreate(&stream) == cudaSuccess, "a stream");
    launches(stream);
    variables();
    overloads(stream);
    ok(cudaStreamDestroy(stream) == cudaSuccess, "its end");
    printf("1..%d\n", count);
    return 0;
}
