/*
 * small_stacks.c - how much of a thread's stack each kind of call takes.
 *
 * usage: small_stacks WHAT. WHAT: calls (each row of the table, in a thread of its own), first (the process's
 * first call), child (the same in a fork child), signal (an allocation in a handler on an alternate stack),
 * exit (a thread ends the process). Every thread has 16 KiB, that lie above memory of ours instead of a guard
 * page: all of it is painted, and what lost its paint was used, also beyond the end. Prints a line for each:
 * name, bytes below the call, and whether the thread's stack sufficed. Run natively as well: the difference
 * is memshim's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/hooks/small_stacks_paint.h"

static struct {
    void *p, *q;
    CUdeviceptr d, va;
    cudaArray_t array;
    cudaStream_t stream;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop;
    size_t unit, pitch;
    cudaIpcMemHandle_t own, others;
    cudaMemPool_t pool;
    cudaGraph_t graph;
    CUgraphExec exec;
    int status;
} the;

static void alloc(void)
{
    the.status = cudaMalloc(&the.p, 3 << 20);
}
static void release(void)
{
    the.status = cudaFree(the.p);
}
static void alloc_small(void)
{
    the.status = cudaMalloc(&the.q, 700);
}
static void release_small(void)
{
    the.status = cudaFree(the.q);
}
static void alloc_driver(void)
{
    the.status = (int)cuMemAlloc_v2(&the.d, 5 << 20);
}
static void release_driver(void)
{
    the.status = (int)cuMemFree_v2(the.d);
}
static void alloc_pitch(void)
{
    the.status = cudaMallocPitch(&the.p, &the.pitch, 1000, 100);
}
static void alloc_async(void)
{
    the.status = cudaMallocAsync(&the.p, 4 << 20, the.stream);
}
static void release_async(void)
{
    the.status = cudaFreeAsync(the.p, the.stream);
}
static void alloc_managed(void)
{
    the.status = cudaMallocManaged(&the.p, 1 << 20, cudaMemAttachGlobal);
}
static void alloc_host(void)
{
    the.status = cudaMallocHost(&the.p, 1 << 20);
}
static void release_host(void)
{
    the.status = cudaFreeHost(the.p);
}
static void refused(void)
{
    the.status = cudaMalloc(&the.q, (size_t)1 << 50) == 0;
}
static void wrong_free(void)
{
    the.status = cudaFree((void *)(uintptr_t)0xdead0000) == 0;
}
static void free_freed(void)
{
    the.status = cudaFree(the.p) == 0;
}
static void free_inside(void)
{
    the.status = cudaFree((char *)the.p + 512) == 0;
}
static void release_array(void)
{
    the.status = cudaFreeArray(the.array);
}
static void create(void)
{
    the.status = (int)cuMemCreate(&the.handle, the.unit, &the.prop, 0);
}
static void map(void)
{
    the.status = (int)cuMemMap(the.va, the.unit, 0, the.handle, 0);
}
static void unmap(void)
{
    the.status = (int)cuMemUnmap(the.va, the.unit);
}
static void drop(void)
{
    the.status = (int)cuMemRelease(the.handle);
}
static void export_block(void)
{
    the.status = cudaIpcGetMemHandle(&the.own, the.p);
}
static void import_block(void)
{
    the.status = cudaIpcOpenMemHandle(&the.q, the.others, cudaIpcMemLazyEnablePeerAccess);
}
static void close_block(void)
{
    the.status = cudaIpcCloseMemHandle(the.q);
}
static void make_pool(void)
{
    the.status =
        cudaMemPoolCreate(&the.pool, &(struct cudaMemPoolProps){.allocType = cudaMemAllocationTypePinned,
                                                                .location.type = cudaMemLocationTypeDevice});
}
static void from_pool(void)
{
    the.status = cudaMallocFromPoolAsync(&the.p, 1 << 20, the.pool, the.stream);
}
static void trim_pool(void)
{
    the.status = cudaMemPoolTrimTo(the.pool, 0);
}
static void drop_pool(void)
{
    the.status = cudaMemPoolDestroy(the.pool);
}
static void make_stream(void)
{
    the.status = cudaStreamCreate(&the.stream);
}
static void wait_stream(void)
{
    the.status = cudaStreamSynchronize(the.stream);
}
static void drop_stream(void)
{
    the.status = cudaStreamDestroy(the.stream);
}
static void wait_device(void)
{
    the.status = cudaDeviceSynchronize();
}
static void begin_capture(void)
{
    the.status = cudaStreamBeginCapture(the.stream, cudaStreamCaptureModeRelaxed);
}
static void end_capture(void)
{
    the.status = cudaStreamEndCapture(the.stream, &the.graph);
}
static void instantiate(void)
{
    the.status = (int)cuGraphInstantiateWithFlags(&the.exec, the.graph, 0);
}
static void drop_exec(void)
{
    the.status = (int)cuGraphExecDestroy(the.exec);
}
static void drop_graph(void)
{
    the.status = cudaGraphDestroy(the.graph);
}
static void free_memory(void)
{
    size_t left, all;
    the.status = cudaMemGetInfo(&left, &all);
}
static void retain(void)
{
    CUcontext context;
    the.status = (int)cuDevicePrimaryCtxRetain(&context, 0);
}
static void drop_context(void)
{
    the.status = (int)cuDevicePrimaryCtxRelease_v2(0);
}
static void reset(void)
{
    the.status = cudaDeviceReset();
}

/* What is loaded is listed anew. */
static void alloc_after_load(void)
{
    if (!dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL))
        the.status = -1;
    else
        alloc();
}

static void make_array(void)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};

    the.status = cudaMallocArray(&the.array, &desc, 64, 32, 0);
}

static void attribute(void)
{
    CUdeviceptr base;

    the.status = (int)cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                            (CUdeviceptr)(uintptr_t)the.p);
}

static void range(void)
{
    CUdeviceptr base;
    size_t size;

    the.status = (int)cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)(uintptr_t)the.p);
}

static void look_up(void)
{
    void *function;
    CUdriverProcAddressQueryResult result;

    the.status = (int)cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &result);
}

/* In pairs: what one leaves behind the next takes up. */
static const struct row {
    const char *name;
    void (*call)(void), (*after)(void); /* the second is a row too */
    const char *after_name;
} rows[] = {
    {"cudaMalloc", alloc, release, "cudaFree"},
    {"cudaMalloc/small", alloc_small, release_small, "cudaFree/small"},
    {"cuMemAlloc", alloc_driver, release_driver, "cuMemFree"},
    {"cudaMallocPitch", alloc_pitch, release, "cudaFree/pitch"},
    {"cudaStreamCreate", make_stream, wait_stream, "cudaStreamSynchronize"},
    {"cudaMallocAsync", alloc_async, release_async, "cudaFreeAsync"},
    {"cudaMallocAsync/again", alloc_async, release, "cudaFree/async"},
    {"cudaMemPoolCreate", make_pool, from_pool, "cudaMallocFromPoolAsync"},
    {"cudaFreeAsync/pool", release_async, trim_pool, "cudaMemPoolTrimTo"},
    {"cudaStreamBeginCapture", begin_capture, end_capture, "cudaStreamEndCapture"},
    {"cuGraphInstantiateWithFlags", instantiate, drop_exec, "cuGraphExecDestroy"},
    {"cudaGraphDestroy", drop_graph, drop_pool, "cudaMemPoolDestroy"},
    {"cudaDeviceSynchronize", wait_device, drop_stream, "cudaStreamDestroy"},
    {"cudaMallocManaged", alloc_managed, release, "cudaFree/managed"},
    {"cudaMallocHost", alloc_host, release_host, "cudaFreeHost"},
    {"cudaMallocArray", make_array, release_array, "cudaFreeArray"},
    {"cuMemCreate", create, map, "cuMemMap"},
    {"cuMemUnmap", unmap, drop, "cuMemRelease"},
    {"cudaMalloc/refused", refused, wrong_free, "cudaFree/wrong"},
    {"cudaMalloc/held", alloc, free_inside, "cudaFree/inside"},
    {"cudaFree/held", release, free_freed, "cudaFree/freed"},
    {"dlopen+cudaMalloc", alloc_after_load, release, "cudaFree/loaded"},
    {"cudaMalloc/exported", alloc, export_block, "cudaIpcGetMemHandle"},
    {"cuPointerGetAttribute", attribute, range, "cuMemGetAddressRange"},
    {"cudaMemGetInfo", free_memory, release, "cudaFree/exported"},
    {"cudaIpcOpenMemHandle", import_block, close_block, "cudaIpcCloseMemHandle"},
    {"cuGetProcAddress", look_up, retain, "cuDevicePrimaryCtxRetain"},
    {"cuDevicePrimaryCtxRelease", drop_context, reset, "cudaDeviceReset"},
};

/* A driver's call wants the context current. */
static void prepare(void)
{
    cudaFree(NULL);
}

/* Another process's block, before this one has called anything. */
static pid_t start_exporter(int *close_p)
{
    int handle[2], hold[2];
    pid_t child;

    if (pipe(handle) != 0 || pipe(hold) != 0 || (child = fork()) < 0)
        exit(3);
    if (child == 0) {
        close(hold[1]);
        if (cudaMalloc(&the.p, 1 << 20) != 0 || cudaIpcGetMemHandle(&the.own, the.p) != 0)
            _exit(3);
        if (write(handle[1], &the.own, sizeof(the.own)) != sizeof(the.own))
            _exit(3);
        _exit(read(hold[0], &(char){0}, 1) != 0);
    }
    close(hold[0]);
    if (read(handle[0], &the.others, sizeof(the.others)) != sizeof(the.others))
        exit(3);
    *close_p = hold[1];
    return child;
}

static void measure_calls(void)
{
    int hold;
    pid_t exporter = start_exporter(&hold);

    the.prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    the.prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    if (cudaFree(NULL) != 0 ||
        cuMemGetAllocationGranularity(&the.unit, &the.prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != 0 ||
        cuMemAddressReserve(&the.va, the.unit, 0, 0, 0) != 0)
        exit(3);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        paint_measure(rows[i].name, prepare, rows[i].call, &the.status);
        paint_measure(rows[i].after_name, prepare, rows[i].after, &the.status);
    }
    close(hold);
    waitpid(exporter, NULL, 0);
}

static unsigned char *handler_stack;
static size_t in_handler;
static void handle(int number)
{
    (void)number;
    in_handler = paint_used_by(alloc) +
                 (size_t)(handler_stack + STACK_BYTES - (unsigned char *)__builtin_frame_address(0));
}

/* All of the alternate stack, the kernel's frame included, from its upper end. */
static void measure_signal(void)
{
    stack_t stack = {.ss_sp = handler_stack = paint_stack(), .ss_size = STACK_BYTES};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

    cudaFree(NULL);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    paint_tell("signal", in_handler, the.status);
}

static void *end_process(void *arg)
{
    (void)arg;
    alloc();
    exit(0);
}

/* The stack is shared with the parent, which looks at it when all is over. */
static void measure_exit(void)
{
    void *stack = paint_stack();
    pid_t child = fork();

    if (child == 0) {
        pthread_t thread;
        if (!paint_start(&thread, stack, end_process, NULL))
            _exit(3);
        pthread_join(thread, NULL);
    }
    waitpid(child, &the.status, 0);
    paint_tell("exit", BELOW_BYTES + STACK_BYTES - paint_first_used(), the.status);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "calls";

    if (strcmp(what, "calls") == 0)
        measure_calls();
    else if (strcmp(what, "first") == 0)
        paint_measure("first", NULL, alloc, &the.status);
    else if (strcmp(what, "signal") == 0)
        measure_signal();
    else if (strcmp(what, "exit") == 0)
        measure_exit();
    else if (strcmp(what, "child") == 0) {
        alloc();
        fflush(stdout);
        if (fork() == 0) {
            paint_measure("child", NULL, alloc_driver, &the.status);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
