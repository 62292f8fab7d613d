/* program.h - what programs share that print what they see: a line that is out at once; and the clock. */
#ifndef MS_TESTS_PROGRAM_H
#define MS_TESTS_PROGRAM_H

#include <stdarg.h>
#include <stdio.h>

#include "tests/clock.h"

/** Prints one line, so that it is out before whatever the next call does. */
__attribute__((unused, format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

#endif
