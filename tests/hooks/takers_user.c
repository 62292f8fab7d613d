/* takers_user.c - a program in which the driver takes memory for itself, and that keeps a book of it: what is
 * free before and after, by the driver's own word. The functions' names are what a report has to say.
 *
 * takers_user [kill]: killed before it ends anything. takers_user beside: the same, while another thread is
 * inside a call that gives memory back, from before until the end. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "tests/program.h"

int cudaMallocHost(void **pointer, size_t bytes);
int cudaSetDevice(int device);
int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMallocManaged(void **pointer, size_t bytes, unsigned flags);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

#define MIB (UINT64_C(1) << 20)
static char image[5 * MIB / 2 + 1]; /* takes two granules of 2 MiB */
static CUmodule modules[4];

static uint64_t left(void)
{
    size_t free_bytes = 0, total;

    cuMemGetInfo_v2(&free_bytes, &total);
    return free_bytes;
}

/* The mistake: nobody said which device is meant. */
__attribute__((noinline)) static void read_settings(void)
{
    void *pinned = NULL;

    say("pinned %d", cudaMallocHost(&pinned, 4096));
}

__attribute__((noinline)) static void work_on_second(void)
{
    void *block = NULL;

    say("second %d", cudaSetDevice(1) + cudaMalloc(&block, 3 * MIB));
}

__attribute__((noinline)) static CUcontext make_context(void)
{
    CUcontext context = NULL;
    uint64_t before = left();

    say("made %d", (int)cuCtxCreate_v2(&context, 0, 1));
    say("context %llu", (unsigned long long)(before - left()));
    return context;
}

/* One line for all of them: a loop's call may be unrolled into several, each a place of its own. */
__attribute__((noinline)) static void load_module(CUmodule *module_p)
{
    if (cuModuleLoadData(module_p, image) != CUDA_SUCCESS)
        say("no module");
}

__attribute__((noinline)) static void load_modules(unsigned count)
{
    uint64_t before = left();

    for (volatile unsigned i = 0; i < count; i++)
        load_module(&modules[i]);
    say("modules %llu", (unsigned long long)(before - left()));
}

static sem_t work_may_end;
static _Atomic int freeing;

static void hold(void *unused)
{
    (void)unused;
    while (sem_wait(&work_may_end) != 0)
        ;
}

/* Waits for the device, inside the driver. */
static void *free_behind_work(void *block)
{
    cudaSetDevice(1);
    atomic_store(&freeing, (int)syscall(SYS_gettid));
    say("freed %d", cudaFree(block));
    return NULL;
}

static bool is_asleep(int thread)
{
    char path[64], line[512] = "";
    FILE *file;
    const char *state;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    file = fopen(path, "r");
    state = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    return state && state[2] == 'S';
}

/* The thread is where it stays until the work may end: it sleeps, and goes on sleeping. */
static void begin_freeing(pthread_t *thread_p)
{
    void *block = NULL;

    sem_init(&work_may_end, 0, 0);
    say("managed %d", cudaMallocManaged(&block, 8 * MIB, 1));
    say("held %d", cudaLaunchHostFunc(NULL, hold, NULL));
    pthread_create(thread_p, NULL, free_behind_work, block);
    while (!atomic_load(&freeing))
        usleep(1000);
    for (int asleep = 0; asleep < 20; usleep(1000))
        asleep = is_asleep(atomic_load(&freeing)) ? asleep + 1 : 0;
}

static int work_beside(void)
{
    pthread_t thread;
    void *block = NULL;

    work_on_second();
    begin_freeing(&thread);
    make_context();
    load_modules(4);
    say("first %d", cudaSetDevice(0) + cudaMalloc(&block, 3 * MIB));
    sem_post(&work_may_end);
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    CUcontext context;

    memset(image, ' ', sizeof(image) - 1);
    memcpy(image, ".version 8.0", 12);
    if (argc > 1 && !strcmp(argv[1], "beside"))
        return work_beside();
    read_settings();
    work_on_second();
    context = make_context();
    load_modules(4);
    if (argc > 1 && !strcmp(argv[1], "kill"))
        raise(SIGKILL);
    uint64_t before = left();
    cuModuleUnload(modules[2]);
    say("unloaded %llu", (unsigned long long)(left() - before));
    cuCtxDestroy_v2(context);
    return 0;
}
