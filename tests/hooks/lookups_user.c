/*
 * lookups_user.c - a program that opens the runtime by name with RTLD_LOCAL and finds everything by dlsym and
 * dlvsym, and asks for driver functions through the runtime and through cuGetProcAddress itself. Prints
 * statuses and whether what it was given works; the same natively and under memshim.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vendor/abi/cuda_runtime.h"

typedef int (*malloc_fn)(void **, size_t);
typedef int (*free_fn)(void *);
typedef int (*entry_fn)(const char *, void **, unsigned long long, int *);
typedef int (*proc_fn)(const char *, void **, int, unsigned long long, int *);
typedef int (*proc_v1_fn)(const char *, void **, int, unsigned long long);
typedef int (*mem_alloc_fn)(CUdeviceptr *, size_t);
typedef int (*mem_free_fn)(CUdeviceptr);

static void use(const char *how, void *alloc, void *release)
{
    void *p = NULL;
    int status = alloc ? ((malloc_fn)alloc)(&p, 4096) : -1;

    printf("%s: alloc %d, free %d\n", how, status, release ? ((free_fn)release)(p) : -1);
}

static void *ask(proc_fn proc, const char *name, int version, unsigned long long flags)
{
    void *found = NULL;
    int symbol_status = -1, status = proc(name, &found, version, flags, &symbol_status);
    void *silent = NULL;
    int again = proc(name, &silent, version, flags, NULL);

    printf("ask %s %d %llu: %d %d %s, without status %d, %s\n", name, version, flags, status, symbol_status,
           found ? "found" : "none", again, silent == found ? "same" : "another");
    return found;
}

static void ask_driver(void *driver)
{
    proc_fn proc = (proc_fn)dlsym(driver, "cuGetProcAddress_v2");
    proc_v1_fn old = NULL;
    void *alloc, *release;
    CUdeviceptr p = 0;

    if (!proc)
        return;
    ask(proc, "", 0, 0);
    ask(proc, "cuNoSuchFunction", 12000, 0);
    ask(proc, "cuMemAlloc", 1000, 0);
    ask(proc, "cuMemAlloc", 99000, 0);
    ask(proc, "cuMemAlloc_v2", 12000, 0);
    ask(proc, "cuMemAlloc", 2000, 0);
    ask(proc, "cuMemAllocAsync", 11020, 1);
    ask(proc, "cuMemAllocAsync", 11020, 2);
    ask(proc, "cuMemAllocAsync", 11020, 3);
    alloc = ask(proc, "cuMemAlloc", 12000, 0);
    release = ask(proc, "cuMemFree", 12000, 2);
    printf("through it: %d", alloc ? ((mem_alloc_fn)alloc)(&p, 8192) : -1);
    printf(" %d\n", release ? ((mem_free_fn)release)(p) : -1);
    proc = (proc_fn)ask(proc, "cuGetProcAddress", 12000, 0);
    alloc = proc ? ask(proc, "cuMemAlloc", 12000, 0) : NULL;
    printf("through itself: %d\n", alloc ? ((mem_alloc_fn)alloc)(&p, 8192) : -1);
    if (proc)
        old = (proc_v1_fn)ask(proc, "cuGetProcAddress", 11030, 0);
    alloc = NULL;
    printf("old form: %d", old ? old("cuMemAlloc", &alloc, 12000, 0) : -1);
    printf(" %d\n", alloc ? ((mem_alloc_fn)alloc)(&p, 8192) : -1);
}

int main(int argc, char **argv)
{
    const char *runtime_name = argc > 1 ? argv[1] : "libcudart.so.13";
    void *runtime = dlopen(runtime_name, RTLD_NOW | RTLD_LOCAL), *driver;
    entry_fn entry;
    void *alloc = NULL;
    int result = -1;
    CUdeviceptr p = 0;

    if (!runtime) {
        printf("%s\n", dlerror());
        return 1;
    }
    use("dlsym", dlsym(runtime, "cudaMalloc"), dlsym(runtime, "cudaFree"));
    use("dlvsym", dlvsym(runtime, "cudaMalloc", runtime_name), dlvsym(runtime, "cudaFree", runtime_name));
    printf("wrong version: %s\n", dlvsym(runtime, "cudaMalloc", "libcudart.so.1") ? "found"
                                  : dlerror()                                     ? "error"
                                                                                  : "silent");
    printf("no such name: %s\n", dlsym(runtime, "cudaNoSuch") ? "found" : dlerror() ? "error" : "silent");
    printf("twice the same: %d\n", dlsym(runtime, "cudaMalloc") == dlsym(runtime, "cudaMalloc"));
    entry = (entry_fn)dlsym(runtime, "cudaGetDriverEntryPoint");
    printf("entry point: %d", entry ? entry("cuMemAlloc", &alloc, 0, &result) : -1);
    printf(" %d %d\n", result, alloc ? ((mem_alloc_fn)alloc)(&p, 8192) : -1);
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver)
        ask_driver(driver);
    return 0;
}
