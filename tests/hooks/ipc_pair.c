/*
 * ipc_pair.c - one process exports memory, another opens it twice, writes through it, and closes it once.
 *
 * usage: ipc_pair            starts itself again with the handle as an argument
 * Both print statuses, in order, since the parent waits; the same natively and under memshim.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"

#define BYTES (3u << 20)

static int importer(const char *hex)
{
    cudaIpcMemHandle_t handle;
    unsigned char *bytes = (unsigned char *)&handle, value[4] = {0};
    void *p = NULL, *again = NULL, *third = NULL;

    for (size_t i = 0; i < sizeof(handle); i++)
        if (sscanf(hex + 2 * i, "%2hhx", &bytes[i]) != 1)
            return 2;
    printf("open %d\n", cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess));
    printf("again %d, the same %d\n", cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess),
           p == again);
    printf("read %d\n", cudaMemcpy(value, p, sizeof(value), cudaMemcpyDeviceToHost));
    printf("value %d\n", value[3]);
    printf("write %d\n", cudaMemset(p, 7, 16));
    printf("synchronize %d\n", cudaDeviceSynchronize());
    printf("close %d\n", cudaIpcCloseMemHandle(p));
    printf("third %d, the same %d\n", cudaIpcOpenMemHandle(&third, handle, cudaIpcMemLazyEnablePeerAccess),
           p == third);
    printf("close %d\n", cudaIpcCloseMemHandle(p));
    printf("foreign %d\n", cudaIpcCloseMemHandle(&value));
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    cudaIpcMemHandle_t handle;
    unsigned char value[4] = {0};
    char hex[2 * sizeof(handle) + 1];
    void *p = NULL;
    int status;
    pid_t pid;

    if (argc > 1)
        return importer(argv[1]);
    printf("malloc %d\n", cudaMalloc(&p, BYTES));
    printf("set %d\n", cudaMemset(p, 42, BYTES));
    printf("synchronize %d\n", cudaDeviceSynchronize());
    printf("export %d\n", cudaIpcGetMemHandle(&handle, p));
    for (size_t i = 0; i < sizeof(handle); i++)
        snprintf(hex + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", argv[0], hex, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    printf("importer %d\n", status);
    printf("read %d\n", cudaMemcpy(value, p, sizeof(value), cudaMemcpyDeviceToHost));
    printf("value %d\n", value[3]);
    return 0;
}
