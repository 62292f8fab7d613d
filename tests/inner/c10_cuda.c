/* c10_cuda.c - libc10_cuda.so, see c10.h: each segment is a run of slots, and a piece is a run of them. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "c10.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { SEGMENT = 2 << 20, SLOT = 512, SLOTS = SEGMENT / SLOT, SEGMENTS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment {
    char *at;
    uint16_t length[SLOTS]; /* of the piece that begins there, in slots; 0: none */
    bool used[SLOTS];
} segments[SEGMENTS];
static unsigned count;
static struct caching told;
static int8_t device_type = TYPE_CUDA;

static void tell(int release, void *at, int64_t size, struct device device)
{
    told.calls++;
    told.sum += report_sum(at, size, device);
    if (release == 0) {
        report_1_8(at, size, device);
        return;
    }
    told.sum += told.allocated * 3 + told.reserved * 5;
    if (release == 1)
        report_1_10(at, size, (int64_t)told.allocated, (int64_t)told.reserved, device);
    else
        report_2_0(at, size, told.allocated, told.reserved, device);
}

static void *find(struct segment *segment, unsigned slots)
{
    for (unsigned i = 0, run = 0; i < SLOTS; i++) {
        run = segment->used[i] ? 0 : run + 1;
        if (run < slots)
            continue;
        unsigned first = i + 1 - slots;
        segment->length[first] = (uint16_t)slots;
        for (unsigned k = first; k <= i; k++)
            segment->used[k] = true;
        return segment->at + (size_t)first * SLOT;
    }
    return NULL;
}

void *caching_take(int release, size_t bytes)
{
    const struct device cuda = {TYPE_CUDA, 0};
    unsigned slots = (unsigned)((bytes + SLOT - 1) / SLOT);
    void *piece = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count && !piece; i++)
        piece = find(&segments[i], slots);
    if (!piece && count < SEGMENTS && cudaMalloc((void **)&segments[count].at, SEGMENT) == 0) {
        told.reserved += SEGMENT;
        piece = find(&segments[count++], slots);
    }
    if (piece) {
        told.allocated += (uint64_t)slots * SLOT;
        told.peak = told.allocated > told.peak ? told.allocated : told.peak;
        tell(release, piece, (int64_t)slots * SLOT, cuda);
    }
    pthread_mutex_unlock(&lock);
    return piece;
}

void caching_give(int release, void *piece)
{
    const struct device cuda = {TYPE_CUDA, 0};
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        struct segment *segment = &segments[i];
        if ((char *)piece < segment->at || (char *)piece >= segment->at + SEGMENT)
            continue;
        unsigned first = (unsigned)((size_t)((char *)piece - segment->at) / SLOT);
        unsigned slots = segment->length[first];
        for (unsigned k = first; k < first + slots; k++)
            segment->used[k] = false;
        told.allocated -= (uint64_t)slots * SLOT;
        tell(release, piece, -(int64_t)slots * SLOT, cuda);
    }
    pthread_mutex_unlock(&lock);
}

/* Segments without a piece go back to the vendor. */
static void give_back(void)
{
    for (unsigned i = 0; i < count;) {
        bool used = false;
        for (unsigned k = 0; k < SLOTS; k++)
            used |= segments[i].used[k];
        if (used) {
            i++;
            continue;
        }
        cudaFree(segments[i].at);
        told.reserved -= SEGMENT;
        segments[i] = segments[--count];
    }
}

void caching_device(int8_t type)
{
    device_type = type;
}

void caching_empty(void)
{
    pthread_mutex_lock(&lock);
    give_back();
    pthread_mutex_unlock(&lock);
}

void *caching_take_large(int release, size_t bytes, uint64_t allowed)
{
    const struct device cuda = {device_type, 0};
    void *piece = NULL;
    pthread_mutex_lock(&lock);
    if (told.reserved + bytes <= allowed && cudaMalloc(&piece, bytes) != 0) {
        give_back();
        if (cudaMalloc(&piece, bytes) != 0)
            piece = NULL;
    }
    if (piece) {
        told.reserved += bytes;
        told.allocated += bytes;
        told.peak = told.allocated > told.peak ? told.allocated : told.peak;
        tell(release, piece, (int64_t)bytes, cuda);
    } else {
        told.calls++;
        told.sum += report_sum(NULL, (int64_t)bytes, cuda) + told.allocated * 3 + told.reserved * 5;
        if (release == 1)
            refused_1_13((int64_t)bytes, (int64_t)told.allocated, (int64_t)told.reserved, cuda);
        else
            refused_2_0((int64_t)bytes, told.allocated, told.reserved, cuda);
    }
    pthread_mutex_unlock(&lock);
    return piece;
}

void caching_host(int release, void *at, size_t bytes)
{
    const struct device cpu = {TYPE_CPU, -1};
    pthread_mutex_lock(&lock);
    tell(release, at, (int64_t)bytes, cpu);
    pthread_mutex_unlock(&lock);
}

static void tell_host(void *at, size_t bytes)
{
    const struct device cpu = {TYPE_CPU, -1};
    pthread_mutex_lock(&lock);
    told.calls++;
    told.sum += report_sum(at, (int64_t)bytes, cpu);
    if (bytes)
        host_came(&told, at, bytes);
    else
        host_went(&told, at);
    pthread_mutex_unlock(&lock);
}

void *host_take(size_t bytes)
{
    void *at = malloc(bytes);
    tell_host(at, bytes);
    return at;
}

void host_give(void *at)
{
    tell_host(at, 0);
    free(at);
}

void caching_told(struct caching *told_p)
{
    pthread_mutex_lock(&lock);
    *told_p = told;
    pthread_mutex_unlock(&lock);
}
