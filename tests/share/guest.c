/*
 * guest.c - a process on a device that does as it is told line by line, and says what came of it: for
 * neighbours.py. "a N KIND MIB" asks for block N and says the status, "f N" frees it, "m" says what
 * cudaMemGetInfo says in MiB, "w" works for a while with small blocks that come and go, "p N" does so in N
 * threads, "t N KIND MIB" has as many threads ask for a block each at the same moment and says how many got
 * one, and "k" makes a child of fork that lives on. "r SEED KEPT FILE" takes and frees blocks of every kind
 * at random, with others, until the tally in the file has all its operations; KEPT MiB are its guarantee.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)
enum { BLOCKS = 16, TURNS = 40, TURN_US = 1000 };

static struct block {
    char kind;
    void *address;
    CUmemGenericAllocationHandle handle;
    CUarray array;
} blocks[BLOCKS];

static int array_create(CUarray *array_p, size_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR about;

    memset(&about, 0, sizeof about);
    about.Width = 1024;
    about.Height = bytes / 4096;
    about.Format = CU_AD_FORMAT_FLOAT;
    about.NumChannels = 1;
    return (int)cuArray3DCreate_v2(array_p, &about);
}

static int handle_create(CUmemGenericAllocationHandle *handle_p, size_t bytes)
{
    CUmemAllocationProp about;

    memset(&about, 0, sizeof about);
    about.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    about.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return (int)cuMemCreate(handle_p, bytes, &about, 0);
}

static int block_alloc(struct block *block, char kind, size_t bytes)
{
    int status;

    block->kind = kind;
    switch (kind) {
    case 'h':
        return handle_create(&block->handle, bytes);
    case 'r':
        return array_create(&block->array, bytes);
    case 'm':
        status = (int)cudaMallocManaged(&block->address, bytes, 1);
        break;
    case 's':
        status = (int)cudaMallocAsync(&block->address, bytes, NULL);
        break;
    default:
        status = (int)cudaMalloc(&block->address, bytes);
    }
    cudaGetLastError();
    return status;
}

static int block_free(const struct block *block)
{
    if (block->kind == 'h')
        return (int)cuMemRelease(block->handle);
    if (block->kind == 'r')
        return (int)cuArrayDestroy(block->array);
    return block->kind == 's' ? (int)cudaFreeAsync(block->address, NULL) : (int)cudaFree(block->address);
}

static int work(void)
{
    int wrong = 0;

    for (int i = 0; i < TURNS; i++) {
        void *small = NULL;
        usleep(TURN_US);
        wrong += cudaMalloc(&small, 256) != cudaSuccess || cudaFree(small) != cudaSuccess;
    }
    return wrong;
}

/* --- threads --- */

static pthread_barrier_t barrier;
static _Atomic int wrong, got;
static char asked_kind;
static size_t asked_bytes;

static void *work_beside(void *arg)
{
    (void)arg;
    wrong += work();
    return NULL;
}

static void *ask_at_once(void *arg)
{
    pthread_barrier_wait(&barrier);
    got += block_alloc(arg, asked_kind, asked_bytes) == 0;
    return NULL;
}

static int in_threads(unsigned count, void *(*function)(void *))
{
    pthread_t threads[BLOCKS];

    count = count < BLOCKS ? count : BLOCKS;
    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, function, &blocks[i]);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return function == ask_at_once ? got : wrong;
}

/* --- many processes at random --- */

/* In memory of all of them: neighbours.py has its form. */
struct tally {
    _Atomic uint64_t wanted, done, wrong; /* operations; frees that were refused */
    struct {
        _Atomic uint64_t granted, refused, refused_within;
    } kinds[5];
};

/* Its context and the like; and by how much the pool, or the driver's, may have more for a block. */
enum { LARGEST_MIB = 100, SMALL_OF = 4, BESIDE_MIB = 64, UNIT_MIB = 32 };
static const char kinds[] = "dsmhr";

static struct tally *tally_map(const char *path)
{
    int fd = open(path, O_RDWR);
    struct tally *tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    close(fd);
    return tally == MAP_FAILED ? NULL : tally;
}

/* Whole granules: what the vendor adds to others is not known before it was asked. */
static unsigned whole(unsigned mib)
{
    return (mib + 1) / 2 * 2;
}

/* MiB that this may take of the device with another block of so many. */
static unsigned may_take(const unsigned *held, unsigned mib)
{
    unsigned sum = mib + UNIT_MIB + BESIDE_MIB;

    for (unsigned i = 0; i < BLOCKS; i++)
        sum += held[i] ? held[i] + (blocks[i].kind == 'd' || blocks[i].kind == 's' ? UNIT_MIB : 0) : 0;
    return sum;
}

static void at_random(struct tally *tally, unsigned kept)
{
    unsigned held[BLOCKS] = {0};

    cudaFree(NULL); /* arrays and handles want a context */
    while (atomic_fetch_add(&tally->done, 1) < tally->wanted) {
        unsigned at = (unsigned)random() % BLOCKS, kind = (unsigned)random() % 8;
        unsigned mib = whole(random() % SMALL_OF == 0 ? 1 : 1 + (unsigned)random() % LARGEST_MIB);
        int status;
        kind = kind < sizeof kinds - 1 ? kind : kind - 3; /* fewer of the pool's */
        if (held[at]) {
            tally->wrong += block_free(&blocks[at]) != 0;
            held[at] = 0;
            continue;
        }
        status = block_alloc(&blocks[at], kinds[kind], mib * MIB);
        tally->wrong += status != 0 && status != CUDA_ERROR_OUT_OF_MEMORY;
        if (status == 0) {
            tally->kinds[kind].granted++;
            held[at] = mib;
        } else {
            tally->kinds[kind].refused++;
            tally->kinds[kind].refused_within += may_take(held, mib) <= kept;
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        tally->wrong += held[i] && block_free(&blocks[i]) != 0;
}

static void tell_memory(void)
{
    size_t left = 0, total = 0;
    int status = (int)cudaMemGetInfo(&left, &total);

    printf("%d %zu %zu\n", status, left / MIB, total / MIB);
}

int main(void)
{
    char line[400], path[300], kind;
    unsigned n, mib;
    struct tally *tally;

    setvbuf(stdout, NULL, _IOLBF, 0);
    cuInit(0); /* for handles, of which a program may make some before it has a context */
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "a %u %c %u", &n, &kind, &mib) == 3 && n < BLOCKS)
            printf("%d\n", block_alloc(&blocks[n], kind, mib * MIB));
        else if (sscanf(line, "f %u", &n) == 1 && n < BLOCKS)
            printf("%d\n", block_free(&blocks[n]));
        else if (sscanf(line, "p %u", &n) == 1)
            printf("%d\n", in_threads(n, work_beside));
        else if (sscanf(line, "t %u %c %u", &n, &asked_kind, &mib) == 3 && (asked_bytes = mib * MIB) > 0)
            printf("%d\n", in_threads(n, ask_at_once));
        else if (sscanf(line, "r %u %u %299s", &n, &mib, path) == 3 && (tally = tally_map(path)) != NULL) {
            srandom(n);
            at_random(tally, mib);
            printf("0\n");
        } else if (*line == 'm')
            tell_memory();
        else if (*line == 'w')
            printf("%d\n", work());
        else if (*line == 'k' && fork() == 0)
            for (;;)
                pause();
        else
            printf("0\n");
    }
    return 0;
}
