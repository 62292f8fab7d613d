/* rocBLAS's handle as an allocator sees it: the calls of HIP's that its four schemes of device memory make,
 * and its stream-ordered option, in their order and with its reactions to their statuses. What is computed is
 * a fill of the workspace's pieces and a copy of their ends: so work that reached another's memory, or memory
 * that went too early, shows in the results. Prints what must be the same with and without memshim.
 *
 * The sequences are those of library/src/handle.cpp (ROCm/rocBLAS): the constructor asks for the device and
 * its properties and makes the workspace, 32 MiB unless the environment says otherwise; a managed workspace
 * that is too small is freed and allocated anew with the default added; sizes set by hand are rounded to 64
 * bytes; in stream order the constructor allocates and frees once to warm the pool, each call allocates and
 * frees on the handle's stream, and the destructor trims the device's default pool. A destructor that fails
 * aborts.
 *
 * usage: rocblas SCHEME, or `rocblas threads THREADS SCHEME`: as many handles in threads, each on a stream of
 * its own. Standard error then has what was reserved at most, and the vendor's calls. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip/figures.h"
#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

#define MIB        ((size_t)1 << 20)
#define DEFAULT    (32 * MIB)
#define CHUNK      64
#define RESULT     64
#define OPERATIONS 256

enum status { SUCCESS = 0, MEMORY_ERROR = 5, INTERNAL_ERROR = 6, SIZE_UNCHANGED = 8, SIZE_INCREASED = 9 };
enum owner { ROCBLAS_MANAGED, USER_MANAGED, USER_OWNED };

struct handle {
    hipStream_t stream;
    void *memory;
    size_t size;
    enum owner owner;
    bool stream_order, in_use, querying;
    size_t queried;
    int device;
};

static unsigned char *results; /* on the device */
static atomic_uint operations;

/* --- the handle --- */

static int create(struct handle *handle)
{
    const char *size = getenv("ROCBLAS_DEVICE_MEMORY_SIZE"), *order = getenv("ROCBLAS_STREAM_ORDER_ALLOC");
    hipDeviceProp_tR0600 properties;
    int status;

    memset(handle, 0, sizeof(*handle));
    if ((status = hipGetDevice(&handle->device)) ||
        (status = hipGetDevicePropertiesR0600(&properties, handle->device)))
        return status;
    handle->size = size ? strtoull(size, NULL, 10) : DEFAULT;
    handle->owner = size && handle->size ? USER_MANAGED : ROCBLAS_MANAGED;
    handle->stream_order = order && atoi(order);
    if (handle->stream_order) {
        if ((status = hipMallocAsync(&handle->memory, handle->size, handle->stream)) == hipSuccess)
            status = hipFreeAsync(handle->memory, handle->stream);
        handle->memory = NULL;
        return status;
    }
    return handle->size ? hipMalloc(&handle->memory, handle->size) : hipSuccess;
}

static void must(int status, const char *what)
{
    if (status == hipSuccess)
        return;
    fprintf(stderr, "%s returned %d in a destructor\n", what, status);
    abort();
}

static void destroy(struct handle *handle)
{
    hipMemPool_t pool;

    if (handle->owner != USER_OWNED && handle->memory)
        must(hipFree(handle->memory), "hipFree");
    if (!handle->stream_order)
        return;
    must(hipGetDevice(&handle->device), "hipGetDevice");
    must(hipDeviceGetDefaultMemPool(&pool, handle->device), "hipDeviceGetDefaultMemPool");
    must(hipMemPoolTrimTo(pool, 0), "hipMemPoolTrimTo");
}

static enum status set_size(struct handle *handle, size_t size)
{
    if (handle->in_use)
        return INTERNAL_ERROR;
    if (handle->owner != USER_OWNED && handle->memory && hipFree(handle->memory) != hipSuccess)
        return INTERNAL_ERROR;
    handle->memory = NULL;
    handle->size = 0;
    handle->owner = size ? USER_MANAGED : ROCBLAS_MANAGED;
    size = (size + CHUNK - 1) / CHUNK * CHUNK;
    if (size && hipMalloc(&handle->memory, size) != hipSuccess)
        return MEMORY_ERROR;
    handle->size = size;
    return SUCCESS;
}

static enum status set_workspace(struct handle *handle, void *memory, size_t size)
{
    if (handle->owner != USER_OWNED && handle->memory && hipFree(handle->memory) != hipSuccess)
        return INTERNAL_ERROR;
    handle->memory = memory;
    handle->size = size;
    handle->owner = memory ? USER_OWNED : ROCBLAS_MANAGED;
    return SUCCESS;
}

static void *take(struct handle *handle, size_t size)
{
    void *memory = NULL;

    if (handle->in_use)
        return NULL;
    if (handle->stream_order && handle->owner != USER_OWNED) {
        if (hipMallocAsync(&memory, size, handle->stream) != hipSuccess)
            return NULL;
    } else if (size > handle->size) {
        if (handle->owner != ROCBLAS_MANAGED)
            return NULL;
        if (handle->memory && hipFree(handle->memory) != hipSuccess)
            return NULL;
        handle->memory = NULL;
        handle->size = 0;
        if (hipMalloc(&handle->memory, size + DEFAULT) != hipSuccess)
            return NULL;
        handle->size = size + DEFAULT;
        memory = handle->memory;
    } else {
        memory = handle->memory;
    }
    handle->in_use = true;
    return memory;
}

static bool give(struct handle *handle, void *memory)
{
    handle->in_use = false;
    return !(handle->stream_order && handle->owner != USER_OWNED) ||
           hipFreeAsync(memory, handle->stream) == hipSuccess;
}

/* The ends of a piece: all of it takes the simulator seconds. */
static void fill(unsigned char *piece, size_t size, int value, hipStream_t stream)
{
    size_t part = size < 256 * 1024 ? size : 256 * 1024;

    hipMemsetAsync(piece, value, part, stream);
    hipMemsetAsync(piece + size - part, value, part, stream);
}

/* A function of the library's that needs `size` bytes in two pieces, the second at a multiple of 64. */
static enum status compute(struct handle *handle, size_t size)
{
    size_t first = (size / 3 + CHUNK - 1) / CHUNK * CHUNK,
           whole = (first + size - size / 3 + CHUNK - 1) / CHUNK * CHUNK;
    unsigned char *memory;
    unsigned number;

    if (handle->querying) {
        enum status status = whole > handle->queried ? SIZE_INCREASED : SIZE_UNCHANGED;
        handle->queried = whole > handle->queried ? whole : handle->queried;
        return status;
    }
    memory = take(handle, whole);
    if (!memory)
        return MEMORY_ERROR;
    number = atomic_fetch_add(&operations, 1);
    fill(memory, first, (int)number + 1, handle->stream);
    fill(memory + first, whole - first, (int)number + 101, handle->stream);
    hipMemcpyAsync(results + number * 2 * RESULT, memory + first - RESULT, RESULT, hipMemcpyDeviceToDevice,
                   handle->stream);
    hipMemcpyAsync(results + (number * 2 + 1) * RESULT, memory + whole - RESULT, RESULT,
                   hipMemcpyDeviceToDevice, handle->stream);
    return give(handle, memory) ? SUCCESS : INTERNAL_ERROR;
}

/* --- what a program does with it --- */

static void say(const char *what, int status)
{
    printf("%-28s %d\n", what, status);
}

static void judge(void)
{
    unsigned char *read = malloc(OPERATIONS * 2 * RESULT);
    unsigned wrong = 0;

    say("all work is done", hipDeviceSynchronize());
    say("results", hipMemcpy(read, results, OPERATIONS * 2 * RESULT, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < operations; i++) {
        for (unsigned k = 0; k < RESULT; k++)
            wrong += read[i * 2 * RESULT + k] != (unsigned char)(i + 1) ||
                     read[(i * 2 + 1) * RESULT + k] != (unsigned char)(i + 101);
    }
    printf("%u operations, %u wrong bytes\n", operations, wrong);
    free(read);
}

static void query(struct handle *handle)
{
    handle->querying = true;
    handle->queried = 0;
    say("query: 5 MiB", compute(handle, 5 * MIB));
    say("query: 3 MiB", compute(handle, 3 * MIB));
    say("query: 90 MiB", compute(handle, 90 * MIB));
    handle->querying = false;
    printf("the query says %zu bytes\n", handle->queried);
}

static int managed(struct handle *handle)
{
    for (int round = 0; round < 5; round++) {
        say("a handle", create(handle));
        say("8 MiB", compute(handle, 8 * MIB));
        say("48 MiB: grows", compute(handle, 48 * MIB));
        say("20 MiB: fits", compute(handle, 20 * MIB));
        say("150 MiB: grows", compute(handle, 150 * MIB));
        destroy(handle);
    }
    return 0;
}

static int preallocated(struct handle *handle)
{
    say("a handle", create(handle));
    printf("of %zu bytes\n", handle->size);
    query(handle);
    say("40 MiB: fits", compute(handle, 40 * MIB));
    say("90 MiB: does not", compute(handle, 90 * MIB));
    say("40 MiB: still fits", compute(handle, 40 * MIB));
    destroy(handle);
    return 0;
}

static int by_hand(struct handle *handle)
{
    say("a handle", create(handle));
    query(handle);
    say("as large as that", set_size(handle, handle->queried + 7));
    printf("is %zu bytes\n", handle->size);
    say("90 MiB", compute(handle, 90 * MIB));
    say("91 MiB: does not fit", compute(handle, 91 * MIB));
    say("smaller", set_size(handle, 4 * MIB));
    say("3 MiB", compute(handle, 3 * MIB));
    say("managed again", set_size(handle, 0));
    say("60 MiB: grows", compute(handle, 60 * MIB));
    destroy(handle);
    return 0;
}

static int user_owned(struct handle *handle)
{
    unsigned char kept = 0;
    void *own = NULL;

    say("memory of the program's", hipMalloc(&own, 24 * MIB));
    say("a handle", create(handle));
    say("uses it", set_workspace(handle, own, 24 * MIB));
    say("20 MiB", compute(handle, 20 * MIB));
    say("30 MiB: does not fit", compute(handle, 30 * MIB));
    say("22 MiB", compute(handle, 22 * MIB));
    destroy(handle);
    judge();
    say("it is still the program's", hipMemcpy(&kept, own, 1, hipMemcpyDeviceToHost));
    printf("with what was left there: %d\n", kept);
    say("freed", hipFree(own));
    return 0;
}

/* Two streams in turn, and nobody waits in between: in stream order each operation has memory of its own. */
static int ordered(struct handle *handle)
{
    hipStream_t streams[2];
    void *gate = NULL;
    int status;

    status = create(handle);
    say("a handle", status);
    if (status)
        return 0;
    hipStreamCreateWithFlags(&streams[0], hipStreamNonBlocking);
    hipStreamCreateWithFlags(&streams[1], hipStreamNonBlocking);
    hipHostMalloc(&gate, 4096, 0);
    *(volatile uint32_t *)gate = 0;
    query(handle);
    hipStreamWaitValue32(streams[0], gate, 1, hipStreamWaitValueGte, UINT32_MAX);
    for (int i = 0; i < 12; i++) {
        handle->stream = streams[i % 2];
        say("1 to 12 MiB", compute(handle, (size_t)(i + 1) * MIB));
    }
    say("the second stream is done", hipStreamSynchronize(streams[1]));
    __atomic_store_n((uint32_t *)gate, 1, __ATOMIC_RELEASE);
    say("and the first", hipStreamSynchronize(streams[0]));
    handle->stream = NULL;
    say("5 MiB in the default stream", compute(handle, 5 * MIB));
    destroy(handle);
    hipStreamDestroy(streams[0]);
    hipStreamDestroy(streams[1]);
    hipHostFree(gate);
    return 0;
}

/* The same handle on two streams; the program orders them by an event, as it must where the workspace is
 * one. */
static int switching(struct handle *handle)
{
    hipStream_t streams[2];
    hipEvent_t event;

    say("a handle", create(handle));
    hipStreamCreateWithFlags(&streams[0], hipStreamNonBlocking);
    hipStreamCreateWithFlags(&streams[1], hipStreamNonBlocking);
    hipEventCreateWithFlags(&event, hipEventDisableTiming);
    for (int i = 0; i < 12; i++) {
        handle->stream = streams[i % 2];
        hipStreamWaitEvent(handle->stream, event, 0);
        say("9 MiB and more", compute(handle, (size_t)(i + 3) * 3 * MIB));
        hipEventRecord(event, handle->stream);
    }
    destroy(handle);
    hipEventDestroy(event);
    hipStreamDestroy(streams[0]);
    hipStreamDestroy(streams[1]);
    return 0;
}

/* The device has less than is asked for: the function says so, and the handle goes on. */
static int little(struct handle *handle)
{
    say("a handle", create(handle));
    say("60 MiB", compute(handle, 60 * MIB));
    say("400 MiB: too much", compute(handle, 400 * MIB));
    say("60 MiB again", compute(handle, 60 * MIB));
    say("by hand: too much", set_size(handle, 400 * MIB));
    say("4 MiB by hand", set_size(handle, 4 * MIB));
    say("3 MiB", compute(handle, 3 * MIB));
    destroy(handle);
    return 0;
}

/* --- handles in threads --- */

enum { MOST_THREADS = 8, CALLS = 16 };
static pthread_barrier_t turn;
static bool owned;
static atomic_uint computed;

static void *in_thread(void *unused)
{
    static const size_t sizes[] = {8 * MIB, 20 * MIB, 3 * MIB, 22 * MIB};
    struct handle handle;
    hipStream_t stream;
    void *own = NULL;

    (void)unused;
    must(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
    must(create(&handle), "a handle");
    handle.stream = stream;
    if (owned) {
        must(hipMalloc(&own, 24 * MIB), "hipMalloc");
        must((int)set_workspace(&handle, own, 24 * MIB), "a workspace");
    }
    for (unsigned i = 0; i < CALLS; i++)
        computed += compute(&handle, i == CALLS / 2 ? 48 * MIB : sizes[i % 4]) == SUCCESS;
    pthread_barrier_wait(&turn); /* so that all are as large as they get */
    destroy(&handle);
    must(hipStreamSynchronize(stream), "hipStreamSynchronize");
    must(hipFree(own), "hipFree");
    must(hipStreamDestroy(stream), "hipStreamDestroy");
    return NULL;
}

static int in_threads(unsigned count, const char *scheme)
{
    pthread_t threads[MOST_THREADS];

    if (count < 1 || count > MOST_THREADS)
        return 2;
    owned = !strcmp(scheme, "user_owned");
    pthread_barrier_init(&turn, NULL, count);
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, in_thread, NULL);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%u of %u computed\n", computed, count * CALLS);
    judge();
    say("freed", hipFree(results));
    say_figures();
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct handle *);
    } schemes[] = {{"managed", managed},       {"preallocated", preallocated}, {"by_hand", by_hand},
                   {"user_owned", user_owned}, {"ordered", ordered},           {"switching", switching},
                   {"little", little}};
    struct handle handle;

    if (argc < 2 || hipMalloc((void **)&results, OPERATIONS * 2 * RESULT) != hipSuccess)
        return 2;
    if (argc == 4 && !strcmp(argv[1], "threads"))
        return in_threads((unsigned)atoi(argv[2]), argv[3]);
    for (unsigned i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(argv[1], schemes[i].name))
            continue;
        schemes[i].run(&handle);
        judge();
        say("freed", hipFree(results));
        return 0;
    }
    return 2;
}
