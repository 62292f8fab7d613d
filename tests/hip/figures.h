/* figures.h - what the simulated runtime was asked, and the most memory that it gave: on standard error,
 * which allocators.py reads. Nothing where there is no simulator. */
#ifndef MS_TESTS_HIP_FIGURES_H
#define MS_TESTS_HIP_FIGURES_H

#include <dlfcn.h>
#include <stdio.h>

static inline void say_figures(void)
{
    static const char *const names[] = {"peak_bytes",          "hipMalloc",    "hipFree",
                                        "hipMallocAsync",      "hipFreeAsync", "hipMallocFromPoolAsync",
                                        "hipDeviceSynchronize"};
    long long (*told)(const char *) = (long long (*)(const char *))dlsym(RTLD_DEFAULT, "memsim_count");

    for (unsigned i = 0; i < sizeof names / sizeof *names && told; i++)
        fprintf(stderr, "%s %lld\n", names[i], told(names[i]));
}

#endif
