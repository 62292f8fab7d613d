/*
 * later_user.c - captures that begin by a function which memshim has not heard of, while memory is freed.
 *
 * usage: later_user WAY [count]. WAY is how the function is reached: symbol, default, lookup, next, linked
 * (the program that is called later_linked), version: as a later version of one that memshim knows, bulk:
 * looked up in each way, and not called, or ends: streams end while another thread frees. With `count`, how
 * many events there were, of which kind; without, it prints the same natively and under memshim.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hooks/later.h"

#define NAME "cuStreamBeginLaterCapture"

enum { ENDS = 400000 };

typedef CUresult (*begin_func_t)(CUstream, LATER_PARAMETERS);

static begin_func_t reach(const char *way)
{
    CUresult (*look_up)(const char *, void **, int, cuuint64_t, void *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;

#ifdef LATER_LINKED
    if (strcmp(way, "linked") == 0)
        return cuStreamBeginLaterCapture;
#endif
    if (strcmp(way, "symbol") == 0 || strcmp(way, "bulk") == 0 || strcmp(way, "ends") == 0)
        found = dlsym(driver, NAME);
    if (strcmp(way, "default") == 0 || strcmp(way, "bulk") == 0)
        found = dlsym(RTLD_DEFAULT, NAME);
    if (strcmp(way, "next") == 0)
        found = dlsym(RTLD_NEXT, NAME);
    look_up =
        (CUresult(*)(const char *, void **, int, cuuint64_t, void *))dlsym(driver, "cuGetProcAddress_v2");
    if (strcmp(way, "lookup") == 0 || strcmp(way, "bulk") == 0)
        printf("looked up %d\n", look_up(NAME, &found, 14000, 0, NULL));
    if (strcmp(way, "version") == 0)
        printf("looked up %d\n", look_up("cuStreamBeginCapture", &found, 14000, 0, NULL));
    if (!found) {
        printf("no way\n");
        exit(2);
    }
    return (begin_func_t)found;
}

/* Every question about free memory closes an epoch, if anything was freed since. */
static void free_much(void)
{
    CUdeviceptr p[32];
    size_t left, total;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 32; i++)
            cuMemAlloc_v2(&p[i], (size_t)4096 << (i % 8));
        for (int i = 0; i < 32; i++)
            cuMemFree_v2(p[i]);
        cuMemGetInfo_v2(&left, &total);
    }
}

/* Of a function with other arguments than the version that memshim knows. */
static void allocate_later(void)
{
    CUresult (*look_up)(const char *, void **, int, cuuint64_t, void *) =
        (__typeof__(look_up))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    CUresult (*allocate)(LATER_PARAMETERS) = NULL;

    printf("looked up %d\n", look_up("cuMemAlloc", (void **)&allocate, 14000, 0, NULL));
    printf("a later version: %d\n", allocate(LATER_ARGUMENTS));
}

static void tell_counts(const char *when)
{
    printf("%s: %d over the context, %d in streams, %d taken in\n", when, later_count(LATER_OVER_CONTEXT),
           later_count(LATER_IN_STREAM), later_count(LATER_TAKEN_IN));
}

static void capture(begin_func_t begin, CUstream stream, const char *which)
{
    CUgraph graph;

    printf("%s: begins %d\n", which, begin(stream, LATER_ARGUMENTS));
    free_much();
    printf("%s: ends %d\n", which, cuStreamEndCapture(stream, &graph));
}

static atomic_bool ended;

static void *free_meanwhile(void *arg)
{
    while (!atomic_load(&ended))
        free_much();
    return arg;
}

/* The driver ends the process if it is asked for an event in a stream of the past. */
static void end_streams(void)
{
    pthread_t thread;
    CUstream stream;

    pthread_create(&thread, NULL, free_meanwhile, NULL);
    for (int i = 0; i < ENDS; i++) {
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        cuStreamDestroy_v2(stream);
    }
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int counts = argc > 2;
    CUstream early, late, blocking, other;
    CUcontext context;

    cuInit(0);
    cuCtxGetCurrent(&context);
    cuStreamCreate(&early, CU_STREAM_NON_BLOCKING);
    cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
    free_much();
    begin_func_t begin = reach(way);
    free_much();
    if (counts)
        tell_counts("before");
    if (strcmp(way, "bulk") != 0) {
        capture(begin, early, "a stream from before the first call");
        cuStreamCreate(&late, CU_STREAM_NON_BLOCKING);
        cuStreamCreate(&blocking, CU_STREAM_DEFAULT);
        cuStreamDestroy_v2(other);
        capture(begin, late, "a stream from after it");
        capture(begin, blocking, "a blocking stream");
        cuStreamDestroy_v2(late);
    }
    if (strcmp(way, "ends") == 0)
        end_streams();
    if (strcmp(way, "version") == 0)
        allocate_later();
    free_much();
    if (counts)
        tell_counts("after");
    return 0;
}
