/* diff_part.h - the part of diff_user.c whose file is renamed. */
#ifndef DIFF_PART_H
#define DIFF_PART_H

#include <stddef.h>

enum { PART_MIB = 1 << 20 };

__attribute__((noinline, unused)) static void in_part(void (*take)(size_t bytes))
{
    take(6 * PART_MIB);
    take(4 * PART_MIB);
}

#endif
