/*
 * nohang.c - runs one program: nohang NAME kernel|value|function. `nohang --list` prints every name, with the
 * environment that it needs. Built for HIP as well, where a stream is held by a function alone.
 */
#include "nohang.h"

#include <pthread.h>

enum hold_kind hold_kind;

#ifndef TEST_HIP
/* The simulator knows this kernel by its name and its parameters; hardware runs the text. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry memsim_hold(.param .u64 flag, .param .u32 value, .param .u64 limit_ns)\n{\n"
    "\t.reg .pred %p<3>;\n\t.reg .b32 %r<3>;\n\t.reg .b64 %d<6>;\n"
    "\tld.param.u64 %d1, [flag];\n\tld.param.u32 %r1, [value];\n\tld.param.u64 %d2, [limit_ns];\n"
    "\tcvta.to.global.u64 %d1, %d1;\n\tmov.u64 %d3, %globaltimer;\n"
    "AGAIN:\n\tld.volatile.global.u32 %r2, [%d1];\n\tsetp.eq.u32 %p1, %r2, %r1;\n\t@%p1 bra DONE;\n"
    "\tsetp.eq.u64 %p2, %d2, 0;\n\t@%p2 bra AGAIN;\n\tmov.u64 %d4, %globaltimer;\n"
    "\tsub.u64 %d5, %d4, %d3;\n\tsetp.lt.u64 %p2, %d5, %d2;\n\t@%p2 bra AGAIN;\nDONE:\n\tret;\n}\n";
#endif

static void must(int status, const char *what)
{
    if (status) {
        say("%s: %d", what, status);
        exit(3);
    }
}

#ifndef TEST_HIP
static void prepare_kernel(struct hold *hold)
{
    CUmodule module = NULL;

    must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
    must(cuModuleGetFunction(&hold->kernel, module, "memsim_hold"), "cuModuleGetFunction");
}

static void begin_on_device(struct hold *hold, cudaStream_t stream, unsigned limit_ms)
{
    uint32_t value = 1;
    uint64_t limit_ns = (uint64_t)limit_ms * 1000000;
    void *parameters[] = {&hold->device_flag, &value, &limit_ns};

    if (hold_kind == HOLD_KERNEL)
        must(cuLaunchKernel(hold->kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel");
    else
        must(cuStreamWaitValue32_v2(stream, hold->device_flag, 1, CU_STREAM_WAIT_VALUE_EQ),
             "cuStreamWaitValue32");
}
#else
static void prepare_kernel(struct hold *hold)
{
    (void)hold;
}

static void begin_on_device(struct hold *hold, cudaStream_t stream, unsigned limit_ms)
{
    (void)hold, (void)stream, (void)limit_ms;
    exit(2);
}
#endif

void hold_prepare(struct hold *hold)
{
    void *flag = NULL, *device = NULL;

    must(cudaHostAlloc(&flag, 64, cudaHostAllocMapped), "cudaHostAlloc");
    must(cudaHostGetDevicePointer(&device, flag, 0), "cudaHostGetDevicePointer");
    memset(flag, 0, 64);
    hold->later = NULL;
    hold->flag = flag;
    hold->device_flag = (uintptr_t)device;
    prepare_kernel(hold);
}

static void wait_for_flag(void *argument)
{
    struct hold *hold = argument;

    while (!__atomic_load_n(hold->flag, __ATOMIC_ACQUIRE))
        pause_ms(1);
}

static void release_later(void *argument)
{
    struct hold *hold = argument;

    pause_ms(60);
    __atomic_store_n(hold->flag, 1, __ATOMIC_RELEASE);
}

void hold_begin(struct hold *hold, cudaStream_t stream, unsigned limit_ms)
{
    __atomic_store_n(hold->flag, 0, __ATOMIC_RELEASE);
    if (hold_kind == HOLD_FUNCTION)
        must(cudaLaunchHostFunc(stream, wait_for_flag, hold), "cudaLaunchHostFunc");
    else
        begin_on_device(hold, stream, limit_ms);
    if (limit_ms && hold_kind != HOLD_KERNEL)
        hold->later = start(release_later, hold);
}

void hold_end(struct hold *hold)
{
    __atomic_store_n(hold->flag, 1, __ATOMIC_RELEASE);
    if (hold->later)
        finish(hold->later); /* the flag may be gone after the next call */
    hold->later = NULL;
}

cudaStream_t new_stream(void)
{
    cudaStream_t stream = NULL;

    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
}

void *take(size_t bytes)
{
    void *p = NULL;

    must(cudaMalloc(&p, bytes), "cudaMalloc");
    return p;
}

int take_all(void **blocks, int most, size_t bytes)
{
    int count = 0;

    while (count < most && cudaMalloc(&blocks[count], bytes) == cudaSuccess)
        count++;
    cudaGetLastError();
    return count;
}

void give_all(void **blocks, int count)
{
    for (int i = 0; i < count; i++)
        must(cudaFree(blocks[i]), "cudaFree");
}

struct helper {
    pthread_t thread;
    void (*function)(void *);
    void *argument;
};

static void *run_helper(void *argument)
{
    struct helper *helper = argument;

    cudaSetDevice(0);
    helper->function(helper->argument);
    return NULL;
}

struct helper *start(void (*function)(void *), void *argument)
{
    struct helper *helper = malloc(sizeof *helper);

    *helper = (struct helper){.function = function, .argument = argument};
    must(pthread_create(&helper->thread, NULL, run_helper, helper), "pthread_create");
    return helper;
}

void finish(struct helper *helper)
{
    pthread_join(helper->thread, NULL);
    free(helper);
}

int main(int argc, char **argv)
{
    static const struct program *const groups[] = {programs_plain,   programs_full,  programs_threads,
                                                   programs_streams, programs_pools, programs_bound};
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;

    if (!list && argc != 3)
        return 2;
    if (!list)
        hold_kind = argv[2][0] == 'k' ? HOLD_KERNEL : argv[2][0] == 'v' ? HOLD_VALUE : HOLD_FUNCTION;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        for (const struct program *program = groups[i]; program->name; program++) {
            if (list) {
                printf("%s %s\n", program->name, program->environment ? program->environment : "");
            } else if (strcmp(program->name, argv[1]) == 0) {
                program->run();
                say("the end");
                return 0;
            }
        }
    return list ? 0 : 2;
}
