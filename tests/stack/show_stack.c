/* show_stack.c - printing one stack, and a place to stop at. */
#include "config.h"

#include <stdio.h>

#include "tests/stack/show.h"
#include "tests/stack/snap.h"

MS_NOINLINE void stop_here(void)
{
    __asm__ volatile("" ::: "memory");
}

MS_NOINLINE void show_stack(void)
{
    uintptr_t frames[SNAP_MAX];
    unsigned count = ms_stack_walk(MS_WALK_UNWIND, __builtin_frame_address(0), __builtin_return_address(0),
                                   frames, SNAP_MAX);
    for (unsigned i = 0; i < count; i++)
        printf("frame %lx\n", (unsigned long)frames[i]);
    fflush(stdout);
    stop_here();
    __asm__ volatile("" ::: "memory");
}
