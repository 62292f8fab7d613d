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

/** Device code with a variable, a managed one and three kernels; the first has shared memory of its own. */
__attribute__((unused)) static const char image[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .b8 table[32];\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shared_word;\n"
    ".visible .entry first(.param .u64 p)\n{\n\t.shared .align 4 .b8 tile[256];\n\tret;\n}\n"
    ".visible .entry second()\n{\n\tret;\n}\n.visible .entry third()\n{\n\tret;\n}\n";

/** The same as a file, whose name it returns; whoever asked removes it. */
__attribute__((unused)) static const char *image_file(void)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/record-%d.ptx", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp",
             (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file || fputs(image, file) < 0 || fclose(file))
        bail("%s: %s", path, strerror(errno));
    return path;
}

#endif
