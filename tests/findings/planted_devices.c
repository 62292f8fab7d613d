/* planted_devices.c - programs whose libraries take memory late, or that touch a device by mistake.
 *
 * See planted.h. */
#include "planted.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what libraries take late -----------------------------------------------------------------------------
 */

__attribute__((noinline)) static void *fill_device(void)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, 512 * MIB));
    __asm__ volatile("" : "+r"(p)); /* no tail call */
    return p;
}

extern cublasStatus_t cublasCreate_v2(struct cublasContext **);
extern cublasStatus_t cublasDestroy_v2(struct cublasContext *);

/* The line that has to be told is that of fill_device. */
SCENE late_cublas(bool clean)
{
    struct cublasContext *handle = NULL;
    void *p = clean ? NULL : fill_device();

    MUST(cudaFree(NULL));
    MUST(cublasCreate_v2(&handle));
    if (clean)
        p = fill_device();
    MUST(cublasDestroy_v2(handle));
    MUST(cudaFree(p));
}

/* --- what touches a device that is not meant ---------------------------------------------------------------
 */

/* The second device is the program's, and it says so too late. */
SCENE pinned_elsewhere(bool clean)
{
    void *pinned = NULL, *p = NULL;

    if (clean)
        MUST(cudaSetDevice(1));
    MUST(cudaMallocHost(&pinned, 64 * KIB));
    MUST(cudaSetDevice(1));
    MUST(cudaMalloc(&p, 3 * MIB));
    MUST(cudaFree(p));
    MUST(cudaFreeHost(pinned));
}

/* Asks how much is free on each device, and works on the first; or on both. */
SCENE asked_everywhere(bool clean)
{
    size_t left, total;
    void *p = NULL;

    for (int i = 0; i < 2; i++) {
        MUST(cudaSetDevice(1 - i));
        MUST(cudaMemGetInfo(&left, &total));
        if (clean || i == 1) {
            MUST(cudaMalloc(&p, 3 * MIB));
            MUST(cudaFree(p));
        }
    }
}

/* A context of one's own, from which nothing is ever asked; or modules are loaded into it. */
SCENE context_elsewhere(bool clean)
{
    static const char image[] = ".version 8.0\n.target sm_90\n";
    CUcontext context;
    CUmodule module;
    void *p = NULL;

    MUST(cudaMalloc(&p, 3 * MIB));
    MUST(cuCtxCreate_v2(&context, 0, 1));
    if (clean)
        MUST(cuModuleLoadData(&module, image));
    MUST(cudaSetDevice(0));
    MUST(cudaFree(p));
}

/* --- what is forked with the device in use ----------------------------------------------------------------
 */

/* Three times, as a worker does that tries again. */
__attribute__((noinline)) static int call_in_child(void)
{
    void *p = NULL;
    int status = 0;

    for (int i = 0; i < 3; i++) {
        status = cudaMalloc(&p, MIB);
        if (!status)
            MUST(cudaFree(p));
    }
    return status;
}

/* The report is the child's: its parent leaves without one. */
SCENE forked_with_gpu(bool clean)
{
    void *p = NULL;
    int ended = 0;
    pid_t child;

    if (!clean)
        MUST(cudaMalloc(&p, MIB));
    child = fork();
    if (!child)
        exit((call_in_child() == cudaErrorInitializationError) == !clean ? 0 : 3);
    if (clean)
        MUST(cudaMalloc(&p, MIB));
    MUST(cudaFree(p));
    _exit(child < 0 || waitpid(child, &ended, 0) != child || ended ? 3 : 0);
}
