/* The simulated driver: legacy IPC, between this program and another run of it. */
#include <sys/wait.h>

#include "driver.h"

static void write_all(int fd, const void *data, size_t bytes)
{
    if (write(fd, data, bytes) != (ssize_t)bytes)
        bail("write: %s", strerror(errno));
}

/* The importer: reads two handles from standard input and answers by its status. */
static int importer(void)
{
    CUipcMemHandle large, small, broken;
    CUdeviceptr p = 0, again = 0, q = 0, r;
    char seen[32] = "";
    CUcontext other;

    begin();
    if (read(0, &large, sizeof large) != sizeof large || read(0, &small, sizeof small) != sizeof small)
        return 2;
    if (cuIpcOpenMemHandle_v2(&p, large, 0x77) || cuIpcCloseMemHandle(p))
        return 3; /* the flags are not looked at */
    if (cuIpcOpenMemHandle_v2(&p, large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ||
        cuIpcOpenMemHandle(&q, small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
        return 4;
    if (cuIpcOpenMemHandle_v2(&again, large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) || again != p)
        return 5;
    must(cuMemcpyDtoH_v2(seen, p + 3 * MIB, sizeof seen));
    if (strcmp(seen, "large block"))
        return 6;
    must(cuMemcpyDtoH_v2(seen, q, sizeof seen));
    if (strcmp(seen, "small block"))
        return 7;
    must(cuMemcpyHtoD_v2(q, "written there", 14));
    must(cuCtxSynchronize());
    broken = large;
    broken.reserved[20] ^= 1;
    if (cuIpcOpenMemHandle_v2(&r, broken, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS)
        return 8;
    if (cuMemFree_v2(p) != CUDA_ERROR_INVALID_VALUE || cuIpcCloseMemHandle(p + 1) != CUDA_ERROR_INVALID_VALUE)
        return 9;
    if (cuIpcCloseMemHandle(p) || cuMemsetD8_v2(p, 1, 1) || cuCtxSynchronize())
        return 10; /* it was opened twice */
    if (cuIpcCloseMemHandle(p) || cuMemsetD8_v2(p, 1, 1) != CUDA_ERROR_INVALID_VALUE)
        return 11;
    if (cuIpcCloseMemHandle(p) != CUDA_ERROR_INVALID_VALUE)
        return 12;
    must(cuCtxCreate_v2(&other, 0, 0));
    if (cuIpcOpenMemHandle_v2(&r, small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) || r == q)
        return 13;
    must(cuCtxDestroy_v2(other));
    return cuIpcCloseMemHandle(q) ? 14 : 0;
}

int main(int argc, char **argv)
{
    CUipcMemHandle large, small, third;
    CUdeviceptr p, q, r;
    char seen[32] = "";
    int status = -1, pipes[2];

    if (argc > 1)
        return importer();
    plan(0);
    begin();
    must(cuMemAlloc_v2(&p, 4 * MIB));
    must(cuMemAlloc_v2(&r, 100));
    must(cuMemAlloc_v2(&q, 100));
    must(cuMemcpyHtoD_v2(p + 3 * MIB, "large block", 12));
    must(cuMemcpyHtoD_v2(q, "small block", 12));
    answers(cuIpcGetMemHandle(&large, p), CUDA_SUCCESS);
    answers(cuIpcGetMemHandle(&small, q), CUDA_SUCCESS);
    answers(cuIpcGetMemHandle(&third, 0x1000), CUDA_ERROR_INVALID_VALUE);
    answers(cuIpcGetMemHandle(NULL, p), CUDA_ERROR_INVALID_VALUE);
    answers(cuIpcGetMemHandle(&third, p + 4 * MIB - 1), CUDA_SUCCESS);
    ok(!memcmp(&third, &large, sizeof third), "the handle of an address inside a block is the block's");
    answers(cuIpcOpenMemHandle_v2(&r, large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);

    if (pipe(pipes))
        bail("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (!child) {
        dup2(pipes[0], 0);
        execl(argv[0], argv[0], "import", (char *)NULL);
        _exit(127);
    }
    write_all(pipes[1], &large, sizeof large);
    write_all(pipes[1], &small, sizeof small);
    waitpid(child, &status, 0);
    ok(WIFEXITED(status), "the importer ends by itself");
    is_int(WEXITSTATUS(status), 0, "and found everything right");
    must(cuMemcpyDtoH_v2(seen, q, 14));
    is_str(seen, "written there", "what it wrote is here");

    must(cuMemFree_v2(p));
    must(cuMemAlloc_v2(&r, 4 * MIB));
    is_u64(r, p, "the address is used again");
    must(cuIpcGetMemHandle(&third, r));
    ok(memcmp(&third, &large, sizeof third), "and has another handle");
    must(cuMemAllocAsync(&p, 4096, NULL));
    answers(cuIpcGetMemHandle(&third, p), CUDA_ERROR_INVALID_VALUE);
    must(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    answers(cuIpcGetMemHandle(&third, p), CUDA_ERROR_INVALID_VALUE);
    return done();
}
