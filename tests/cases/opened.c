/* opened REPORT HOW: eight blocks of 20 MiB are exported to a child, which opens each and closes none (ipc),
 * or imports handles of 2 MiB, maps and unmaps them, and releases none (fd). Nothing was called before the
 * fork, so the child has a report of its own. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

enum { BLOCKS = 8 };
static int ends[2];

static void send_file(int file)
{
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'f';
    struct iovec text = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &file, sizeof(int));
    if (sendmsg(ends[0], &message, 0) != 1)
        exit(4);
}

static int receive_file(void)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec text = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    int file = -1;

    if (recvmsg(ends[1], &message, 0) == 1)
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return file;
}

static int open_handle(void)
{
    cudaIpcMemHandle_t handle;
    void *opened;

    if (read(ends[1], &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        return -1;
    return (int)cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
}

static int import_file(void)
{
    CUmemGenericAllocationHandle handle;
    int file = receive_file(), status;
    CUdeviceptr range;

    status = (int)cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(file);
    return status || cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0) ||
           cuMemMap(range, MIB * 2, 0, handle, 0) || cuMemUnmap(range, MIB * 2);
}

static int be_importer(int (*open_one)(void))
{
    int wrong = (int)cudaFree(NULL);
    char done = 'd';

    for (int i = 0; i < BLOCKS; i++) {
        wrong += open_one() != 0;
        wrong += write(ends[1], &done, 1) != 1;
    }
    say("wrong %d", wrong);
    return wrong != 0;
}

static void export_handle(void)
{
    cudaIpcMemHandle_t handle;
    void *block;

    if (cudaMalloc(&block, 20 * MIB) || cudaIpcGetMemHandle(&handle, block) ||
        write(ends[0], &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        exit(3);
}

static void export_file(void)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    int file;

    if (cuMemCreate(&handle, 2 * MIB, &what, 0) ||
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
        exit(3);
    send_file(file);
    close(file);
}

int main(int argc, char **argv)
{
    bool by_file = argc > 2 && !strcmp(argv[2], "fd");
    char done;
    int status;

    if (argc < 3 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 2;
    if (fork() == 0) {
        setenv("MEMSHIM_REPORT", argv[1], 1);
        return be_importer(by_file ? import_file : open_handle);
    }
    if (cudaFree(NULL))
        return 2;
    for (int i = 0; i < BLOCKS; i++) {
        by_file ? export_file() : export_handle();
        if (read(ends[0], &done, 1) != 1)
            return 5;
    }
    wait(&status);
    return status != 0;
}
