/* torch_allocator.c - PyTorch's allocators on HIP, by the calls that they make, in a program that is shaped
 * like training: in one thread or several, each with a stream of its own and one beside it.
 *
 * usage: torch_allocator native|async [THREADS]. The sequences are those of c10/cuda/CUDACachingAllocator.cpp
 * and CUDAMallocAsyncAllocator.cpp, which HIP has under its own names.
 *   native  segments of hipMalloc, by sizes and streams: 2 MiB for up to 1 MiB, 20 MiB for up to 10, else the
 *           size in steps of 2 MiB. A block that another stream has used is free behind an event there. Where
 *           there is no memory all events are waited for, and whole free segments go back by hipFree.
 *   async   hipMallocAsync from the device's default pool, with a threshold that keeps everything and the
 *           rules of reuse. A block that other streams have used is freed on a stream that waits for them.
 * Each block's ends are filled, and copied away before it is freed: so memory that was given too early shows.
 * Standard output is the same with and without memshim; standard error has what was reserved at most, and the
 * vendor's calls. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip/figures.h"
#include "vendor/abi/hip_fn.h"

#define MIB ((size_t)1 << 20)
enum { STEPS = 6, LAYERS = 12, MOST_THREADS = 8, END = 64, FILLED = 4096, RESULTS = STEPS * LAYERS * 2 };

static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;

static void must(hipError_t status, const char *what)
{
    if (status == hipSuccess)
        return;
    fprintf(stderr, "%s returned %d\n", what, (int)status);
    exit(1);
}
#define MUST(call) must(call, #call)

/* --- the caching allocator ------------------------------------------------------------------------------ */

struct piece {
    struct piece *before, *after; /* in its segment */
    struct piece *next;           /* of all */
    unsigned char *address;
    size_t bytes;
    hipStream_t stream, used_by; /* used_by: another stream that has used it, or NULL */
    hipEvent_t event;            /* behind that, once it was freed */
    bool is_free, is_small;
};
static struct piece *pieces;

static size_t rounded(size_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

static struct piece *new_piece(struct piece like)
{
    struct piece *piece = malloc(sizeof *piece);

    *piece = like;
    piece->next = pieces;
    pieces = piece;
    return piece;
}

static void drop_piece(struct piece *gone)
{
    struct piece **link = &pieces;

    while (*link != gone)
        link = &(*link)->next;
    *link = gone->next;
    free(gone);
}

static void join(struct piece *piece, struct piece *other)
{
    if (!other || !other->is_free)
        return;
    if (other == piece->before) {
        piece->address = other->address;
        piece->before = other->before;
        if (piece->before)
            piece->before->after = piece;
    } else {
        piece->after = other->after;
        if (piece->after)
            piece->after->before = piece;
    }
    piece->bytes += other->bytes;
    drop_piece(other);
}

static void is_over(struct piece *piece)
{
    join(piece, piece->before);
    join(piece, piece->after);
    piece->is_free = true;
}

/* Looks at the events, as each request does; or waits for them. */
static void process_events(bool wait)
{
    for (struct piece *piece = pieces, *next; piece; piece = next) {
        next = piece->next;
        if (!piece->event)
            continue;
        if (wait)
            MUST(hipEventSynchronize(piece->event));
        else if (hipEventQuery(piece->event) != hipSuccess)
            continue;
        MUST(hipEventDestroy(piece->event));
        piece->event = NULL;
        is_over(piece);
        next = pieces; /* neighbours have gone */
    }
    hipGetLastError(); /* not ready is no error */
}

static void empty_cache(void)
{
    process_events(true);
    for (struct piece *piece = pieces, *next; piece; piece = next) {
        next = piece->next;
        if (!piece->is_free || piece->before || piece->after)
            continue;
        MUST(hipFree(piece->address));
        drop_piece(piece);
    }
}

static struct piece *best_fit(size_t bytes, bool is_small, hipStream_t stream)
{
    struct piece *best = NULL;

    for (struct piece *piece = pieces; piece; piece = piece->next)
        if (piece->is_free && piece->is_small == is_small && piece->stream == stream &&
            piece->bytes >= bytes && (!best || piece->bytes < best->bytes))
            best = piece;
    return best;
}

static struct piece *new_segment(size_t bytes, bool is_small, hipStream_t stream)
{
    size_t segment = is_small           ? 2 * MIB
                     : bytes < 10 * MIB ? 20 * MIB
                                        : (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    void *address;

    if (hipMalloc(&address, segment) != hipSuccess) {
        hipGetLastError();
        empty_cache();
        MUST(hipMalloc(&address, segment));
    }
    return new_piece((struct piece){
        .address = address, .bytes = segment, .stream = stream, .is_free = true, .is_small = is_small});
}

static struct piece *native_malloc(size_t bytes, hipStream_t stream)
{
    bool is_small = (bytes = rounded(bytes)) <= MIB;
    struct piece *piece;

    process_events(false);
    piece = best_fit(bytes, is_small, stream);
    if (!piece)
        piece = new_segment(bytes, is_small, stream);
    if (is_small ? piece->bytes - bytes >= 512 : piece->bytes - bytes > MIB) {
        struct piece *rest = new_piece(*piece);
        rest->address += bytes;
        rest->bytes -= bytes;
        rest->before = piece;
        if (rest->after)
            rest->after->before = rest;
        piece->after = rest;
        piece->bytes = bytes;
    }
    piece->is_free = false;
    piece->used_by = NULL;
    return piece;
}

static void native_free(struct piece *piece)
{
    if (!piece->used_by) {
        is_over(piece);
        return;
    }
    MUST(hipEventCreateWithFlags(&piece->event, hipEventDisableTiming));
    MUST(hipEventRecord(piece->event, piece->used_by));
}

/* --- the allocator over the driver's pool ----------------------------------------------------------------
 */

static hipStream_t unifying;
static hipMemPool_t pool;

static void async_init(void)
{
    uint64_t threshold = UINT64_MAX;
    int enable = 1;

    MUST(hipDeviceGetDefaultMemPool(&pool, 0));
    MUST(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
    MUST(hipMemPoolSetAttribute(pool, hipMemPoolReuseFollowEventDependencies, &enable));
    MUST(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &enable));
    MUST(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowInternalDependencies, &enable));
    MUST(hipStreamCreateWithFlags(&unifying, hipStreamNonBlocking));
}

static struct piece *async_malloc(size_t bytes, hipStream_t stream)
{
    void *address;

    MUST(hipGetLastError());
    MUST(hipMallocAsync(&address, bytes, stream));
    return new_piece((struct piece){.address = address, .bytes = bytes, .stream = stream});
}

static void wait_there(hipStream_t dependency, hipStream_t dependent)
{
    hipEvent_t event;

    MUST(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    MUST(hipEventRecord(event, dependency));
    MUST(hipStreamWaitEvent(dependent, event, 0));
    MUST(hipEventDestroy(event));
}

static void async_free(struct piece *piece)
{
    if (piece->used_by) {
        wait_there(piece->stream, unifying);
        wait_there(piece->used_by, unifying);
        MUST(hipFreeAsync(piece->address, unifying));
    } else {
        MUST(hipFreeAsync(piece->address, piece->stream));
    }
    drop_piece(piece);
}

static void async_empty_cache(void)
{
    uint64_t reserved;

    MUST(hipDeviceSynchronize());
    MUST(hipMemPoolTrimTo(pool, 0));
    MUST(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &reserved));
}

static const struct backend {
    const char *name;
    void (*init)(void);
    struct piece *(*malloc)(size_t, hipStream_t);
    void (*free)(struct piece *);
    void (*empty_cache)(void);
} backends[] = {{"native", NULL, native_malloc, native_free, empty_cache},
                {"async", async_init, async_malloc, async_free, async_empty_cache}};
static const struct backend *backend = backends;

/* --- training ------------------------------------------------------------------------------------------- */

static pthread_barrier_t turn;

struct trainer {
    pthread_t thread;
    unsigned number, wrong, results_count;
    unsigned char *results; /* on the device */
    unsigned char wanted[RESULTS];
};

static struct piece *take(size_t bytes, hipStream_t stream)
{
    pthread_mutex_lock(&allocator);
    struct piece *piece = backend->malloc(bytes, stream);
    pthread_mutex_unlock(&allocator);
    return piece;
}

static void give(struct piece *piece)
{
    pthread_mutex_lock(&allocator);
    backend->free(piece);
    pthread_mutex_unlock(&allocator);
}

static unsigned char mark_of(const struct trainer *t, unsigned step, unsigned layer)
{
    return (unsigned char)(1 + t->number * 31 + step * 13 + layer);
}

static void fill(const struct piece *piece, size_t bytes, int value, hipStream_t stream)
{
    size_t part = bytes < FILLED ? bytes : FILLED;

    MUST(hipMemsetAsync(piece->address, value, part, stream));
    MUST(hipMemsetAsync(piece->address + bytes - part, value, part, stream));
}

static void keep_result(struct trainer *t, const struct piece *piece, size_t bytes, unsigned char wanted,
                        hipStream_t stream)
{
    t->wanted[t->results_count] = wanted;
    MUST(hipMemcpyAsync(t->results + t->results_count++ * END, piece->address + bytes - END, END,
                        hipMemcpyDeviceToDevice, stream));
}

static size_t bytes_of(unsigned step, unsigned layer)
{
    static const size_t sizes[] = {512, 40 << 10, 300 << 10, 1 << 20, 3 << 20, 6 << 20, 11 << 20, 17 << 20};
    size_t bytes = sizes[layer % 8];

    return bytes + bytes / 16 * (step % 3) / 64 * 64;
}

/* Activations forwards; backwards gradients, which the stream beside has for a while, as one that reduces
 * them among ranks does. All are at the turn together, and nobody is further ahead of the device than a
 * layer, so that what is reserved at most depends on neither. */
static void train(struct trainer *t, unsigned step, hipStream_t stream, hipStream_t beside)
{
    struct piece *activations[LAYERS], *gradient;

    for (unsigned layer = 0; layer < LAYERS; layer++) {
        activations[layer] = take(bytes_of(step, layer), stream);
        fill(activations[layer], bytes_of(step, layer), mark_of(t, step, layer), stream);
    }
    pthread_barrier_wait(&turn);
    for (unsigned layer = LAYERS; layer-- > 0;) {
        size_t bytes = bytes_of(step, layer);
        gradient = take(bytes, stream);
        fill(gradient, bytes, 255 - mark_of(t, step, layer), stream);
        wait_there(stream, beside);
        keep_result(t, gradient, bytes, (unsigned char)(255 - mark_of(t, step, layer)), beside);
        gradient->used_by = beside; /* record_stream */
        keep_result(t, activations[layer], bytes, mark_of(t, step, layer), stream);
        give(activations[layer]);
        give(gradient);
        MUST(hipStreamSynchronize(beside));
    }
}

static void judge(struct trainer *t)
{
    static unsigned char read[MOST_THREADS][RESULTS * END];

    MUST(hipMemcpy(read[t->number], t->results, RESULTS * END, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < t->results_count * END; i++)
        t->wrong += read[t->number][i] != t->wanted[i / END];
}

static void *trainer(void *arg)
{
    struct trainer *t = arg;
    hipStream_t stream, beside;

    MUST(hipSetDevice(0));
    MUST(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    MUST(hipStreamCreateWithFlags(&beside, hipStreamNonBlocking));
    for (unsigned step = 0; step < STEPS; step++) {
        train(t, step, stream, beside);
        if (step % 2) /* the loss is read */
            MUST(hipStreamSynchronize(stream));
    }
    MUST(hipStreamSynchronize(stream));
    MUST(hipStreamSynchronize(beside));
    judge(t);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct trainer trainers[MOST_THREADS];
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1, wrong = 0;

    for (unsigned i = 0; i < 2 && argc > 1; i++)
        backend = strcmp(backends[i].name, argv[1]) ? backend : &backends[i];
    if (argc < 2 || strcmp(backend->name, argv[1]) || count < 1 || count > MOST_THREADS)
        return 2;
    MUST(hipSetDevice(0));
    pthread_barrier_init(&turn, NULL, count);
    if (backend->init)
        backend->init();
    for (unsigned i = 0; i < count; i++) {
        trainers[i].number = i;
        MUST(hipMalloc((void **)&trainers[i].results, RESULTS * END));
        pthread_create(&trainers[i].thread, NULL, trainer, &trainers[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(trainers[i].thread, NULL);
        printf("trainer %u: %u results, %u wrong bytes\n", i, trainers[i].results_count, trainers[i].wrong);
        wrong += trainers[i].wrong;
    }
    backend->empty_cache();
    for (unsigned i = 0; i < count; i++)
        MUST(hipFree(trainers[i].results));
    printf("the last error %d\n", hipGetLastError());
    say_figures();
    return wrong != 0;
}
