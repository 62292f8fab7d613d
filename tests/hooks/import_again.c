/*
 * import_again.c - memory out of another pool, imported and freed again and again, by every function that
 * frees it.
 *
 * usage: import_again ROUNDS THREADS
 * Prints statuses, the same natively and under memshim for one thread (THREADS 0); the last line says how
 * often an import succeeded.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"

#define BYTES (3u << 20)

static cudaMemPool_t imported;
static struct cudaMemPoolPtrExportData shared;
static atomic_int imports;
static int rounds;

static int open_again(void **p_p)
{
    int status = cudaMemPoolImportPointer(p_p, imported, &shared);

    atomic_fetch_add(&imports, status == cudaSuccess);
    return status;
}

static int export_one(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .handleTypes = cudaMemHandleTypePosixFileDescriptor,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool;
    void *p;
    int fd = -1;

    if (cudaMemPoolCreate(&pool, &props) || cudaMallocFromPoolAsync(&p, BYTES, pool, NULL) ||
        cudaDeviceSynchronize() ||
        cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0) ||
        cudaMemPoolExportPointer(&shared, p) ||
        cudaMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                             cudaMemHandleTypePosixFileDescriptor, 0))
        return 1;
    close(fd);
    return 0;
}

static void one_after_another(void)
{
    void *p = NULL;

    for (int i = 0; i < rounds; i++) {
        printf("import %d\n", open_again(&p));
        printf("free %d\n", i % 2 ? cudaFree(p) : cudaFreeAsync(p, NULL));
        printf("synchronize %d\n", cudaDeviceSynchronize());
    }
    printf("import %d\n", open_again(&p));
    printf("close as if it were a handle %d\n", cudaIpcCloseMemHandle(p) != cudaSuccess);
    printf("free %d\n", cudaFree(p));
    printf("free again %d\n", cudaFree(p));
}

/* Who imports has what another thread has just freed. */
static void *all_at_once(void *unused)
{
    (void)unused;
    for (int i = 0; i < rounds;) {
        void *p;
        if (open_again(&p) == cudaSuccess) {
            cudaFree(p);
            i++;
        } else {
            cudaGetLastError();
            sched_yield();
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[8];
    int count = argc > 2 ? atoi(argv[2]) : 0;

    rounds = argc > 1 ? atoi(argv[1]) : 0;
    if (export_one()) {
        printf("nothing to import\n");
        return 1;
    }
    if (!count)
        one_after_another();
    for (int i = 0; i < count && i < 8; i++)
        pthread_create(&threads[i], NULL, all_at_once, NULL);
    for (int i = 0; i < count && i < 8; i++)
        pthread_join(threads[i], NULL);
    printf("imports %d\n", atomic_load(&imports));
    return 0;
}
