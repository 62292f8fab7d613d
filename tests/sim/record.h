/*
 * record.h: what the programs share that say what the simulator answers where recorded hardware has an
 * answer. Each prints a line per fact: its name, the status, the value ("-" where there is none), with tabs
 * between. record.py compares them with record.tsv.
 */
#ifndef MS_TESTS_SIM_RECORD_H
#define MS_TESTS_SIM_RECORD_H

#include "tests/sim/driver.h"

__attribute__((unused, format(printf, 3, 4))) static void told(const char *fact, int status,
                                                               const char *format, ...)
{
    va_list ap;

    printf("%s\t%d\t", fact, status);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
}

/** A fact that is a status alone. */
#define TOLD(fact, call) told(fact, (int)(call), "-")

#endif
