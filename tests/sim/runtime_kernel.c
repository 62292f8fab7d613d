/*
 * Kernels of the simulated runtime that do something, found by the name under which compiled code registers
 * them: one that runs until the host releases it, and two that touch memory.
 */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "kernels.h"
#include "tests/tap.h"

static const char hold_stub, fill_stub, sum_stub,
    trap_stub; /* their addresses are the keys compiled code would use */

static void register_kernels(void)
{
    static struct {
        int magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, kernels_ptx, NULL};
    void **handle = __cudaRegisterFatBinary(&wrapper);

    __cudaRegisterFunction(handle, &hold_stub, NULL, "memsim_hold", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &fill_stub, NULL, "memsim_fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &sum_stub, NULL, "memsim_sum", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &trap_stub, NULL, "memsim_trap", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static cudaError_t launch(const void *kernel, cudaStream_t stream, unsigned long long a, unsigned long long b,
                          unsigned long long c)
{
    struct dim3 one = {1, 1, 1};
    void *arguments[] = {&a, &b, &c};

    return cudaLaunchKernel(kernel, one, one, arguments, 0, stream);
}

static void test_hold(void)
{
    unsigned *flag = NULL;
    void *device_flag = NULL, *p = NULL;
    cudaStream_t stream;
    unsigned long long sum = 0;

    cudaHostAlloc((void **)&flag, 64, cudaHostAllocMapped);
    cudaHostGetDevicePointer(&device_flag, flag, 0);
    cudaMalloc(&p, 4096);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
    is_int(launch(&hold_stub, stream, (uintptr_t)device_flag, 1, 0), cudaSuccess,
           "a kernel that waits for the host");
    is_int(launch(&fill_stub, stream, (uintptr_t)p, 4, 1000), cudaSuccess, "one behind it");
    is_int(launch(&sum_stub, stream, (uintptr_t)p, 1000, (uintptr_t)p + 4000), cudaSuccess, "another");
    usleep(10000);
    is_int(cudaStreamQuery(stream), cudaErrorNotReady, "the stream is held");
    is_int(launch(&fill_stub, cudaStreamPerThread, (uintptr_t)p, 1, 1), cudaSuccess,
           "another stream goes on");
    is_int(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess, "to its end");
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    is_int(cudaStreamSynchronize(stream), cudaSuccess, "the host releases it");
    cudaMemcpy(&sum, (char *)p + 4000, 8, cudaMemcpyDeviceToHost);
    is_u64(sum, 4000, "and what came behind it has run");
    (void)cudaGetLastError();
}

static void test_trap(void)
{
    is_int(launch(&trap_stub, NULL, 0, 0, 0), cudaSuccess, "a kernel that breaks");
    is_int(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "is heard of later");
    is_int(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "and for ever");
}

int main(void)
{
    plan(0);
    register_kernels();
    test_hold();
    test_trap();
    return done();
}
