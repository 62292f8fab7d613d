/*
 * later_user.c - captures of HIP that begin by a function which memshim has not heard of, while memory is
 * freed.
 *
 * usage: later_user WAY [count]. WAY is how the function is reached: symbol, default, lookup, next, linked
 * (the program that is called later_linked), or bulk: looked up in each way, and not called. With `count`,
 * how often the library was asked something; without, it prints the same natively and under memshim.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip/later.h"

#define NAME "hipStreamBeginLaterCapture"

typedef hipError_t (*begin_func_t)(hipStream_t, LATER_PARAMETERS);

static begin_func_t reach(const char *way)
{
    void *library = dlopen("libamdhip64.so.6", RTLD_NOW), *found = NULL;

#ifdef LATER_LINKED
    if (strcmp(way, "linked") == 0)
        return hipStreamBeginLaterCapture;
#endif
    if (strcmp(way, "symbol") == 0 || strcmp(way, "bulk") == 0)
        found = dlsym(library, NAME);
    if (strcmp(way, "default") == 0 || strcmp(way, "bulk") == 0)
        found = dlsym(RTLD_DEFAULT, NAME);
    if (strcmp(way, "next") == 0)
        found = dlsym(RTLD_NEXT, NAME);
    if (strcmp(way, "lookup") == 0 || strcmp(way, "bulk") == 0)
        printf("looked up %d\n", hipGetProcAddress(NAME, &found, 90000000, 0, NULL));
    if (!found) {
        printf("no way\n");
        exit(2);
    }
    return (begin_func_t)found;
}

static void free_much(void)
{
    void *p[32];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 32; i++)
            hipMalloc(&p[i], (size_t)65536 << (i % 8));
        for (int i = 0; i < 32; i++)
            hipFree(p[i]);
    }
}

static void capture(begin_func_t begin, hipStream_t stream, const char *which, int counts)
{
    int before = later_asked();
    hipGraph_t graph;

    printf("%s: begins %d\n", which, begin(stream, LATER_ARGUMENTS));
    free_much();
    printf("%s: ends %d\n", which, hipStreamEndCapture(stream, &graph));
    if (counts)
        printf("%s: asked %d times\n", which, later_asked() - before);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int counts = argc > 2;
    hipStream_t early, late;

    hipInit(0);
    hipStreamCreateWithFlags(&early, 1);
    free_much();
    begin_func_t begin = reach(way);
    free_much();
    if (counts)
        printf("before: asked %s\n", later_asked() ? "some times" : "never");
    if (strcmp(way, "bulk") != 0) {
        capture(begin, early, "a stream from before the first call", counts);
        hipStreamCreateWithFlags(&late, 1);
        capture(begin, late, "a stream from after it", counts);
        hipStreamDestroy(late);
    }
    free_much();
    printf("the program waits: %d\n", hipDeviceSynchronize());
    return 0;
}
