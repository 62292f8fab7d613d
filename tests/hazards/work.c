/*
 * work.c - late work, and what it must find. Called by workers, and by the streams' host functions.
 */
#include "hazards.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

atomic_ulong wrong_blocks, wrong_copies, wrong_statuses, late_checks, refused;
atomic_bool stopping;

/** xorshift: the same seed gives the same requests. */
uint32_t pick(struct worker *worker, uint32_t below)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return (uint32_t)(worker->random >> 32) % below;
}

static void found(atomic_ulong *count, const char *format, unsigned long a, unsigned long b, unsigned long c)
{
    if (atomic_fetch_add(count, 1) < 3) {
        char line[200];

        snprintf(line, sizeof line, format, a, b, c);
        printf("# %s\n", line);
        fflush(stdout);
    }
    if (settings.stop)
        atomic_store(&stopping, true);
}

/** Every call here must succeed, but for want of memory where that is scarce. */
bool worked(int status, const char *what)
{
    if (status == 0)
        return true;
    if (settings.scarce && status == cudaErrorMemoryAllocation) {
        atomic_fetch_add(&refused, 1);
        return false;
    }
    if (atomic_fetch_add(&wrong_statuses, 1) < 5) {
        printf("# %s: status %d\n", what, status);
        fflush(stdout);
    }
    if (settings.stop || atomic_load(&wrong_statuses) > 100)
        atomic_store(&stopping, true);
    return false;
}

void use_device(struct worker *worker, int device)
{
    if (worker->device != device && worked(cudaSetDevice(device), "cudaSetDevice"))
        worker->device = device;
}

/* Streams that all workers share: they have one at a time, whoever gives the work, and seldom another beside
 * it. */
static atomic_uint_least64_t turns;
static cudaStream_t shared[MAX_DEVICES][STREAMS];
static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

static enum stream_kind solo_stream(struct worker *worker)
{
    uint64_t turn = atomic_fetch_add(&turns, 1);

    return (enum stream_kind)((turn / 400 + (pick(worker, 150) == 0)) % PER_THREAD);
}

static cudaStream_t shared_stream(int device, enum stream_kind kind)
{
    cudaStream_t *stream = &shared[device][kind];

    pthread_mutex_lock(&sharing);
    if (kind != LEGACY && !*stream)
        worked(cudaStreamCreateWithFlags(stream, kind == BLOCKING ? 0 : cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
    pthread_mutex_unlock(&sharing);
    return *stream;
}

struct phase {
    uint8_t first, count; /* of the kinds of streams */
};

/** A stream for what comes next. For a while workers keep to some kinds, so that no other kind's work hides
 * what these do. */
enum stream_kind pick_stream(struct worker *worker)
{
    static const struct phase of_all[] = {{LEGACY, MORE}, {NONBLOCKING, 2}, {PER_THREAD, 1},
                                          {BLOCKING, 1},  {NONBLOCKING, 3}, {LEGACY, 2}};
    static const struct phase ordered[] = {{LEGACY, STREAMS}, {MORE, 6},      {MORE, 2}, {NONBLOCKING, 9},
                                           {PER_THREAD, 3},   {LEGACY, MORE}, {MORE, 6}, {NONBLOCKING, 2}};
    uint64_t turn = worker->operations / PHASE;

    if (settings.solo)
        return solo_stream(worker);
    const struct phase phase = settings.streams ? ordered[turn % (sizeof ordered / sizeof ordered[0])]
                                                : of_all[turn % (sizeof of_all / sizeof of_all[0])];
    return (enum stream_kind)(phase.first + pick(worker, phase.count));
}

/** Made when it is first asked for; its device is current afterwards. */
cudaStream_t stream_of(struct worker *worker, int device, enum stream_kind kind)
{
    cudaStream_t *stream = &worker->streams[device][kind];

    use_device(worker, device);
    if (kind == PER_THREAD)
        return cudaStreamPerThread;
    if (settings.solo)
        return shared_stream(device, kind);
    if (kind != LEGACY && !*stream) {
        worker->streams_made++;
        worked(cudaStreamCreateWithFlags(stream, kind == BLOCKING ? 0 : cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
    }
    return *stream;
}

static void sleep_us(void *argument)
{
    long us = (long)(intptr_t)argument;
    struct timespec rest = {0, us * 1000};

    nanosleep(&rest, NULL);
}

/** What is queued on the stream from here on is late by up to `most_us`. */
void delay(struct worker *worker, cudaStream_t stream, uint32_t most_us)
{
    worked(cudaLaunchHostFunc(stream, sleep_us, (void *)(intptr_t)(pick(worker, most_us) + 20)),
           "cudaLaunchHostFunc");
}

static uint32_t words_of(size_t bytes)
{
    return bytes / 4 < WORDS ? (uint32_t)(bytes / 4) : WORDS;
}

/** Both ends of the block. */
void write_tag(const struct block *block, cudaStream_t stream)
{
    uint32_t words = words_of(block->bytes);

    worked(cuMemsetD32Async(block->address, block->tag, words, stream), "cuMemsetD32Async");
    if (block->bytes / 4 > 2 * WORDS)
        worked(cuMemsetD32Async(block->address + block->bytes / 4 * 4 - words * 4, block->tag, words, stream),
               "cuMemsetD32Async");
}

static void copy_words(uint64_t to, uint64_t from, uint32_t words, cudaStream_t stream)
{
    worked(cudaMemcpyAsync((void *)(uintptr_t)to, (void *)(uintptr_t)from, words * 4,
                           cudaMemcpyDeviceToDevice, stream),
           "cudaMemcpyAsync");
}

void copy_tag(const struct block *from, const struct block *to, cudaStream_t stream)
{
    uint32_t words = words_of(to->bytes);
    size_t end = to->bytes / 4 * 4 - words * 4;

    copy_words(to->address, from->address, words, stream);
    if (to->bytes / 4 > 2 * WORDS)
        copy_words(to->address + end, from->address + end, words, stream);
}

/* The first word that is not the tag; `words` if there is none. */
static uint32_t first_other(const uint32_t *seen, uint32_t words, uint32_t tag)
{
    uint32_t i = 0;

    while (i < words && seen[i] == tag)
        i++;
    return i;
}

static void check_end(struct worker *worker, const struct block *block, uint64_t address, cudaStream_t stream)
{
    uint32_t words = words_of(block->bytes), at;

    memset(worker->seen, 0xff, words * 4);
    if (!worked(cudaMemcpyAsync(worker->seen, (void *)(uintptr_t)address, words * 4, cudaMemcpyDeviceToHost,
                                stream),
                "cudaMemcpyAsync"))
        return;
    if (!worked(RELAXED(cudaStreamSynchronize(stream)), "cudaStreamSynchronize"))
        return;
    at = first_other(worker->seen, words, block->tag);
    worker->checks++;
    if (at < words)
        found(&wrong_blocks, "a block of %lu bytes with tag %lx holds %lx", block->bytes, block->tag,
              worker->seen[at]);
}

/** A live block holds its tag. Waits for its stream. */
void check_block(struct worker *worker, const struct block *block)
{
    cudaStream_t stream = stream_of(worker, block->device, block->stream);

    check_end(worker, block, block->address, stream);
    if (block->bytes / 4 > 2 * WORDS && pick(worker, 2))
        check_end(worker, block, block->address + block->bytes / 4 * 4 - WORDS * 4, stream);
}

/* In stream order, right behind the copy; the block may have been freed long ago. */
static void look_at_copy(void *argument)
{
    struct late *late = argument;
    uint32_t at = first_other(late->copy, late->words, late->tag);

    atomic_fetch_add(&late_checks, 1);
    if (at < late->words)
        found(&wrong_copies, "a late copy from a block of %lu bytes with tag %lx holds %lx", late->bytes,
              late->tag, late->copy[at]);
    atomic_store(&late->busy, false);
}

/** A copy out of the block, looked at when it is done. */
void queue_late_copy(struct worker *worker, const struct block *block, cudaStream_t stream)
{
    for (int i = 0; i < LATES; i++) {
        struct late *late = &worker->lates[i];

        if (atomic_load(&late->busy))
            continue;
        late->worker = worker;
        late->tag = block->tag;
        late->words = words_of(block->bytes);
        late->bytes = block->bytes;
        atomic_store(&late->busy, true);
        if (!worked(cudaMemcpyAsync(late->copy, (void *)(uintptr_t)block->address, late->words * 4,
                                    cudaMemcpyDeviceToHost, stream),
                    "cudaMemcpyAsync") ||
            !worked(cudaLaunchHostFunc(stream, look_at_copy, late), "cudaLaunchHostFunc"))
            atomic_store(&late->busy, false);
        return;
    }
}

/** The block's next work is on another stream, which waits for the one before. */
void move_to_stream(struct worker *worker, struct block *block, enum stream_kind kind)
{
    cudaStream_t from = stream_of(worker, block->device, block->stream),
                 to = stream_of(worker, block->device, kind);
    cudaEvent_t *event = &worker->events[block->device];

    if (!*event &&
        !worked(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags"))
        return;
    if (worked(cudaEventRecord(*event, from), "cudaEventRecord") &&
        worked(cudaStreamWaitEvent(to, *event, 0), "cudaStreamWaitEvent"))
        block->stream = kind;
}

/* For a while there is but one size, so that what was freed is wanted again at once; 0 else. */
static size_t only_size(const struct worker *worker)
{
    static const size_t sizes[] = {4096, 300000, (size_t)3 << 20, 65536, (size_t)17 << 20, 1000};
    uint64_t phase = worker->operations / PHASE;

    return phase % 3 == 1 ? sizes[phase / 3 % (sizeof sizes / sizeof sizes[0])] : 0;
}

/** How many of its slots a worker uses just now. */
uint32_t slots_used(const struct worker *worker)
{
    size_t only = only_size(worker);

    return !only ? SLOTS : only > 1 << 20 ? 6 : 24;
}

/** Few distinct sizes mostly, as programs ask; every tier. */
size_t pick_size(struct worker *worker)
{
    static const uint32_t often[] = {512, 1024, 2048, 4096, 20480, 65536, 262144, 1048576};
    uint32_t kind = pick(worker, 100);

    if (only_size(worker))
        return only_size(worker);
    if (kind < 60)
        return often[pick(worker, 8)];
    if (kind < 85)
        return 16 + pick(worker, 60000);
    if (kind < 96)
        return 4096 + pick(worker, 2 << 20);
    if (kind < 99)
        return ((size_t)2 << 20) + pick(worker, 6 << 20);
    return ((size_t)16 << 20) + pick(worker, 4) * ((size_t)1 << 20);
}

bool prepare_worker(struct worker *worker)
{
    uint32_t *copies = NULL;

    worker->device = -1;
    use_device(worker, worker->index % settings.devices);
    unsafe_begin();
    bool good = worked(cudaHostAlloc((void **)&copies, (LATES + 1) * WORDS * 4, cudaHostAllocPortable),
                       "cudaHostAlloc");
    unsafe_end();
    if (!good)
        return false;
    worker->seen = copies + (size_t)LATES * WORDS;
    for (int i = 0; i < LATES; i++)
        worker->lates[i].copy = copies + (size_t)i * WORDS;
    return true;
}

/** After the worker's last block is gone. */
void end_worker(struct worker *worker)
{
    for (int device = 0; device < settings.devices; device++) {
        use_device(worker, device);
        wait_for_device();
        worked(RELAXED(cudaStreamSynchronize(cudaStreamPerThread)), "cudaStreamSynchronize");
        for (int kind = BLOCKING; kind < STREAMS; kind++)
            if (worker->streams[device][kind])
                worked(cudaStreamDestroy(worker->streams[device][kind]), "cudaStreamDestroy");
        for (int i = 0; i < 2; i++)
            if (worker->capturing[device][i])
                worked(cudaStreamDestroy(worker->capturing[device][i]), "cudaStreamDestroy");
        if (worker->events[device])
            worked(cudaEventDestroy(worker->events[device]), "cudaEventDestroy");
    }
    unsafe_begin();
    worked(cudaFreeHost(worker->lates[0].copy), "cudaFreeHost");
    unsafe_end();
}
