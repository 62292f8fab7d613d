/*
 * probe.c - what a program finds when it looks for interfaces that are not there, or not visible to it.
 *
 * Uses no GPU library unless told to open one. Prints presence alone, never addresses: the output must be the
 * same natively and under memshim. RTLD_NEXT is left out: memshim does stand next to the program. "weak"
 * looks at weak references instead, which the exports of a preload do make present.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_runtime.h"

static const char *const names[] = {
    "hipMalloc",
    "hipGetProcAddress",
    "ncclMemAlloc",
    "pncclMemAlloc",
    "aclrtMalloc",
    "cudaMalloc",
    "cudaFree",
    "cudaMallocAsync",
    "cudaMallocAsync_ptsz",
    "cudaGetDriverEntryPoint",
    "cudaGetDeviceCount",
    "cuMemAlloc",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuInit",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuMemCreate",
    "cudaNoSuchFunction",
    "dlsym",
    "getpid",
};

static void look(const char *when, void *handle)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *found = dlsym(handle, names[i]);
        void *versioned = dlvsym(handle, names[i], "libcudart.so.13");

        printf("%s %s %s %s\n", when, names[i], found ? "present" : "absent",
               versioned ? "present" : "absent");
        if (!found)
            printf("  %s\n", dlerror() ? "dlerror says so" : "dlerror is silent");
    }
}

static void look_everywhere(const char *when, void *opened)
{
    void *self = dlopen(NULL, RTLD_NOW);
    char label[64];

    snprintf(label, sizeof(label), "%s default", when);
    look(label, RTLD_DEFAULT);
    snprintf(label, sizeof(label), "%s self", when);
    look(label, self);
    if (opened) {
        snprintf(label, sizeof(label), "%s handle", when);
        look(label, opened);
    }
    dlclose(self);
}

extern cudaError_t cudaMalloc(void **, size_t) __attribute__((weak));
extern CUresult cuMemAlloc_v2(CUdeviceptr *, size_t) __attribute__((weak));
extern int hipMalloc(void **, size_t) __attribute__((weak));
extern int ncclMemAlloc(void **, size_t) __attribute__((weak));

/* A weak name of ours is present under memshim; calling it must then say what a machine without a driver
 * says. */
static int weak(void)
{
    void *p = (void *)0x1;
    CUdeviceptr d = 1;

    if (hipMalloc)
        printf("hip %d\n", hipMalloc(&p, 8));
    else
        puts("hip absent");
    if (ncclMemAlloc)
        printf("nccl %d\n", ncclMemAlloc(&p, 8));
    else
        puts("nccl absent");
    printf("runtime %d\n", cudaMalloc ? (int)cudaMalloc(&p, 4096) : 35);
    printf("driver %d\n", cuMemAlloc_v2 ? (int)cuMemAlloc_v2(&d, 4096) : 100);
    printf("outputs untouched: %d\n", p == (void *)0x1 && d == 1);
    return 0;
}

int main(int argc, char **argv)
{
    void *opened = NULL;

    if (argc > 1 && strcmp(argv[1], "weak") == 0)
        return weak();
    look_everywhere("before", NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        opened = dlopen(argv[i + 1], RTLD_NOW | (strcmp(argv[i], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
        printf("open %s %s\n", argv[i], opened ? "done" : dlerror());
        look_everywhere(argv[i], opened);
    }
    if (opened) {
        dlclose(opened);
        look_everywhere("closed", NULL);
    }
    return 0;
}
