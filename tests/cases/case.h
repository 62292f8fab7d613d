/* case.h - what the programs of tests/cases share: sizes, and what a simulated device has given. */
#ifndef MS_TESTS_CASE_H
#define MS_TESTS_CASE_H

#include <dlfcn.h>
#include <stddef.h>

#include "tests/program.h"

#define MIB ((size_t)1 << 20)

/** The simulator's count of this name (MEMSIM_COUNT=1), or -1 without a simulator. used_bytes is what is
 * taken of the device. */
__attribute__((unused)) static long long counted(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    long long (*count)(const char *) = NULL;

    if (driver)
        *(void **)&count = dlsym(driver, "memsim_count");
    return count ? count(name) : -1;
}

/** What is taken of the device, in MiB. */
__attribute__((unused)) static long long used_mib(void)
{
    return counted("used_bytes") >> 20;
}

#endif
