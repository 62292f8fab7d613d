/*
 * consistent.c - a program that goes on whatever the driver refuses, and knows what its memory must hold.
 *
 * Prints one line per call that was refused, how often each interface was called and refused, how many blocks
 * did not hold what was written, and the bytes that it still holds: faults.py makes the driver refuse one
 * call after another. Nothing that was refused is used. Nothing here knows of memshim.
 */
#include "tell.h"

#define BLOCKS 48

static struct block {
    void *p;
    size_t bytes;
    int value;
} blocks[BLOCKS];

static size_t size_of(int i)
{
    static const size_t sizes[] = {600, 4096, 70000, MIB, 3 * MIB, 5 * MIB + 11, 18 * MIB, 40 * MIB};

    return sizes[(i + round_number) % 8];
}

static void allocate(int i, cudaStream_t stream)
{
    struct block *b = &blocks[i];
    size_t bytes = size_of(i), pitch = 0;
    void *p = NULL;

    if (i % 16 == 5) {
        if (!done("cudaMallocPitch", cudaMallocPitch(&p, &pitch, 1000, 20)))
            return;
        bytes = pitch * 20;
    } else if (i % 16 == 9) {
        CUdeviceptr q = 0;

        if (!done("cuMemAlloc_v2", cuMemAlloc_v2(&q, bytes)))
            return;
        p = (void *)(uintptr_t)q;
    } else if (!done("cudaMalloc", cudaMalloc(&p, bytes))) {
        return;
    }
    *b = (struct block){p, bytes, (i * 5 + round_number) & 0xff};
    live += bytes;
    for (int k = 0; k < BLOCKS; k++) /* nobody else has this place */
        if (k != i && blocks[k].p && (char *)p < (char *)blocks[k].p + blocks[k].bytes &&
            (char *)blocks[k].p < (char *)p + bytes) {
            printf("round %d: blocks overlap\n", round_number);
            wrong++;
        }
    if (!other("cudaMemsetAsync", cudaMemsetAsync(p, b->value, bytes < 4096 ? bytes : 4096, stream)))
        b->value = -1;
}

static void check(struct block *b)
{
    unsigned char seen[600];

    if (b->value < 0)
        return;
    if (!other("cudaMemcpy", cudaMemcpy(seen, b->p, sizeof seen, cudaMemcpyDeviceToHost)))
        return;
    for (size_t i = 0; i < sizeof seen; i++)
        if (seen[i] != b->value) {
            printf("round %d: a block of %zu bytes holds %d instead of %d\n", round_number, b->bytes, seen[i],
                   b->value);
            wrong++;
            return;
        }
}

static void release(int i)
{
    struct block *b = &blocks[i];
    bool freed =
        i % 16 == 9 ? done("cuMemFree_v2", cuMemFree_v2((uintptr_t)b->p)) : done("cudaFree", cudaFree(b->p));

    if (freed)
        live -= b->bytes;
    b->p = NULL; /* one that was refused is lost: it stays live */
}

static void one_round(cudaStream_t stream)
{
    size_t available = 0, total = 0;

    for (int i = 0; i < BLOCKS; i++)
        if (!blocks[i].p)
            allocate(i, stream);
    other("cudaStreamSynchronize", cudaStreamSynchronize(stream));
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].p)
            check(&blocks[i]);
    for (int i = round_number % 3; i < BLOCKS; i += 2)
        if (blocks[i].p)
            release(i);
    other("cudaMemGetInfo", cudaMemGetInfo(&available, &total));
    if (round_number % 2)
        other("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

int main(void)
{
    cudaStream_t stream = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0);
    other("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (round_number = 0; round_number < 5; round_number++)
        one_round(stream);
    return tell();
}
