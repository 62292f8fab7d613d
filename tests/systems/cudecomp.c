/*
 * The calls by which cuDecomp (0.7) has memory, four ranks as threads: handles of the recommended granularity
 * created, reserved, mapped, opened and registered with the communicators of rows and columns; deregistered,
 * retained, released, asked for their range, unmapped, released, their addresses freed. The driver's
 * functions come from cudaGetDriverEntryPointByVersion, as its own table has them. Its autotuner takes and
 * frees large work areas with cudaMalloc, round after round, and goes on where one is refused.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"
#include "tests/systems/rounds.h"

enum { RANKS = 4, PER_PEER = 20000 };

#define TABLE(X)                                                                                             \
    X(cuDeviceGet, "cuDeviceGet", 2000)                                                                      \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000)                                                    \
    X(cuMemAddressFree, "cuMemAddressFree", 10020)                                                           \
    X(cuMemAddressReserve, "cuMemAddressReserve", 10020)                                                     \
    X(cuMemCreate, "cuMemCreate", 10020)                                                                     \
    X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020)                                                 \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020)                                 \
    X(cuMemMap, "cuMemMap", 10020)                                                                           \
    X(cuMemRelease, "cuMemRelease", 10020)                                                                   \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000)                                     \
    X(cuMemSetAccess, "cuMemSetAccess", 10020)                                                               \
    X(cuMemUnmap, "cuMemUnmap", 10020)

static struct {
#define FIELD(symbol, name, version) __typeof__(&symbol) symbol;
    TABLE(FIELD)
#undef FIELD
} table;

static int load_table(void)
{
    enum cudaDriverEntryPointQueryResult found;
    int bad = 0;

#define LOAD(symbol, name, version)                                                                          \
    bad |= cudaGetDriverEntryPointByVersion(name, (void **)&table.symbol, version, cudaEnableDefault,        \
                                            &found) ||                                                       \
           !table.symbol;
    TABLE(LOAD)
#undef LOAD
    return bad;
}

struct area {
    void *pointer, *rows, *columns; /* and its registrations */
};

static int allocate(struct area *area, size_t bytes, ncclComm_t rows, ncclComm_t columns)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int ordinal = 0, version = 0, fabric = 0, rdma = 0;
    size_t granularity = 0;
    CUdeviceptr address;
    CUdevice device;
    int bad =
        cudaGetDevice(&ordinal) | (int)table.cuDeviceGet(&device, ordinal) | cudaDriverGetVersion(&version);

    bad |= (int)table.cuDeviceGetAttribute(&fabric, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device);
    bad |= (int)table.cuDeviceGetAttribute(&rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                           device);
    prop.location = access.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    if (fabric)
        prop.requestedHandleTypes |= CU_MEM_HANDLE_TYPE_FABRIC;
    prop.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
    bad |=
        (int)table.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    bytes = (bytes + granularity - 1) / granularity * granularity;
    int status = (int)table.cuMemCreate(&handle, bytes, &prop, 0);
    if (fabric && (status == CUDA_ERROR_NOT_PERMITTED || status == CUDA_ERROR_NOT_SUPPORTED)) {
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        status = (int)table.cuMemCreate(&handle, bytes, &prop, 0);
    }
    bad |= status | (int)table.cuMemAddressReserve(&address, bytes, granularity, 0, 0);
    bad |= (int)table.cuMemMap(address, bytes, 0, handle, 0) |
           (int)table.cuMemSetAccess(address, bytes, &access, 1);
    area->pointer = (void *)(uintptr_t)address;
    bad |= (int)ncclCommRegister(rows, area->pointer, bytes, &area->rows);
    return bad | (int)ncclCommRegister(columns, area->pointer, bytes, &area->columns);
}

static int release(struct area *area, ncclComm_t rows, ncclComm_t columns)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address = (uintptr_t)area->pointer;
    size_t bytes = 0;
    int bad = (int)ncclCommDeregister(rows, area->rows) | (int)ncclCommDeregister(columns, area->columns);

    bad |= (int)table.cuMemRetainAllocationHandle(&handle, area->pointer) | (int)table.cuMemRelease(handle);
    bad |= (int)table.cuMemGetAddressRange_v2(NULL, &bytes, address) | (int)table.cuMemUnmap(address, bytes);
    return bad | (int)table.cuMemRelease(handle) | (int)table.cuMemAddressFree(address, bytes);
}

struct rank {
    pthread_t thread;
    ncclUniqueId id;
    int rank, bad;
    unsigned long long sum;
};

/* Everybody gives everybody its part, as a transpose over all ranks does. */
static int transpose(const struct rank *me, ncclComm_t all, const unsigned *from, unsigned *to,
                     cudaStream_t stream)
{
    int bad = (int)ncclGroupStart();

    for (int peer = 0; peer < RANKS; peer++) {
        bad |= (int)ncclSend(from + (size_t)peer * PER_PEER, PER_PEER, ncclUint32, peer, all, stream);
        bad |= (int)ncclRecv(to + (size_t)peer * PER_PEER, PER_PEER, ncclUint32, peer, all, stream);
    }
    (void)me;
    return bad | (int)ncclGroupEnd() | cudaStreamSynchronize(stream);
}

static int run(struct rank *me, ncclComm_t all, ncclComm_t rows, ncclComm_t columns)
{
    size_t bytes = sizeof(unsigned) * RANKS * PER_PEER;
    unsigned *host = malloc(bytes);
    struct area from = {NULL, NULL, NULL}, to = {NULL, NULL, NULL};
    cudaStream_t stream;
    int bad = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    bad |= allocate(&from, bytes, rows, columns) | allocate(&to, bytes, rows, columns);
    for (size_t i = 0; i < (size_t)RANKS * PER_PEER; i++)
        host[i] = (unsigned)me->rank * 100u + (unsigned)(i / PER_PEER);
    bad |= cudaMemcpy(from.pointer, host, bytes, cudaMemcpyHostToDevice);
    bad |= transpose(me, all, from.pointer, to.pointer, stream);
    bad |= cudaMemcpy(host, to.pointer, bytes, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < (size_t)RANKS * PER_PEER; i++) {
        bad |= host[i] != (unsigned)(i / PER_PEER) * 100u + (unsigned)me->rank;
        me->sum += host[i];
    }
    free(host);
    return bad | release(&to, rows, columns) | release(&from, rows, columns) | cudaStreamDestroy(stream);
}

/* Work areas of one grid after another, which differ by what the grid pads; one that cannot be had is
 * skipped. */
static int autotune(void)
{
    static const size_t kibibytes[] = {1 << 30, 24000, 25000, 24500};
    int bad = 0;

    for (size_t i = 0; i < sizeof(kibibytes) / sizeof(kibibytes[0]); i++) {
        void *work = NULL;
        int status = cudaMalloc(&work, kibibytes[i] << 10);

        if (status) {
            bad |= status != cudaErrorMemoryAllocation || cudaGetLastError() != cudaErrorMemoryAllocation ||
                   cudaGetLastError() != cudaSuccess || i != 0;
            continue;
        }
        bad |= cudaMemset(work, (int)i, kibibytes[i] << 10) | cudaDeviceSynchronize() | cudaFree(work);
    }
    return bad;
}

static pthread_barrier_t barrier;

static void *be_rank(void *arg)
{
    struct rank *me = arg;
    ncclComm_t all = NULL, rows = NULL, columns = NULL;

    me->bad = cudaSetDevice(me->rank) | (int)ncclCommInitRank(&all, RANKS, me->id, me->rank);
    me->bad |= (int)ncclCommSplit(all, me->rank / 2, me->rank, &rows, NULL);
    me->bad |= (int)ncclCommSplit(all, me->rank % 2, me->rank, &columns, NULL);
    for (int round = 0; round < 3; round++) {
        me->bad |= autotune();
        pthread_barrier_wait(&barrier);
        if (me->rank == 0)
            say_made("autotune");
        pthread_barrier_wait(&barrier);
        me->bad |= run(me, all, rows, columns);
        pthread_barrier_wait(&barrier);
        if (me->rank == 0)
            say_made("areas");
        pthread_barrier_wait(&barrier);
    }
    me->bad |= (int)ncclCommDestroy(rows) | (int)ncclCommDestroy(columns) | (int)ncclCommDestroy(all);
    return NULL;
}

int main(void)
{
    struct rank ranks[RANKS] = {{.rank = 0}};

    if (load_table() || ncclGetUniqueId(&ranks[0].id)) {
        puts("no functions");
        return 1;
    }
    pthread_barrier_init(&barrier, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].id = ranks[0].id;
        ranks[i].rank = i;
        pthread_create(&ranks[i].thread, NULL, be_rank, &ranks[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        printf("rank %d: %d, sum %llu\n", i, ranks[i].bad, ranks[i].sum);
    }
    return 0;
}
