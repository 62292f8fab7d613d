/*
 * Memory shared between two processes through the simulated runtime. The child is made before either of them
 * has touched the device, and tells the parent what it saw in its exit status.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/tap.h"

enum { BYTES = 3 << 20 };

static const char *const child_answers[] = {
    "all is well",
    "the handles did not arrive",
    "the memory cannot be opened",
    "the same memory opens in another place the second time",
    "the bytes are wrong",
    "the bytes cannot be changed",
    "the memory cannot be closed",
    "a closed mapping can still be read",
    "the mapping can be freed",
};

static int child(int from_parent)
{
    unsigned char first = 0, last = 0;
    cudaIpcMemHandle_t handle;
    void *p, *again;

    if (read(from_parent, &handle, sizeof(handle)) != sizeof(handle))
        return 1;
    if (cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess)
        return 2;
    if (cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess || again != p)
        return 3;
    cudaMemcpy(&first, p, 1, cudaMemcpyDeviceToHost);
    cudaMemcpy(&last, (char *)p + BYTES - 1, 1, cudaMemcpyDeviceToHost);
    if (first != 0x5a || last != 0x5a)
        return 4;
    if (cudaMemset(p, 0x77, BYTES / 2) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return 5;
    if (cudaFree(p) == cudaSuccess)
        return 8;
    if (cudaIpcCloseMemHandle(p) != cudaSuccess || cudaIpcCloseMemHandle(p) != cudaSuccess)
        return 6;
    if (cudaMemcpy(&first, p, 1, cudaMemcpyDeviceToHost) == cudaSuccess)
        return 7;
    return 0;
}

int main(void)
{
    unsigned char seen[2] = {0, 0};
    cudaIpcMemHandle_t handle;
    int channel[2], status = -1;
    void *p, *own;
    pid_t pid;

    if (pipe(channel) != 0)
        bail("no pipe");
    pid = fork();
    if (pid == 0) {
        close(channel[1]);
        _exit(child(channel[0]));
    }
    close(channel[0]);
    plan(0);
    is_int(cudaMalloc(&p, BYTES), cudaSuccess, "a block");
    cudaMemset(p, 0x5a, BYTES);
    is_int(cudaIpcGetMemHandle(&handle, p), cudaSuccess, "cudaIpcGetMemHandle");
    is_int(cudaIpcGetMemHandle(NULL, p), cudaErrorInvalidValue, "into nowhere");
    is_int(cudaIpcGetMemHandle(&handle, &status), cudaErrorInvalidValue, "of memory of the host");
    is_int(cudaIpcGetMemHandle(&handle, p), cudaSuccess, "of the block, again");
    ok(cudaIpcOpenMemHandle(&own, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess,
       "the exporter cannot open its own handle");
    cudaDeviceSynchronize();
    if (write(channel[1], &handle, sizeof(handle)) != sizeof(handle))
        bail("cannot write to the child");
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status), "the child ends by itself");
    size_t answer = (size_t)WEXITSTATUS(status);
    if (WIFEXITED(status) && answer < sizeof(child_answers) / sizeof(child_answers[0]))
        is_str(child_answers[answer], child_answers[0], "what the other process saw");
    cudaMemcpy(&seen[0], p, 1, cudaMemcpyDeviceToHost);
    cudaMemcpy(&seen[1], (char *)p + BYTES - 1, 1, cudaMemcpyDeviceToHost);
    ok(seen[0] == 0x77 && seen[1] == 0x5a, "what it wrote is here");
    is_int(cudaFree(p), cudaSuccess, "the block is freed");
    return done();
}
