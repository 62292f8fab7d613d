/*
 * agent.c - one process that shares device memory, told by lines on standard input what to do; each line gets
 * one line of answer. scenarios.py plays with several of them. Statuses are the driver's; names are 0 to 63,
 * and stand for a pointer each.
 *
 *   alloc N BYTES         free N                set N AT BYTES VALUE      sum N AT BYTES      (sum: 0 or the
 * first byte that is not VALUE) export N AT           -> status, handle     open N HANDLE FLAGS       close N
 * AT          same N M range N AT            -> status, where the range begins from the pointer, its size
 * ranges N: by attributes id N M                -> whether their BUFFER_IDs are equal           device N new
 * C DEVICE / use C / end C -> contexts; 0 is the primary one of device 0 old N HANDLE FLAGS    as open, by
 * the function of before CUDA 11 later N MS BYTES VALUE: as set, but by work that takes so long capture MODE
 * begins one                endcapture            -> status churn TIMES BYTES     alloc, export, free, so
 * often                   reopen TIMES HANDLE: open, close, so often load FILE             -> dlopen die: by
 * a signal; fork: a child that exits at once
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

enum { NAMES = 64 };
static CUdeviceptr pointers[NAMES];
static CUcontext contexts[NAMES];
static unsigned char bytes[1 << 20];

static void to_hex(const CUipcMemHandle *handle, char *hex)
{
    for (size_t i = 0; i < sizeof(*handle); i++)
        sprintf(hex + 2 * i, "%02x", ((const unsigned char *)handle)[i]);
}

static CUipcMemHandle from_hex(const char *hex)
{
    CUipcMemHandle handle;

    memset(&handle, 0, sizeof(handle));
    for (size_t i = 0; i < sizeof(handle) && hex[2 * i]; i++)
        sscanf(hex + 2 * i, "%2hhx", &((unsigned char *)&handle)[i]);
    return handle;
}

static int fill(CUdeviceptr at, size_t count, int value)
{
    int status = (int)cuMemsetD8_v2(at, (unsigned char)value, count);

    return status ? status : (int)cuCtxSynchronize();
}

/* The first of them that is not `value`; `count` if all are. */
static size_t first_other(size_t count, int value)
{
    size_t i = 0;

    if (bytes[0] == (unsigned char)value && memcmp(bytes, bytes + 1, count - 1) == 0)
        return count;
    while (i < count && bytes[i] == (unsigned char)value)
        i++;
    return i;
}

/* "status first", where first is the offset of the first byte that differs, or -1. */
static void check(CUdeviceptr at, size_t count, int value)
{
    for (size_t done = 0; done < count;) {
        size_t part = count - done < sizeof(bytes) ? count - done : sizeof(bytes);
        int status = (int)cuMemcpyDtoH_v2(bytes, at + done, part);
        if (status) {
            printf("%d -1\n", status);
            return;
        }
        size_t first = first_other(part, value);
        if (first < part) {
            printf("0 %zu\n", done + first);
            return;
        }
        done += part;
    }
    printf("0 -1\n");
}

static void range(CUdeviceptr pointer, long long at)
{
    CUdeviceptr base = 0;
    size_t size = 0;
    int status = (int)cuMemGetAddressRange_v2(&base, &size, pointer + (CUdeviceptr)at);

    printf("%d %lld %zu\n", status, status ? 0 : (long long)(base - pointer), size);
}

static void ranges(CUdeviceptr pointer)
{
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    CUdeviceptr start = 0, single = 0;
    size_t size = 0;
    void *data[] = {&start, &size};
    int status = (int)cuPointerGetAttributes(2, wanted, data, pointer), other;

    other = (int)cuPointerGetAttribute(&single, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer);
    printf("%d %d %lld %lld %zu\n", status, other, (long long)(start - pointer),
           (long long)(single - pointer), size);
}

static void ids(CUdeviceptr a, CUdeviceptr b)
{
    unsigned long long x = 0, y = 0;
    int status = (int)cuPointerGetAttribute(&x, CU_POINTER_ATTRIBUTE_BUFFER_ID, a);

    status += (int)cuPointerGetAttribute(&y, CU_POINTER_ATTRIBUTE_BUFFER_ID, b);
    printf("%d %d\n", status, x == y);
}

static void device_of(CUdeviceptr pointer)
{
    int device = -1,
        status = (int)cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);

    printf("%d %d\n", status, device);
}

static void churn(unsigned times, size_t size)
{
    CUipcMemHandle handle, last;
    unsigned failed = 0, same = 0;

    memset(&last, 0, sizeof(last));
    for (unsigned i = 0; i < times; i++) {
        CUdeviceptr p = 0;
        failed += cuMemAlloc_v2(&p, size) != CUDA_SUCCESS || cuIpcGetMemHandle(&handle, p) != CUDA_SUCCESS;
        same += memcmp(&handle, &last, sizeof(handle)) == 0;
        last = handle;
        failed += cuMemFree_v2(p) != CUDA_SUCCESS;
    }
    printf("%u %u\n", failed, same);
}

static void reopen(unsigned times, const char *hex)
{
    CUipcMemHandle handle = from_hex(hex);
    unsigned failed = 0;
    CUdeviceptr p = 0;

    for (unsigned i = 0; i < times; i++)
        failed += cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS ||
                  cuIpcCloseMemHandle(p) != CUDA_SUCCESS;
    printf("%u\n", failed);
}

static void delay(void *data)
{
    long ms = (long)(intptr_t)data;
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static void do_context(const char *verb, unsigned c, int device)
{
    int status = -1;

    if (strcmp(verb, "new") == 0)
        status = (int)cuCtxCreate_v2(&contexts[c], 0, device);
    else if (strcmp(verb, "use") == 0)
        status = (int)cuCtxSetCurrent(contexts[c]);
    else if (strcmp(verb, "end") == 0)
        status = (int)cuCtxDestroy_v2(contexts[c]);
    printf("%d\n", status);
}

static CUstream capturing;

static int begin_capture(CUstreamCaptureMode mode)
{
    int status = capturing ? 0 : (int)cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING);

    return status ? status : (int)cuStreamBeginCapture_v2(capturing, mode);
}

static int end_capture(void)
{
    CUgraph graph = NULL;
    int status = (int)cuStreamEndCapture(capturing, &graph);

    return status || !graph ? status : (int)cuGraphDestroy(graph);
}

static void do_fork(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        exit(0);
    waitpid(child, &status, 0);
    printf("%d\n", status);
}

static void do_handles(const char *verb, unsigned n, long long at, const char *hex)
{
    CUdeviceptr *p = &pointers[n];

    if (strcmp(verb, "export") == 0) {
        CUipcMemHandle handle;
        char text[2 * sizeof(handle) + 1] = "-";
        int status = (int)cuIpcGetMemHandle(&handle, *p + (CUdeviceptr)at);
        if (!status)
            to_hex(&handle, text);
        printf("%d %s\n", status, text);
    } else if (strcmp(verb, "open") == 0) {
        printf("%d\n", (int)cuIpcOpenMemHandle_v2(p, from_hex(hex), (unsigned)at));
    } else if (strcmp(verb, "old") == 0) {
        printf("%d\n", (int)cuIpcOpenMemHandle(p, from_hex(hex), (unsigned)at));
    } else {
        printf("%d\n", (int)cuIpcCloseMemHandle(*p + (CUdeviceptr)at));
    }
}

static void do_memory(const char *verb, unsigned n, long long a, long long b, int value)
{
    CUdeviceptr *p = &pointers[n];

    if (strcmp(verb, "alloc") == 0)
        printf("%d\n", (int)cuMemAlloc_v2(p, (size_t)a));
    else if (strcmp(verb, "free") == 0)
        printf("%d\n", (int)cuMemFree_v2(*p));
    else if (strcmp(verb, "set") == 0)
        printf("%d\n", fill(*p + (CUdeviceptr)a, (size_t)b, value));
    else if (strcmp(verb, "later") == 0)
        printf("%d\n", (int)cuLaunchHostFunc(NULL, delay, (void *)(intptr_t)a) +
                           (int)cuMemsetD8Async(*p, (unsigned char)value, (size_t)b, NULL));
    else if (strcmp(verb, "sum") == 0)
        check(*p + (CUdeviceptr)a, (size_t)b, value);
    else if (strcmp(verb, "range") == 0)
        range(*p, a);
    else if (strcmp(verb, "ranges") == 0)
        ranges(*p);
    else if (strcmp(verb, "same") == 0)
        printf("%d\n", *p == pointers[(unsigned)a % NAMES]);
    else if (strcmp(verb, "device") == 0)
        device_of(*p);
    else if (strcmp(verb, "id") == 0)
        ids(*p, pointers[(unsigned)a % NAMES]);
    else
        printf("unknown\n");
}

/* False: end. */
static int obey(char *line)
{
    char verb[32] = "", hex[1024] = "";
    unsigned n = 0;
    long long a = 0, b = 0;
    int value = 0;

    sscanf(line, "%31s %u %lld %lld %d", verb, &n, &a, &b, &value);
    if (strcmp(verb, "open") == 0 || strcmp(verb, "old") == 0)
        sscanf(line, "%*s %*u %1023s %lld", hex, &a);
    else if (strcmp(verb, "reopen") == 0 || strcmp(verb, "load") == 0)
        sscanf(line, strcmp(verb, "load") == 0 ? "%*s %1023s" : "%*s %*u %1023s", hex);
    if (strcmp(verb, "die") == 0)
        raise(SIGKILL);
    if (strcmp(verb, "export") == 0 || strcmp(verb, "open") == 0 || strcmp(verb, "old") == 0 ||
        strcmp(verb, "close") == 0)
        do_handles(verb, n % NAMES, a, hex);
    else if (strcmp(verb, "new") == 0 || strcmp(verb, "use") == 0 || strcmp(verb, "end") == 0)
        do_context(verb, n % NAMES, (int)a);
    else if (strcmp(verb, "churn") == 0)
        churn(n, (size_t)a);
    else if (strcmp(verb, "reopen") == 0)
        reopen(n, hex);
    else if (strcmp(verb, "load") == 0)
        printf("%d\n", dlopen(hex, RTLD_NOW) ? 0 : 1);
    else if (strcmp(verb, "capture") == 0)
        printf("%d\n", begin_capture((CUstreamCaptureMode)n));
    else if (strcmp(verb, "endcapture") == 0)
        printf("%d\n", end_capture());
    else if (strcmp(verb, "fork") == 0)
        do_fork();
    else if (strcmp(verb, "quit") == 0)
        return 0;
    else
        do_memory(verb, n % NAMES, a, b, value);
    return 1;
}

int main(void)
{
    char line[1200];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&contexts[0], 0) || cuCtxSetCurrent(contexts[0]))
        return 3;
    while (fgets(line, sizeof(line), stdin) && obey(line))
        ;
    return 0;
}
