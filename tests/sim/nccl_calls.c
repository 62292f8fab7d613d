/*
 * The simulated NCCL: memory, communicators of threads and of one thread, operations that move bytes in the
 * order of streams, registration and windows, statuses. Linked against the simulator by name; needs four
 * devices.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"
#include "tests/tap.h"

enum { RANKS = 4, MANY = 300001 };

long long memsim_count(const char *name); /* the simulator's, beside the vendor's interface */

static long long calls_of(const char *name)
{
    return memsim_count(name);
}

static size_t range_of(void *pointer, CUdeviceptr *base_p)
{
    size_t bytes = 0;

    return cuMemGetAddressRange_v2(base_p, &bytes, (uintptr_t)pointer) == CUDA_SUCCESS ? bytes : 0;
}

static void test_memory(void)
{
    long long creates = calls_of("cuMemCreate");
    void *p = NULL, *q = (void *)0x1;
    CUdeviceptr base = 0;
    int version = 0, current = 0;
    uint64_t value = 0; /* a mask of handle types is 64 bits wide */

    is_int(ncclGetVersion(&version), ncclSuccess, "ncclGetVersion");
    ok(version >= 22000, "tells a version");
    is_int(ncclGetVersion(NULL), ncclInvalidArgument, "and needs somewhere to put it");
    is_int(ncclMemAlloc(&p, 1000), ncclSuccess, "ncclMemAlloc");
    is_u64(range_of(p, &base), 2 << 20, "gives a whole granule");
    is_u64(base, (uintptr_t)p, "of which it is the beginning");
    is_int((int)(calls_of("cuMemCreate") - creates), 1, "made by handle");
    is_int(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, (uintptr_t)p),
           CUDA_SUCCESS, "it");
    ok(value & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, "can be shared as a file");
    is_int(cudaMemset(p, 7, 1000) | cudaDeviceSynchronize(), cudaSuccess, "is memory");
    is_int(ncclMemFree(p), ncclSuccess, "ncclMemFree");
    is_u64(range_of(p, &base), 0, "takes it back");
    is_int(ncclMemFree(p), ncclUnhandledCudaError, "once");
    is_int(ncclMemFree(NULL), ncclSuccess, "nothing is freed as nothing");
    is_int(ncclMemAlloc(&q, 0), ncclSuccess, "no bytes are no error");
    is_ptr(q, NULL, "and no memory");
    is_int(ncclMemAlloc(NULL, 16), ncclUnhandledCudaError, "nowhere is one");
    q = (void *)0x1;
    is_int(ncclMemAlloc(&q, (size_t)1 << 50), ncclUnhandledCudaError, "more than there is");
    is_ptr(q, (void *)0x1, "leaves the pointer alone");
    ok(*ncclGetLastError(NULL) != 0, "and says why");
    is_int(ncclMemAlloc(&p, 1000), ncclSuccess, "on one device");
    cudaSetDevice(1);
    is_int(ncclMemFree(p), ncclSuccess, "freed with another current");
    cudaGetDevice(&current);
    is_int(current, 1, "which stays current");
    cudaSetDevice(0);
}

static void test_statuses(void)
{
    ncclComm_t none = NULL;
    int count;

    is_str(ncclGetErrorString(ncclSuccess), "no error", "text of success");
    is_str(ncclGetErrorString((ncclResult_t)77), "unknown result code", "text of nonsense");
    is_int(ncclGroupEnd(), ncclInvalidUsage, "a group that was not begun");
    is_int(ncclCommCount(none, &count), ncclInvalidArgument, "a communicator that is none");
    is_str(ncclGetLastError(NULL), "CommCount : comm argument is NULL", "said so");
    is_int(ncclCommDestroy(none), ncclSuccess, "is destroyed without a word");
}

static unsigned *filled(int rank, size_t count, unsigned factor)
{
    unsigned *host = malloc(count * sizeof(*host)), *device = NULL;

    for (size_t i = 0; i < count; i++)
        host[i] = (unsigned)(rank + 1) * factor + (unsigned)i;
    if (cudaMalloc((void **)&device, count * sizeof(*host)) ||
        cudaMemcpy(device, host, count * sizeof(*host), cudaMemcpyHostToDevice))
        bail("no memory");
    free(host);
    return device;
}

/* How many elements are not what `want` says. */
static size_t wrong(const unsigned *device, size_t count, unsigned (*want)(int rank, size_t i), int rank)
{
    unsigned *host = malloc(count * sizeof(*host));
    size_t bad = 0;

    if (cudaMemcpy(host, device, count * sizeof(*host), cudaMemcpyDeviceToHost))
        bail("no copy");
    for (size_t i = 0; i < count; i++)
        bad += host[i] != want(rank, i);
    free(host);
    return bad;
}

static unsigned want_sum(int rank, size_t i)
{
    (void)rank;
    return (1 + 2 + 3 + 4) * 1000u + RANKS * (unsigned)i;
}

static unsigned want_gathered(int rank, size_t i)
{
    (void)rank;
    return (unsigned)(i / 1000 + 1) * 1000u + (unsigned)(i % 1000);
}

static unsigned want_third(int rank, size_t i)
{
    (void)rank;
    return 3000u + (unsigned)i;
}

static unsigned want_scattered(int rank, size_t i)
{
    return want_sum(rank, (size_t)rank * 250 + i);
}

static unsigned want_left(int rank, size_t i)
{
    return (unsigned)((rank + RANKS - 1) % RANKS + 1) * 1000u + (unsigned)i;
}

struct member {
    pthread_t thread;
    ncclUniqueId id;
    int rank;
    int results;
    size_t sum, gathered, broadcast, scattered, exchanged, inplace;
};

static void operate(struct member *m, ncclComm_t comm)
{
    unsigned *in = filled(m->rank, MANY, 1000), *out = filled(9, MANY, 0);
    int left = (m->rank + RANKS - 1) % RANKS, right = (m->rank + 1) % RANKS;
    cudaStream_t one, other;

    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    m->results |= ncclAllReduce(in, out, MANY, ncclUint32, ncclSum, comm, one);
    cudaStreamSynchronize(one);
    m->sum = wrong(out, MANY, want_sum, m->rank);
    m->results |= ncclAllGather(in, out, 1000, ncclUint32, comm, NULL);
    cudaDeviceSynchronize();
    m->gathered = wrong(out, RANKS * 1000, want_gathered, m->rank);
    m->results |= ncclBroadcast(in, out, MANY, ncclUint32, 2, comm, one);
    cudaStreamSynchronize(one);
    m->broadcast = wrong(out, MANY, want_third, m->rank);
    m->results |= ncclReduceScatter(in, out, 250, ncclUint32, ncclSum, comm, other);
    cudaStreamSynchronize(other);
    m->scattered = wrong(out, 250, want_scattered, m->rank);
    m->results |= ncclGroupStart();
    m->results |= ncclSend(in, MANY, ncclUint32, right, comm, one);
    m->results |= ncclRecv(out, MANY, ncclUint32, left, comm, one);
    m->results |= ncclGroupEnd();
    cudaStreamSynchronize(one);
    m->exchanged = wrong(out, MANY, want_left, m->rank);
    /* Two operations on two streams, the second on what the first left: they keep their order. */
    m->results |= ncclAllReduce(in, in, MANY, ncclUint32, ncclMax, comm, one);
    m->results |= ncclAllReduce(in, out, MANY, ncclUint32, ncclMin, comm, other);
    cudaStreamSynchronize(other);
    cudaStreamSynchronize(one);
    m->inplace = wrong(in, MANY, want_left, 0) + wrong(out, MANY, want_left, 0);
    cudaStreamDestroy(one);
    cudaStreamDestroy(other);
    cudaFree(in);
    cudaFree(out);
}

static void *be_member(void *arg)
{
    struct member *m = arg;
    ncclComm_t comm = NULL, half = NULL;
    int value = -1;

    cudaSetDevice(m->rank);
    m->results |= ncclCommInitRank(&comm, RANKS, m->id, m->rank);
    if (m->results)
        return NULL;
    m->results |= ncclCommUserRank(comm, &value) | (value != m->rank);
    m->results |= ncclCommCount(comm, &value) | (value != RANKS);
    m->results |= ncclCommCuDevice(comm, &value) | (value != m->rank);
    operate(m, comm);
    m->results |= ncclCommSplit(comm, m->rank == 3 ? NCCL_SPLIT_NOCOLOR : m->rank % 2, -m->rank, &half, NULL);
    m->results |= (half == NULL) != (m->rank == 3);
    if (half)
        m->results |= ncclCommUserRank(half, &value) | (value != (m->rank == 0 ? 1 : 0));
    m->results |= ncclCommDestroy(half);
    m->results |= ncclCommFinalize(comm) | ncclCommDestroy(comm);
    return NULL;
}

static void test_threads(void)
{
    struct member members[RANKS] = {{.rank = 0}};

    is_int(ncclGetUniqueId(&members[0].id), ncclSuccess, "ncclGetUniqueId");
    for (int i = 0; i < RANKS; i++) {
        members[i].id = members[0].id;
        members[i].rank = i;
        pthread_create(&members[i].thread, NULL, be_member, &members[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        struct member *m = &members[i];

        pthread_join(m->thread, NULL);
        ok(m->results == 0, "rank %d: all calls succeed", i);
        ok(!m->sum && !m->gathered && !m->broadcast, "rank %d: sum, gather, broadcast are right", i);
        ok(!m->scattered && !m->exchanged && !m->inplace,
           "rank %d: scatter, exchange, and order over streams are right", i);
    }
}

static void test_one_thread(void)
{
    ncclComm_t comms[RANKS] = {NULL}, twice[2] = {NULL};
    unsigned *buffers[RANKS];
    float *halves = NULL, host[4] = {1.5f, -2.0f, 3.0f, 0.25f};
    int results = 0, same[2] = {1, 1};

    is_int(ncclCommInitAll(twice, 2, same), ncclInvalidUsage, "one device for two ranks is refused");
    {
        ncclUniqueId id;
        ncclComm_t other = NULL;
        ncclGetUniqueId(&id);
        ncclGroupStart(); /* the second takes the seat of the first */
        ncclCommInitRank(&comms[0], 2, id, 0);
        ncclCommInitRank(&other, 2, id, 0);
        is_int(ncclGroupEnd(), ncclRemoteError,
               "a rank that is there already ends the group, and nobody waits");
    }
    is_int(ncclCommInitAll(comms, RANKS, NULL), ncclSuccess, "a communicator for all devices");
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        buffers[i] = filled(i, 1000, 1000);
        results |= ncclAllReduce(buffers[i], buffers[i], 1000, ncclUint32, ncclSum, comms[i], NULL);
    }
    results |= ncclGroupEnd();
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        results |= (int)cudaDeviceSynchronize() | (wrong(buffers[i], 1000, want_sum, i) != 0);
        cudaFree(buffers[i]);
    }
    is_int(results, 0, "adds in one thread, in a group");
    cudaSetDevice(0);
    cudaMalloc((void **)&halves, sizeof(host));
    cudaMemcpy(halves, host, sizeof(host), cudaMemcpyHostToDevice);
    is_int(ncclAllReduce(halves, halves, 4, ncclNumTypes, ncclSum, comms[0], NULL), ncclInvalidArgument,
           "no such type");
    is_int(ncclAllReduce(halves, NULL, 4, ncclFloat, ncclSum, comms[0], NULL), ncclInvalidArgument,
           "no buffer");
    is_int(ncclBroadcast(halves, halves, 4, ncclFloat, RANKS, comms[0], NULL), ncclInvalidArgument,
           "no such root");
    cudaFree(halves);
    for (int i = 0; i < RANKS; i++)
        results |= ncclCommDestroy(comms[i]);
    is_int(results, 0, "and ends");
}

/* Types: in every one 1, 2, 4 and 8 of the ranks make 15, and 2 at the least of 2 and more. */
static void test_types(void)
{
    static const struct {
        ncclDataType_t type;
        unsigned bytes;
        unsigned long long one, sum, average; /* the bits of 1, 1 + 2 + 4 + 8 = 15, and 15 / 4 */
        unsigned long long powers[RANKS];
    } types[] = {
        {ncclInt8, 1, 1, 15, 3, {1, 2, 4, 8}},
        {ncclInt64, 8, 1, 15, 3, {1, 2, 4, 8}},
        {ncclFloat16, 2, 0x3c00, 0x4b80, 0x4380, {0x3c00, 0x4000, 0x4400, 0x4800}},
        {ncclBfloat16, 2, 0x3f80, 0x4170, 0x4070, {0x3f80, 0x4000, 0x4080, 0x4100}},
        {ncclFloat32,
         4,
         0x3f800000,
         0x41700000,
         0x40700000,
         {0x3f800000, 0x40000000, 0x40800000, 0x41000000}},
        {ncclFloat64,
         8,
         0x3ff0000000000000,
         0x402e000000000000,
         0x400e000000000000,
         {0x3ff0000000000000, 0x4000000000000000, 0x4010000000000000, 0x4020000000000000}},
    };
    ncclComm_t comms[RANKS];
    void *in[RANKS], *out[RANKS];

    is_int(ncclCommInitAll(comms, RANKS, NULL), ncclSuccess, "four ranks");
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cudaMalloc(&in[i], 8);
        cudaMalloc(&out[i], 16);
    }
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        unsigned long long sum[RANKS] = {0}, average[RANKS] = {0};
        int results = 0, bad = 0;

        for (int i = 0; i < RANKS; i++) {
            cudaSetDevice(i);
            cudaMemcpy(in[i], &types[t].powers[i], 8, cudaMemcpyHostToDevice);
        }
        ncclGroupStart();
        for (int i = 0; i < RANKS; i++) {
            results |= ncclAllReduce(in[i], out[i], 1, types[t].type, ncclSum, comms[i], NULL);
            results |= ncclAllReduce(in[i], (char *)out[i] + 8, 1, types[t].type, ncclAvg, comms[i], NULL);
        }
        results |= ncclGroupEnd();
        for (int i = 0; i < RANKS; i++) {
            cudaSetDevice(i);
            cudaMemcpy(&sum[i], out[i], types[t].bytes, cudaMemcpyDeviceToHost);
            cudaMemcpy(&average[i], (char *)out[i] + 8, types[t].bytes, cudaMemcpyDeviceToHost);
            bad += sum[i] != types[t].sum || average[i] != types[t].average;
        }
        ok(!results && !bad, "type %d: sum and average (%llx, %llx)", (int)types[t].type, sum[0], average[0]);
    }
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cudaFree(in[i]);
        cudaFree(out[i]);
        ncclCommDestroy(comms[i]);
    }
    cudaSetDevice(0);
}

static void test_windows(void)
{
    ncclComm_t comms[2];
    ncclWindow_t windows[2] = {NULL}, odd = NULL;
    int devices[2] = {0, 1}, results = 0;
    char *buffers[2];
    void *plain = NULL, *handle = NULL, *again = NULL, *none = (void *)0x1;

    is_int(ncclCommInitAll(comms, 2, devices), ncclSuccess, "two ranks");
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        results |= ncclMemAlloc((void **)&buffers[i], 4 << 20);
    }
    cudaSetDevice(0);
    cudaMalloc(&plain, 4 << 20);
    ncclGroupStart();
    for (int i = 0; i < 2; i++)
        results |= ncclCommWindowRegister(comms[i], buffers[i] + 4096, 1 << 20, &windows[i],
                                          NCCL_WIN_COLL_SYMMETRIC);
    results |= ncclGroupEnd();
    is_int(results, 0, "a symmetric window");
    ok(windows[0] && windows[1], "which both ranks have");
    is_int(ncclCommWindowRegister(comms[0], buffers[0] + 256, 4096, &odd, NCCL_WIN_DEFAULT),
           ncclInvalidArgument, "one at no multiple of 4096 is refused");
    is_int(ncclCommWindowRegister(comms[0], plain, 4096, &odd, NCCL_WIN_DEFAULT), ncclUnhandledCudaError,
           "so is one of ordinary memory");
    ncclGroupStart();
    ncclCommWindowRegister(comms[0], buffers[0], 1 << 20, &odd, NCCL_WIN_COLL_SYMMETRIC);
    ncclCommWindowRegister(comms[1], buffers[1] + 8192, 1 << 20, &odd, NCCL_WIN_COLL_SYMMETRIC);
    is_int(ncclGroupEnd(), ncclInvalidArgument, "and one that is not the same for all");
    for (int i = 0; i < 2; i++)
        results |= ncclCommWindowDeregister(comms[i], windows[i]);
    is_int(results, 0, "windows go");
    is_int(ncclCommRegister(comms[0], buffers[0], 1000, &handle), ncclSuccess, "a registration");
    is_int(ncclCommRegister(comms[0], buffers[0] + 500, 1000, &again), ncclSuccess,
           "and one more of the same pages");
    is_ptr(again, handle, "are one");
    results = ncclCommDeregister(comms[0], handle) | ncclCommDeregister(comms[0], handle);
    is_int(results, 0, "that goes with the second");
    is_int(ncclCommDeregister(comms[0], handle), ncclInvalidUsage, "and not again");
    setenv("NCCL_LOCAL_REGISTER", "0", 1);
    is_int(ncclCommRegister(comms[0], buffers[0], 1000, &none), ncclSuccess, "where it is switched off");
    is_ptr(none, NULL, "there is no handle");
    unsetenv("NCCL_LOCAL_REGISTER");
    is_int(ncclMemFree(buffers[0]) | ncclMemFree(buffers[1]) | (int)cudaFree(plain), 0, "memory goes");
    is_int(ncclCommDestroy(comms[0]) | ncclCommAbort(comms[1]), 0, "and communicators");
}

int main(void)
{
    setenv("MEMSIM_DEVICES", "4", 1);
    setenv("MEMSIM_COUNT", "1", 1);
    plan(0);
    test_memory();
    test_statuses();
    test_one_thread();
    test_types();
    test_threads();
    test_windows();
    return done();
}
