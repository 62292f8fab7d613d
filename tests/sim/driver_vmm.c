/* The simulated driver: physical handles, reserved addresses, mappings and who may touch them. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "driver.h"

static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const CUmemAccessDesc all_access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static size_t taken(void)
{
    size_t left, total;

    must(cuMemGetInfo_v2(&left, &total));
    return total - left;
}

static void handles(void)
{
    CUmemGenericAllocationHandle h = 0;
    CUmemAllocationProp prop = plain;
    size_t granule = 0;

    answers(cuMemGetAllocationGranularity(&granule, &plain, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
            CUDA_SUCCESS);
    is_u64(granule, 2 * MIB, "the granularity is 2 MiB");
    answers(cuMemCreate(&h, granule - 1, &plain, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemCreate(&h, 0, &plain, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemCreate(&h, granule, &plain, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemCreate(&h, 1UL << 40, &plain, 0), CUDA_ERROR_OUT_OF_MEMORY);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    answers(cuMemCreate(&h, granule, &prop, 0), CUDA_ERROR_NOT_PERMITTED);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    answers(cuMemCreate(&h, granule, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
    prop = plain;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    answers(cuMemCreate(&h, granule, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop = plain;
    prop.location.id = 7;
    answers(cuMemCreate(&h, granule, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    answers(cuMemCreate(&h, granule, &plain, 0), CUDA_SUCCESS);
    is_u64(taken(), granule, "a handle takes memory");
    memset(&prop, 0, sizeof prop);
    answers(cuMemGetAllocationPropertiesFromHandle(&prop, h), CUDA_SUCCESS);
    is_int(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE, "a handle knows what it was made of");
    answers(cuMemRelease(h), CUDA_SUCCESS);
    answers(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
    is_u64(taken(), 0, "and gives it back");
}

static void reservations(void)
{
    CUdeviceptr p = 0, q = 0;

    answers(cuMemAddressReserve(&p, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAddressReserve(&p, 8 * MIB, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAddressReserve(&p, 8 * MIB, 16 * MIB, 0, 0), CUDA_SUCCESS);
    is_u64(p % (16 * MIB), 0, "alignment is kept");
    answers(cuMemAddressFree(p, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAddressFree(p, 8 * MIB), CUDA_SUCCESS);
    answers(cuMemAddressFree(p, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAddressReserve(&q, 8 * MIB, 0, p, 0), CUDA_SUCCESS);
    is_u64(q, p, "a free address that is asked for is given");
    must(cuMemAddressFree(q, 8 * MIB));
}

static void mappings(void)
{
    CUmemGenericAllocationHandle a, b, again = 0;
    CUdeviceptr p, q, base = 0;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags = 9;
    size_t bytes = 0;
    char in[64] = "through one view", out[64] = "";

    must(cuMemCreate(&a, 4 * MIB, &plain, 0));
    must(cuMemCreate(&b, 2 * MIB, &plain, 0));
    must(cuMemAddressReserve(&p, 16 * MIB, 0, 0, 0));
    answers(cuMemMap(p, 2 * MIB, 1, a, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuMemMap(p, 6 * MIB, 0, a, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuMemMap(p + 14 * MIB, 4 * MIB, 0, a, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuMemMap(p, 4 * MIB, 0, a, 0), CUDA_SUCCESS);
    answers(cuMemMap(p + 2 * MIB, 2 * MIB, 0, b, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuMemMap(p + 4 * MIB, 2 * MIB, 0, b, 0), CUDA_SUCCESS);
    answers(cuMemAddressFree(p, 16 * MIB), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemGetAccess(&flags, &here, p), CUDA_SUCCESS);
    is_u64(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "a mapping starts without access");
    answers(cuMemSetAccess(p, 2 * MIB, &all_access, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemSetAccess(p, 6 * MIB, &all_access, 1), CUDA_SUCCESS);
    must(cuMemGetAccess(&flags, &here, p));
    is_u64(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "then it has what was set");
    answers(cuMemsetD8_v2(p, 1, 6 * MIB), CUDA_SUCCESS);
    answers(cuMemcpyHtoD_v2(p + 4 * MIB - 8, in, sizeof in), CUDA_SUCCESS);
    must(cuMemAddressReserve(&q, 2 * MIB, 0, 0, 0));
    must(cuMemMap(q, 2 * MIB, 0, b, 0));
    must(cuMemSetAccess(q, 2 * MIB, &all_access, 1));
    answers(cuMemcpyDtoH_v2(out, q, 16), CUDA_SUCCESS);
    is_str(out, in + 8, "two mappings of one handle show the same bytes");
    answers(cuMemGetAddressRange_v2(&base, &bytes, p + 5 * MIB), CUDA_SUCCESS);
    ok(base == p + 4 * MIB && bytes == 2 * MIB, "the range of an address is its mapping");
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 3 * MIB)), CUDA_SUCCESS);
    is_u64(again, a, "an address leads back to its handle");
    answers(cuMemRelease(a), CUDA_SUCCESS);
    answers(cuMemRelease(a), CUDA_SUCCESS);
    answers(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
    must(cuMemRelease(b));
    is_u64(taken(), 6 * MIB, "what is mapped lives on without handles");
    answers(cuMemUnmap(p, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemUnmap(p, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemUnmap(p, 6 * MIB), CUDA_SUCCESS);
    is_u64(taken(), 2 * MIB, "one handle is still mapped elsewhere");
    answers(cuMemUnmap(p, 6 * MIB), CUDA_SUCCESS);
    answers(cuMemUnmap(p, 18 * MIB), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
    must(cuMemUnmap(q, 2 * MIB));
    is_u64(taken(), 0, "nothing is left");
    must(cuMemAddressFree(p, 16 * MIB));
    must(cuMemAddressFree(q, 2 * MIB));
}

static void sticky(void)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    CUcontext own;
    CUstream stream;
    atomic_int go = 0;

    must(cuMemCreate(&h, 2 * MIB, &plain, 0));
    must(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    must(cuMemMap(p, 2 * MIB, 0, h, 0));
    must(cuCtxCreate_v2(&own, 0, 0));
    must(cuMemsetD8_v2(p, 1, 1));
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    must(cuCtxDestroy_v2(own));
    must(cuMemSetAccess(p, 2 * MIB, &all_access, 1));
    must(cuCtxCreate_v2(&own, 0, 0));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuLaunchHostFunc(stream, hold, &go));
    must(cuMemsetD8Async(p, 1, 2 * MIB, stream));
    must(cuMemUnmap(p, 2 * MIB));
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    must(cuCtxDestroy_v2(own));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuMemRelease(h));
    must(cuMemAddressFree(p, 2 * MIB));
}

/* Whether touching an address ends the process: tried in a child. */
static bool faults(CUdeviceptr p)
{
    int status = 0;
    pid_t child = fork();

    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)(uintptr_t)p & 1);
    }
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) > 1;
}

static void inaccessible(void)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p, q;

    must(cuMemCreate(&h, 2 * MIB, &plain, 0));
    must(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    ok(faults(p), "a reservation cannot be touched");
    must(cuMemMap(p, 2 * MIB, 0, h, 0));
    ok(faults(p), "nor can a mapping without access");
    must(cuMemSetAccess(p, 2 * MIB, &all_access, 1));
    ok(!faults(p), "one with access can");
    must(cuMemUnmap(p, 2 * MIB));
    ok(faults(p), "until it is unmapped");
    must(cuMemRelease(h));
    must(cuMemAddressFree(p, 2 * MIB));
    must(cuMemAlloc_v2(&q, 4 * MIB));
    must(cuMemFree_v2(q));
    ok(faults(q), "freed device memory cannot be touched");
}

static void send_fd(int socket, int fd)
{
    char byte = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1)
        bail("sendmsg: %s", strerror(errno));
}

static int receive_fd(int socket)
{
    int fd = -1;
    char byte, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};

    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* The child: imports what it is sent, looks at it and writes into it. */
static int importer(int socket)
{
    CUmemGenericAllocationHandle h;
    CUmemoryPool pool;
    CUmemPoolPtrExportData data;
    CUdeviceptr p;
    char seen[16] = "";

    begin();
    int fd = receive_fd(socket);
    if (cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return 2;
    close(fd);
    must(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    must(cuMemMap(p, 2 * MIB, 0, h, 0));
    must(cuMemSetAccess(p, 2 * MIB, &all_access, 1));
    must(cuMemcpyDtoH_v2(seen, p, sizeof seen));
    if (strcmp(seen, "from the parent"))
        return 3;
    must(cuMemcpyHtoD_v2(p, "from the child", 15));
    fd = receive_fd(socket);
    if (cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
        return 4;
    if (read(socket, &data, sizeof data) != sizeof data || cuMemPoolImportPointer(&p, pool, &data))
        return 5;
    if (cuMemAllocFromPoolAsync(&p + 0, 16, pool, NULL) == CUDA_SUCCESS)
        return 6;
    must(cuMemcpyDtoH_v2(seen, p, sizeof seen));
    if (strcmp(seen, "pool memory"))
        return 7;
    must(cuMemFreeAsync(p, NULL));
    must(cuCtxSynchronize());
    must(cuMemPoolDestroy(pool));
    return 0;
}

static void shared(const char *self)
{
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = plain;
    CUmemPoolProps pool_props = {CU_MEM_ALLOCATION_TYPE_PINNED,
                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 NULL,
                                 0,
                                 0,
                                 {0}};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr p, q;
    char seen[16] = "", number[16];
    int fd = -1, pair[2], status = -1;

    must(cuMemCreate(&h, 2 * MIB, &plain, 0));
    answers(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
    must(cuMemRelease(h));
    answers(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_INVALID_VALUE);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    must(cuMemCreate(&h, 2 * MIB, &prop, 0));
    must(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    must(cuMemMap(p, 2 * MIB, 0, h, 0));
    must(cuMemSetAccess(p, 2 * MIB, &all_access, 1));
    must(cuMemcpyHtoD_v2(p, "from the parent", 16));
    answers(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        bail("socketpair: %s", strerror(errno));
    pid_t child = fork();
    if (!child) {
        snprintf(number, sizeof number, "%d", pair[1]);
        execl(self, self, number, (char *)NULL);
        _exit(127);
    }
    send_fd(pair[0], fd);
    close(fd);
    must(cuMemPoolCreate(&pool, &pool_props));
    must(cuMemAllocFromPoolAsync(&q, 4096, pool, NULL));
    must(cuMemcpyHtoD_v2(q, "pool memory", 12));
    answers(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
    answers(cuMemPoolExportPointer(&data, q), CUDA_SUCCESS);
    send_fd(pair[0], fd);
    close(fd);
    if (write(pair[0], &data, sizeof data) != sizeof data)
        bail("write: %s", strerror(errno));
    waitpid(child, &status, 0);
    is_int(status, 0, "another process imports a handle and a pool");
    must(cuMemcpyDtoH_v2(seen, p, 15));
    is_str(seen, "from the child", "and what it wrote is here");
    close(pair[0]);
    close(pair[1]);
    must(cuMemFree_v2(q));
    must(cuMemPoolDestroy(pool));
    must(cuMemUnmap(p, 2 * MIB));
    must(cuMemRelease(h));
    must(cuMemAddressFree(p, 2 * MIB));
}

int main(int argc, char **argv)
{
    setenv("MEMSIM_MEMORY", "1G", 1);
    if (argc > 1)
        return importer(atoi(argv[1]));
    plan(0);
    begin();
    handles();
    reservations();
    mappings();
    sticky();
    inaccessible();
    shared(argv[0]);
    is_u64(taken(), 0, "nothing is left at the end");
    return done();
}
