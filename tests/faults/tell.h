/*
 * tell.h - what the programs that are refused share: one line per refusal, and a book of calls, faults.py
 * reads it.
 */
#ifndef MS_TESTS_FAULTS_TELL_H
#define MS_TESTS_FAULTS_TELL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)

static struct tally {
    const char *api;
    int calls, refused;
} tallies[16];

static unsigned long long live;
static int wrong, round_number, refusals;

/* Calls that are no allocation; what they refuse is told, and makes what follows unknown. */
static bool other(const char *api, int status)
{
    refusals += status != 0;
    if (status)
        printf("round %d: %s %d\n", round_number, api, status);
    return status == 0;
}

static bool done(const char *api, int status)
{
    struct tally *t = tallies;

    while (t->api && strcmp(t->api, api) != 0)
        t++;
    t->api = api;
    t->calls++;
    t->refused += status != 0;
    return other(api, status);
}

/* How often each driver function that COUNTED names was called, where the library can say (MEMSIM_COUNT). */
static void tell_counts(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    long long (*count)(const char *) =
        (long long (*)(const char *))(uintptr_t)(driver ? dlsym(driver, "memsim_count") : NULL);
    char *names = getenv("COUNTED");

    for (char *name = count && names ? strtok(names, ",") : NULL; name; name = strtok(NULL, ","))
        printf("count %s %lld\n", name, count(name));
}

/* What is wrong is told, too. */
static int tell(void)
{
    tell_counts();
    for (struct tally *t = tallies; t->api; t++)
        printf("tally %s %d %d\n", t->api, t->calls, t->refused);
    printf("wrong %d\nlive %llu\n", wrong, live);
    return wrong != 0;
}

#endif
