/* direct.c - calls that a thread answers out of what it has at hand: the same natively and under memshim.
 *
 * usage: direct SCENARIO. Each begins with a few pairs, so that what comes then would be answered so. `count`
 * prints what the vendor was asked in a hundred pairs of each kind, which differs. Built for each version of
 * the library, since what they leave as the last error differs too. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/hip_fn.h"

enum { PAIRS = 100, BYTES = 4096 };

static hipStream_t stream;

static void *allocate(size_t bytes)
{
    void *p = NULL;
    hipError_t status = hipMalloc(&p, bytes);

    if (status != hipSuccess)
        printf("malloc %d\n", (int)status);
    return p;
}

static void pairs(void)
{
    for (int i = 0; i < PAIRS; i++)
        hipFree(allocate(BYTES));
}

static void pairs_in(hipStream_t in)
{
    void *p;

    for (int i = 0; i < PAIRS; i++) {
        hipMallocAsync(&p, BYTES, in);
        hipFreeAsync(p, in);
    }
}

static void pairs_of_stream(void)
{
    pairs_in(stream);
}

static void pairs_of_null(void)
{
    pairs_in(NULL);
}

static int device_of(void *p)
{
    int device = -1, status = hipPointerGetAttribute(&device, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);

    return status == hipSuccess ? device : -status;
}

static void tell(const char *when)
{
    void *p = allocate(BYTES), *q = NULL;
    int status = hipMallocAsync(&q, BYTES, NULL);

    printf("%s: device %d, in order %d: %d\n", when, device_of(p), status, device_of(q));
    printf("free %d, %d, last %d\n", hipFree(p), hipFreeAsync(q, NULL), hipGetLastError());
}

static void devices(void)
{
    void *p;

    for (int round = 0; round < 3; round++) {
        hipSetDevice(1);
        tell("the second device");
        hipSetDevice(0);
        tell("the first device");
    }
    p = allocate(BYTES);
    hipSetDevice(1);
    printf("another device's block: free %d\n", hipFree(p));
    tell("the second");
    printf("reset %d\n", hipDeviceReset());
    tell("after a reset");
    tell("again");
}

/* An error is there when a pair comes: what a pair leaves of it is the version's. */
static void after_error(const char *what, void (*pair)(void))
{
    int missing = hipSetDevice(99);

    pair();
    printf("%s: error %d, peek %d, get %d, get %d\n", what, missing, hipPeekAtLastError(), hipGetLastError(),
           hipGetLastError());
}

static void errors(void)
{
    void *p = allocate(BYTES), *q = (void *)1;

    after_error("pairs", pairs);
    after_error("pairs of a stream", pairs_of_stream);
    after_error("pairs of the null stream", pairs_of_null);
    printf("too much %d", hipMalloc(&q, (size_t)1 << 60));
    pairs();
    printf(", last %d\n", hipGetLastError());
    printf("inside %d, last %d\n", hipFree((char *)p + 512), hipGetLastError());
    printf("free %d, again %d, last %d\n", hipFree(p), hipFree(p), hipGetLastError());
    printf("nothing %d, no output %d, last %d\n", hipFree(NULL), hipMalloc(NULL, 5), hipGetLastError());
}

/* Work is going on, so that memshim finds events which are not over; an error that was there stays, or goes,
 * as natively. */
static void going_on(void)
{
    enum { BLOCKS = 400 };
    static void *blocks[BLOCKS];
    void *busy = allocate((size_t)1 << 20);

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = allocate((size_t)1 << 19);
    printf("queue %d, error %d\n", hipMemsetAsync(busy, 1, (size_t)1 << 20, stream), hipSetDevice(99));
    for (int i = 0; i < BLOCKS; i++)
        hipFree(blocks[i]);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = allocate((size_t)1 << 19);
    printf("last %d\n", hipGetLastError());
    for (int i = 0; i < BLOCKS; i++)
        hipFree(blocks[i]);
    hipFree(busy);
}

static void *in_thread(void *block)
{
    printf("another thread frees %d\n", hipFree(block));
    pairs();
    pairs_of_stream();
    return allocate(BYTES);
}

static void threads(void)
{
    pthread_t thread;
    void *theirs = NULL;

    pthread_create(&thread, NULL, in_thread, allocate(BYTES));
    pthread_join(thread, &theirs);
    printf("theirs on device %d, free %d\n", device_of(theirs), hipFree(theirs));
}

static void streams(void)
{
    hipStream_t another;
    void *p, *q = NULL;

    for (int round = 0; round < 20; round++) {
        hipStreamCreateWithFlags(&another, hipStreamNonBlocking);
        pairs_in(another);
        hipMallocAsync(&p, BYTES, another);
        printf("another stream frees %d\n", hipFreeAsync(p, stream));
        hipMallocAsync(&q, BYTES, another);
        printf("the end of a stream %d", hipStreamDestroy(another));
        printf(", its block is freed %d, without an order %d\n", hipFreeAsync(q, stream), hipFree(q));
    }
}

static void count_in(const char *what, void (*run)(void))
{
    static const char *const names[] = {"hipGetDevice", "hipGetLastError", "hipPeekAtLastError",
                                        "hipMalloc",    "hipFree",         "hipMallocAsync",
                                        "hipFreeAsync", "hipEventRecord",  "hipStreamIsCapturing"};
    long long (*made)(const char *) = (long long (*)(const char *))dlsym(RTLD_DEFAULT, "memsim_count");
    long long before[sizeof names / sizeof *names];

    run(); /* another call site than that of before */
    for (unsigned i = 0; made && i < sizeof names / sizeof *names; i++)
        before[i] = made(names[i]);
    run();
    printf("%s:", what);
    for (unsigned i = 0; made && i < sizeof names / sizeof *names; i++)
        printf(" %s %lld", names[i], made(names[i]) - before[i]);
    printf("\n");
}

/* As much is freed as closes several epochs, beside one stream that is at work. */
static void pairs_beside(void)
{
    enum { BLOCKS = 64 };
    void *blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate((size_t)1 << 20);
        hipMemsetAsync(blocks[i], i, 64, stream);
    }
    for (int i = 0; i < BLOCKS; i++)
        hipFree(blocks[i]);
}

/* Of many streams one has something to do. */
static void many(void)
{
    static hipStream_t others[600];

    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        hipStreamCreateWithFlags(&others[i], hipStreamNonBlocking);
    count_in("beside many streams", pairs_beside);
}

static void count(void)
{
    count_in("a pair", pairs);
    count_in("of a stream", pairs_of_stream);
    count_in("of the null stream", pairs_of_null);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"devices", devices}, {"errors", errors}, {"going_on", going_on}, {"threads", threads},
                     {"streams", streams}, {"count", count},   {"many", many}};

    if (hipSetDevice(0) != hipSuccess ||
        hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) != hipSuccess)
        return 2;
    pairs();
    pairs_of_stream();
    pairs_of_null();
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    return 2;
}
