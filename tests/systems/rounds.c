/*
 * For programs of any language: says on standard error how often the simulated driver made memory since it
 * was asked last. Says -1 on hardware. Numbers go there, and the program's own output stays what it is
 * natively.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "tests/systems/rounds.h"

static long long made(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    long long (*count)(const char *) = NULL;

    *(void **)&count = driver ? dlsym(driver, "memsim_count") : NULL;
    return count ? count("cuMemAlloc_v2") + count("cuMemCreate") : -1;
}

void say_made(const char *what)
{
    static long long before;
    long long now = made();

    fprintf(stderr, "made %s %lld\n", what, now < 0 ? now : now - before);
    before = now;
}
