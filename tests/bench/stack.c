/* stack.c - what one stack costs: nanoseconds per walk of 8, 16 and 64 frames, warm. Usage: stack
 * MILLISECONDS, so long for each figure.
 *
 * A measuring program, not a test. Walks are called from below a chain of that many functions, each at an
 * address of its own, compiled without frame pointers except where the walk by frame pointers needs them.
 * Columns: our walk by rules, the same with interning (what a hook pays), our walk by frame pointers,
 * libgcc's unwinder, glibc's backtrace, and the packaged libunwind's unw_backtrace where one is installed.
 * The median of several rounds is printed. */
#include "config.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unwind.h>

#include "base/compiler.h"
#include "unwind/stack.h"
#include "tests/bench/chain.h"

enum { FRAMES_MAX = 64, ROUNDS = 15, WALKS_MAX = 4000 };

typedef unsigned take(uintptr_t *frames, unsigned max);

struct way {
    const char *name;
    take *take;
    double ns;
    unsigned count; /* frames it found */
};

static int (*packaged)(void **, int);
static unsigned depth;
static double round_ns; /* how long a round takes at most */

static MS_NOINLINE unsigned take_rules(uintptr_t *frames, unsigned max)
{
    return ms_stack_walk(MS_WALK_UNWIND, __builtin_frame_address(0), __builtin_return_address(0), frames,
                         max);
}

static MS_NOINLINE unsigned take_captured(uintptr_t *frames, unsigned max)
{
    (void)frames;
    return ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0)) ? max : 0;
}

static MS_NOINLINE unsigned take_pointers(uintptr_t *frames, unsigned max)
{
    return ms_stack_walk(MS_WALK_FP, __builtin_frame_address(0), __builtin_return_address(0), frames, max);
}

struct taken {
    uintptr_t *frames;
    unsigned count, max;
};

static _Unwind_Reason_Code take_one(struct _Unwind_Context *context, void *arg)
{
    struct taken *taken = arg;
    if (taken->count == taken->max)
        return _URC_END_OF_STACK;
    taken->frames[taken->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static MS_NOINLINE unsigned take_libgcc(uintptr_t *frames, unsigned max)
{
    struct taken taken = {frames, 0, max};
    _Unwind_Backtrace(take_one, &taken);
    return taken.count;
}

static MS_NOINLINE unsigned take_glibc(uintptr_t *frames, unsigned max)
{
    return (unsigned)backtrace((void **)frames, (int)max);
}

static MS_NOINLINE unsigned take_packaged(uintptr_t *frames, unsigned max)
{
    return packaged ? (unsigned)packaged((void **)frames, (int)max) : 0;
}

static struct way ways[] = {
    {"rules", take_rules, 0, 0}, {"rules+intern", take_captured, 0, 0},
    {"fp", take_pointers, 0, 0}, {"libgcc", take_libgcc, 0, 0},
    {"glibc", take_glibc, 0, 0}, {"unw_backtrace", take_packaged, 0, 0},
};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static MS_NOINLINE double measure_round(const struct way *way, uintptr_t *frames)
{
    double begun = now_ns(), took = 0;
    unsigned walks = 0;
    for (unsigned more = 1; took < round_ns && walks < WALKS_MAX; more *= 2) {
        for (unsigned i = 0; i < more; i++)
            way->take(frames, depth);
        walks += more;
        took = now_ns() - begun;
    }
    return took / walks;
}

static MS_NOINLINE void measure(void)
{
    uintptr_t frames[FRAMES_MAX + 8];
    for (struct way *way = ways; way < ways + MS_ARRAY_LEN(ways); way++) {
        double rounds[ROUNDS];
        way->count = way->take(frames, depth);
        for (unsigned round = 0; round < ROUNDS && way->count; round++) {
            rounds[round] = measure_round(way, frames);
        }
        if (way->count)
            qsort(rounds, ROUNDS, sizeof *rounds, by_value);
        way->ns = way->count ? rounds[ROUNDS / 2] : 0;
    }
}

int main(int argc, char **argv)
{
    static const unsigned depths[] = {8, 16, 64};
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    chain_last = measure;
    round_ns = (argc > 1 ? strtod(argv[1], NULL) : 60) * 1e6 / ROUNDS;
    packaged = library ? (int (*)(void **, int))dlsym(library, "unw_backtrace") : NULL;
    printf("%-14s", "frames");
    for (unsigned i = 0; i < MS_ARRAY_LEN(ways); i++)
        printf("%15s", ways[i].name);
    printf("\n");
    for (unsigned i = 0; i < MS_ARRAY_LEN(depths); i++) {
        depth = depths[i];
        ms_stack_configure(MS_WALK_UNWIND, depth);
        chain_0(depth + 4);
        printf("%-14u", depth);
        for (unsigned j = 0; j < MS_ARRAY_LEN(ways); j++)
            if (ways[j].count)
                printf("%9.0f (%3u)", ways[j].ns, ways[j].count);
            else
                printf("%15s", "-");
        printf("\n");
    }
    return 0;
}
