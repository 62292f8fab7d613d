/*
 * mark.h - marks and claims for clients in C and C++, as mark.py makes them for Python: a block of an odd
 * size of its own, which the trace has at its place, and a line that begins with "figure". Header only. The
 * context has to be current; one thread at a time.
 */
#ifndef MEMSHIM_CLIENTS_MARK_H
#define MEMSHIM_CLIENTS_MARK_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A mark's size is this and two for each before it, as in mark.py and kit/judge.py. */
#define MARK_FIRST 77001

static inline int mark_here(void)
{
    static int count;
    static void *driver;
    int (*allocate)(unsigned long long *, size_t), (*release)(unsigned long long);
    unsigned long long address = 0;

    if (!driver)
        driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&allocate = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&release = dlsym(driver, "cuMemFree_v2");
    if (allocate(&address, MARK_FIRST + 2 * (size_t)count) || release(address)) {
        fprintf(stderr, "mark %d cannot be made\n", count);
        exit(1);
    }
    return count++;
}

/* Claims a value of this kind ("live", "peak", "total", "count"), since the mark `since`; -1 is the process's
 * beginning. */
static inline int mark_claim(const char *kind, const char *name, long long value, int since)
{
    int number = mark_here();
    char first[16] = "-";

    if (since >= 0)
        snprintf(first, sizeof(first), "%d", since);
    printf("figure %d %s %s %lld %s %d\n", (int)getpid(), kind, name, value, first, number);
    fflush(stdout);
    return number;
}

#endif
