/*
 * exceptions.c - a C program, without libgcc_s, opens a C++ module and lets it throw; built with -fexceptions
 * so that a cleanup of its own runs as well. Prints which object holds the unwinder that the module will
 * use. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"

static int cleaned;

static void clean(int *unused)
{
    (void)unused;
    cleaned++;
}

static void *thread_main(void *argument)
{
    int marker __attribute__((cleanup(clean))) = 0;

    (void)argument;
    (void)marker;
    pthread_exit(NULL);
}

static const char *owner_of(const char *symbol)
{
    void *found = dlsym(RTLD_DEFAULT, symbol);
    Dl_info info;
    const char *slash;

    if (!found)
        return "nowhere";
    if (!dladdr(found, &info))
        return "unknown";
    slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

int main(int argc, char **argv)
{
    static const char *const unwinder[] = {"_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Backtrace",
                                           "_Unwind_ForcedUnwind",   "_Unwind_GetIP",  "__register_frame"};
    int (*catches)(int);
    void *handle;
    pthread_t thread;
    CUdeviceptr p = 0;

    cuMemAlloc_v2(&p, 4096); /* a stack is walked before the module comes */
    for (size_t i = 0; i < sizeof(unwinder) / sizeof(unwinder[0]); i++)
        printf("before: %s in %s\n", unwinder[i], owner_of(unwinder[i]));
    handle = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        printf("%s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < sizeof(unwinder) / sizeof(unwinder[0]); i++)
        printf("after: %s in %s\n", unwinder[i], owner_of(unwinder[i]));
    catches = (int (*)(int))dlsym(handle, "module_catches");
    printf("caught %d %d\n", catches(0), catches(12345));
    cuMemAlloc_v2(&p, 4096);
    printf("caught %d\n", catches(7));
    pthread_create(&thread, NULL, thread_main, NULL);
    pthread_join(thread, NULL);
    printf("cleaned %d\n", cleaned);
    return 0;
}
