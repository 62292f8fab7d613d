/* diff_user.c - one program in two builds, for memshim diff: with -DAFTER a function has moved down, one has
 * moved to another file, that file is called otherwise, one call site is new, one is gone, and one grew.
 *
 * Built twice; the other file is diff_part.h, of which the build makes two copies with different names. */
#include <stdio.h>
#include <stdlib.h>

#ifdef AFTER
#include "diff_part_renamed.h"
#else
#include "diff_part.h"
#endif

int cudaMalloc(void **pointer, size_t bytes);

enum { MIB = 1 << 20 };

__attribute__((noinline)) static void take(size_t bytes)
{
    void *pointer;

    if (cudaMalloc(&pointer, bytes) != 0)
        exit(3);
}

#ifdef AFTER
/* Lines that were not there before: whatever follows has moved. */
__attribute__((noinline)) static void new_buffer(void)
{
    take(3 * MIB);
}
#else
__attribute__((noinline)) static void old_buffer(void)
{
    take(5 * MIB);
}
#endif

/* Two call sites of one function, and in the later build another one before them. */
__attribute__((noinline)) static void moved(void)
{
#ifdef AFTER
    take(7 * MIB);
#endif
    take(1 * MIB);
    take(2 * MIB);
}

__attribute__((noinline)) static void planted(void)
{
#ifdef AFTER
    take(64 * MIB);
#else
    take(16 * MIB);
#endif
}

int main(void)
{
    moved();
    in_part(take);
    planted();
#ifdef AFTER
    new_buffer();
#else
    old_buffer();
#endif
    return 0;
}
