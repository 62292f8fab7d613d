/* frames.c - functions whose frames look different from each other, compiled without frame pointers.
 *
 * Each calls the next until the depth is reached, and does something afterwards, so that none is left by a
 * tail call. */
#include "tests/stack/snap.h"

#include <alloca.h>
#include <stdlib.h>
#include <string.h>

struct request {
    void (*what)(void *);
    void *arg;
    unsigned left, shapes;
};

static _Thread_local volatile unsigned sink;

static void next(struct request *request);

static MS_NOINLINE void plain(struct request *request)
{
    next(request);
    sink++;
}

static MS_NOINLINE void large(struct request *request)
{
    volatile char room[200000];
    room[0] = (char)request->left;
    room[sizeof room - 1] = 1;
    next(request);
    sink += (unsigned)room[0];
}

static MS_NOINLINE void dynamic(struct request *request)
{
    volatile char *room = alloca(32 + request->left % 7 * 40);
    room[0] = 1;
    next(request);
    sink += (unsigned)room[0];
}

static MS_NOINLINE void realigned(struct request *request)
{
    volatile char room[256] __attribute__((aligned(128)));
    room[0] = 1;
    next(request);
    sink += (unsigned)((uintptr_t)room % 128) + (unsigned)room[0];
}

static MS_NOINLINE void realigned_dynamic(struct request *request)
{
    volatile char room[64] __attribute__((aligned(64)));
    volatile char *more = alloca(16 + request->left % 5 * 24);
    room[0] = more[0] = 1;
    next(request);
    sink += (unsigned)((uintptr_t)room % 64) + (unsigned)more[0];
}

static MS_NOINLINE void registers(struct request *request)
{
    unsigned a = sink, b = a * 3, c = b ^ 77, d = c + a, e = d * b, f = e - c;
    next(request);
    sink = a + b * 2 + c * 3 + d * 5 + e * 7 + f;
}

static MS_NOINLINE unsigned many(struct request *request, long a, long b, long c, long d, long e, long f,
                                 long g, long h)
{
    next(request);
    return (unsigned)(a + b + c + d + e + f + g + h);
}

static MS_NOINLINE void with_arguments(struct request *request)
{
    sink += many(request, sink, 2, 3, 4, 5, 6, 7, 8);
}

/* The C library calls back. */
static _Thread_local struct request *sorted;

static int compare(const void *a, const void *b)
{
    struct request *request = sorted;
    sorted = NULL;
    if (request)
        next(request);
    return *(const int *)a - *(const int *)b;
}

static MS_NOINLINE void by_library(struct request *request)
{
    int values[] = {2, 1};
    sorted = request;
    qsort(values, 2, sizeof *values, compare);
    sink += (unsigned)values[0];
}

static void next(struct request *request)
{
    static void (*const shapes[FRAMES_SHAPES])(struct request *) = {
        plain, large, dynamic, realigned, registers, with_arguments, by_library, realigned_dynamic};
    if (request->left-- == 0)
        request->what(request->arg);
    else
        shapes[request->left % request->shapes](request);
    sink++;
}

void frames_call(unsigned depth, unsigned shapes, void (*what)(void *), void *arg)
{
    struct request request = {what, arg, depth, shapes};
    next(&request);
    sink++;
}
