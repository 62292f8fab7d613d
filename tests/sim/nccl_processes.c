/*
 * The simulated NCCL between processes: sums and gathered bytes are right, nothing stays in /dev/shm, and the
 * others hear of a rank that died. The parent makes the id and never touches the driver.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"
#include "tests/tap.h"

enum { RANKS = 4, COUNT = 100000 };

static int check(const unsigned *device, size_t count, unsigned want)
{
    unsigned *host = malloc(count * sizeof(*host));
    int bad = cudaMemcpy(host, device, count * sizeof(*host), cudaMemcpyDeviceToHost) != cudaSuccess;

    for (size_t i = 0; i < count; i++)
        bad |= host[i] != want;
    free(host);
    return bad;
}

static int work(int rank, ncclComm_t comm)
{
    unsigned *host = malloc(COUNT * sizeof(*host)), *device = NULL, *out = NULL;
    int bad = 0;

    for (size_t i = 0; i < COUNT; i++)
        host[i] = 1u << rank;
    bad |= cudaMalloc((void **)&device, COUNT * sizeof(*host)) |
           cudaMalloc((void **)&out, RANKS * COUNT * sizeof(*host));
    bad |= cudaMemcpy(device, host, COUNT * sizeof(*host), cudaMemcpyHostToDevice);
    bad |= ncclAllReduce(device, out, COUNT, ncclUint32, ncclSum, comm, NULL) << 8;
    bad |= check(out, COUNT, 15);
    bad |= ncclAllGather(device, out, COUNT, ncclUint32, comm, NULL) << 8;
    for (int i = 0; i < RANKS; i++)
        bad |= check(out + (size_t)i * COUNT, COUNT, 1u << i);
    free(host);
    cudaFree(device);
    cudaFree(out);
    return bad;
}

static int be_rank(int rank, ncclUniqueId id)
{
    ncclComm_t comm = NULL;
    int bad = cudaSetDevice(rank) | (int)ncclCommInitRank(&comm, RANKS, id, rank);

    if (bad)
        return 1;
    bad = work(rank, comm);
    return (ncclCommDestroy(comm) != ncclSuccess) | (bad ? 2 : 0);
}

/* Rank 0 is killed; the others notice. */
static int lose_one(int rank, ncclUniqueId id)
{
    ncclResult_t result = ncclSuccess;
    ncclComm_t comm = NULL;
    unsigned *device = NULL;

    if (cudaSetDevice(rank) | (int)ncclCommInitRank(&comm, RANKS, id, rank) |
        cudaMalloc((void **)&device, 64))
        return 1;
    if (rank == 0)
        raise(SIGKILL);
    if (ncclAllReduce(device, device, 16, ncclUint32, ncclSum, comm, NULL) != ncclSuccess)
        return 2;
    cudaDeviceSynchronize();
    if (ncclCommGetAsyncError(comm, &result) != ncclSuccess || result != ncclRemoteError)
        return 3;
    return ncclCommAbort(comm) != ncclSuccess;
}

static int count_files(void)
{
    DIR *directory = opendir("/dev/shm");
    char prefix[64];
    int count = 0;

    snprintf(prefix, sizeof(prefix), "memsim-nccl-%d-", (int)getpid());
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (directory)
        closedir(directory);
    return count;
}

static void run(int (*body)(int rank, ncclUniqueId id), const char *what)
{
    pid_t children[RANKS];
    ncclUniqueId id;

    if (ncclGetUniqueId(&id) != ncclSuccess)
        bail("no id");
    ok(count_files() == 1, "%s: a file for the ranks", what);
    fflush(stdout);
    for (int i = 0; i < RANKS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(body(i, id));
    }
    for (int i = 0; i < RANKS; i++) {
        int status = -1;

        waitpid(children[i], &status, 0);
        if (WIFSIGNALED(status))
            ok(i == 0 && body == lose_one && WTERMSIG(status) == SIGKILL, "%s: rank %d is killed", what, i);
        else
            is_int(WEXITSTATUS(status), 0, "%s: rank %d", what, i);
    }
    is_int(count_files(), 0, "%s: the file is gone", what);
}

int main(void)
{
    setenv("MEMSIM_DEVICES", "4", 1);
    plan(0);
    run(be_rank, "four processes");
    run(lose_one, "one that dies");
    return done();
}
