/*
 * TVM's memory for all-reduces between worker processes: for each buffer three allocations (remote_data,
 * barrier_in, barrier_out), whose handles are gathered from all workers by NCCL through two temporary
 * allocations, opened with lazy peer access, and used as they are: no offset is added. The workers then
 * reduce through each other's pointers, in two steps as its kernels do: each adds up its slice of everybody's
 * data and writes the sum to everybody. At the end everything is closed and freed.
 *
 *   tvm WORKERS ROUNDS PLAIN BYTES...   one buffer for each BYTES, created and destroyed ROUNDS times; worker
 * PLAIN (-1: none) runs without what is preloaded
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"

enum { WORKERS = 8, BUFFERS = 8, PAGE = 4096 };

#define MUST(call)                                                                                           \
    do {                                                                                                     \
        int status_ = (int)(call);                                                                           \
        if (status_) {                                                                                       \
            fprintf(stderr, "worker %d: %s: %d\n", me.rank, #call, status_);                                 \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static struct {
    int rank, count;
    ncclComm_t comm;
    int refused;
} me;

struct shared {
    void *of[WORKERS]; /* everybody's; one's own was allocated here */
};

/* The handles of all, through two temporary allocations. */
static void gather(const void *own, void *all, size_t bytes)
{
    void *from, *to;

    MUST(cudaMalloc(&from, bytes));
    MUST(cudaMalloc(&to, bytes * (size_t)me.count));
    MUST(cudaMemcpy(from, own, bytes, cudaMemcpyDefault));
    MUST(ncclAllGather(from, to, bytes, ncclChar, me.comm, NULL));
    MUST(cudaMemcpy(all, to, bytes * (size_t)me.count, cudaMemcpyDefault));
    MUST(cudaFree(from));
    MUST(cudaFree(to));
}

/* Everybody has come this far; the sum of what they say. */
static int meet(int say)
{
    int all[WORKERS] = {0}, sum = 0;

    gather(&say, all, sizeof(say));
    for (int i = 0; i < me.count; i++)
        sum += all[i];
    return sum;
}

static struct shared create(size_t bytes, int clear)
{
    struct shared shared = {{NULL}};
    cudaIpcMemHandle_t own, all[WORKERS];

    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    MUST(cudaMalloc(&shared.of[me.rank], bytes));
    if (clear) {
        MUST(cudaMemset(shared.of[me.rank], 0, bytes));
        MUST(cudaDeviceSynchronize());
    }
    MUST(cudaIpcGetMemHandle(&own, shared.of[me.rank]));
    gather(&own, all, sizeof(own));
    for (int i = 0; i < me.count; i++) {
        if (i == me.rank)
            continue;
        int status = cudaIpcOpenMemHandle(&shared.of[i], all[i], cudaIpcMemLazyEnablePeerAccess);
        if (status) {
            shared.of[i] = NULL;
            me.refused++;
            cudaGetLastError();
        }
    }
    return shared;
}

static void destroy(struct shared *shared)
{
    for (int i = 0; i < me.count; i++)
        if (i != me.rank && shared->of[i])
            MUST(cudaIpcCloseMemHandle(shared->of[i]));
    meet(0); /* nobody frees what somebody has open */
    MUST(cudaFree(shared->of[me.rank]));
}

/* A flag at each peer, and until each peer has left one here: what the kernels do with barrier_in and
 * barrier_out. */
static void barrier(const struct shared *flags, unsigned flag)
{
    unsigned seen[WORKERS];
    int missing = 1;

    for (int i = 0; i < me.count; i++)
        MUST(cudaMemcpy((unsigned *)flags->of[i] + me.rank, &flag, sizeof(flag), cudaMemcpyHostToDevice));
    while (missing) {
        MUST(cudaMemcpy(seen, flags->of[me.rank], sizeof(seen), cudaMemcpyDeviceToHost));
        missing = 0;
        for (int i = 0; i < me.count; i++)
            missing += seen[i] != flag;
        if (missing)
            usleep(100);
    }
}

static unsigned value_of(int rank, size_t i, int round)
{
    return (unsigned)(rank + 1) * 1000u + (unsigned)(i % 997) + (unsigned)round;
}

/* How many elements are wrong afterwards. */
static size_t all_reduce(const struct shared *data, const struct shared *in, const struct shared *out,
                         size_t bytes, int round)
{
    size_t count = bytes / sizeof(unsigned), slice = (count + (size_t)me.count - 1) / (size_t)me.count,
           bad = 0;
    size_t begin = slice * (size_t)me.rank < count ? slice * (size_t)me.rank : count;
    size_t length = count - begin < slice ? count - begin : slice;
    unsigned *host = malloc(bytes), *part = malloc(slice * sizeof(*part));

    for (size_t i = 0; i < count; i++)
        host[i] = value_of(me.rank, i, round);
    MUST(cudaMemcpy(data->of[me.rank], host, bytes, cudaMemcpyHostToDevice));
    barrier(in, (unsigned)round + 1);
    memset(host, 0, slice * sizeof(*host));
    for (int i = 0; i < me.count && length; i++) {
        MUST(cudaMemcpy(part, (unsigned *)data->of[i] + begin, length * sizeof(*part),
                        cudaMemcpyDeviceToHost));
        for (size_t k = 0; k < length; k++)
            host[k] += part[k];
    }
    for (int i = 0; i < me.count && length; i++)
        MUST(cudaMemcpy((unsigned *)data->of[i] + begin, host, length * sizeof(*host),
                        cudaMemcpyHostToDevice));
    barrier(out, (unsigned)round + 1);
    MUST(cudaMemcpy(host, data->of[me.rank], bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        unsigned want = 0;

        for (int r = 0; r < me.count; r++)
            want += value_of(r, i, round);
        bad += host[i] != want;
    }
    free(part);
    free(host);
    return bad;
}

static int be_worker(int rank, int count, const char *id_text, int rounds, char **sizes, int buffers)
{
    struct shared data[BUFFERS], in[BUFFERS], out[BUFFERS];
    size_t bad = 0;
    ncclUniqueId id;

    me.rank = rank;
    me.count = count;
    for (size_t i = 0; i < sizeof(id.internal); i++)
        sscanf(id_text + 2 * i, "%2hhx", (unsigned char *)&id.internal[i]);
    MUST(cudaSetDevice(rank));
    MUST(ncclCommInitRank(&me.comm, count, id, rank));
    for (int round = 0; round < rounds; round++) {
        for (int b = 0; b < buffers; b++) {
            data[b] = create(strtoul(sizes[b], NULL, 0), 0);
            in[b] = create(sizeof(unsigned) * WORKERS, 1);
            out[b] = create(sizeof(unsigned) * WORKERS, 1);
        }
        int refused = meet(me.refused);
        for (int b = 0; b < buffers && !refused; b++)
            bad += all_reduce(&data[b], &in[b], &out[b], strtoul(sizes[b], NULL, 0), round);
        for (int b = buffers; b-- > 0;) {
            destroy(&out[b]);
            destroy(&in[b]);
            destroy(&data[b]);
        }
    }
    MUST(ncclCommDestroy(me.comm));
    printf("worker %d: %zu wrong, %d refused\n", rank, bad, me.refused);
    return 0;
}

/* Workers are processes of their own, as TVM's are: each starts from nothing. */
static void start(char **argv, int rank, const char *id, int plain)
{
    char number[16];

    if (rank == plain)
        unsetenv("LD_PRELOAD");
    snprintf(number, sizeof(number), "%d", rank);
    setenv("TVM_WORKER", number, 1);
    setenv("TVM_ID", id, 1);
    execv("/proc/self/exe", argv);
    _exit(127);
}

int main(int argc, char **argv)
{
    const char *worker = getenv("TVM_WORKER");
    int count = argc > 4 ? atoi(argv[1]) : 0, bad = 0, status;
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    ncclUniqueId id;

    if (count < 1 || count > WORKERS || argc - 4 > BUFFERS)
        return 2;
    if (worker)
        return be_worker(atoi(worker), count, getenv("TVM_ID"), atoi(argv[2]), argv + 4, argc - 4);
    if (ncclGetUniqueId(&id))
        return 2;
    for (size_t i = 0; i < sizeof(id.internal); i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)id.internal[i]);
    for (int rank = 0; rank < count; rank++)
        if (fork() == 0)
            start(argv, rank, text, atoi(argv[3]));
    while (wait(&status) > 0)
        bad |= status;
    return bad != 0;
}
