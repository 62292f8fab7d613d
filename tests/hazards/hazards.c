/*
 * hazards.c - the workers.
 *
 * usage: hazards OPERATIONS [WORKERS [SEED [DEVICES]]]. HAZARDS in the environment is a list of words: cross,
 * ends, solo, streams, pure, scarce, stop (see struct settings). Prints what was done and what was wrong;
 * exits with 1 if anything was.
 */
#include "hazards.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct settings settings = {.operations = 100000, .seed = 1, .workers = 4, .devices = 1};

#define MAX_WORKERS 64
static struct worker workers[MAX_WORKERS];

/* Blocks on their way from one worker to another, who frees them: behind the event, where a free has an
 * order. */
#define MAILBOXES 32
static struct mailbox {
    pthread_mutex_t lock;
    struct block block;
    cudaEvent_t event;
} mailboxes[MAILBOXES];

static void allocate(struct worker *worker, struct block *block, size_t bytes, int device)
{
    enum stream_kind kind = pick_stream(worker);
    cudaStream_t stream = stream_of(worker, device, kind);
    void *p = NULL;

    worker->operations++;
    *block = (struct block){0, bytes, worker->next_tag++, device, kind, false};
    if (settings.streams && (settings.pure || pick(worker, 4))) {
        if (!allocate_ordered(worker, block, bytes, stream, device))
            return;
    } else {
        unsafe_begin();
        bool good = worked(cudaMalloc(&p, bytes), "cudaMalloc");
        unsafe_end();
        if (!good)
            return;
        block->address = (uintptr_t)p;
    }
    if (pick(worker, 48) == 0)
        delay(worker, stream, 300);
    write_tag(block, stream);
}

/* Work that is pending when the block is freed: it writes, or reads, or both. */
static void leave_work(struct worker *worker, const struct block *block)
{
    cudaStream_t stream = stream_of(worker, block->device, block->stream);
    uint32_t what = pick(worker, 8);

    if (what > 2)
        return;
    if (pick(worker, 4) == 0) /* seldom so long that the block would have gone through many hands */
        delay(worker, stream, pick(worker, 40) ? 400 : 20000);
    if (what != 1)
        write_tag(block, stream);
    if (what != 0)
        queue_late_copy(worker, block, stream);
}

static void free_now(struct worker *worker, struct block *block)
{
    if (block->ordered || (settings.streams && pick(worker, 4) == 0)) {
        worker->operations++;
        free_ordered(worker, block);
        block->address = 0;
        return;
    }
    if (settings.devices > 1 && pick(worker, 4) == 0) {
        /* Another device is current: the vendor waits for that one alone. */
        if (!settings.cross) {
            use_device(worker, block->device);
            wait_for_device();
        }
        use_device(worker, (int)pick(worker, (uint32_t)settings.devices));
    } else {
        use_device(worker, block->device);
    }
    worker->operations++;
    free_begin();
    worked(cudaFree((void *)(uintptr_t)block->address), "cudaFree");
    free_end();
    block->address = 0;
}

/* What was done to the block so far; who takes it over waits for that on a stream of its own. */
static cudaEvent_t event_behind(struct worker *worker, const struct block *block)
{
    cudaStream_t stream = stream_of(worker, block->device, block->stream);
    cudaEvent_t event = NULL;

    if (worked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags"))
        worked(cudaEventRecord(event, stream), "cudaEventRecord");
    return event;
}

static void take_over(struct worker *worker, struct block *block, cudaEvent_t event)
{
    if (!event)
        return;
    block->stream = pick_stream(worker);
    worked(cudaStreamWaitEvent(stream_of(worker, block->device, block->stream), event, 0),
           "cudaStreamWaitEvent");
    worked(cudaEventDestroy(event), "cudaEventDestroy");
}

/* By another worker, sooner or later: what lay in the mailbox is freed here. */
static void free_elsewhere(struct worker *worker, struct block *block)
{
    struct mailbox *mailbox = &mailboxes[pick(worker, MAILBOXES)];
    cudaEvent_t event = settings.streams ? event_behind(worker, block) : NULL, taken_event;
    struct block taken;

    pthread_mutex_lock(&mailbox->lock);
    taken = mailbox->block;
    taken_event = mailbox->event;
    mailbox->block = *block;
    mailbox->event = event;
    pthread_mutex_unlock(&mailbox->lock);
    block->address = 0;
    if (!taken.address)
        return;
    take_over(worker, &taken, taken_event);
    free_now(worker, &taken);
}

static void release(struct worker *worker, struct block *block)
{
    size_t bytes = block->bytes;
    int device = block->device;

    leave_work(worker, block);
    if (pick(worker, 6) == 0) {
        free_elsewhere(worker, block);
        return;
    }
    free_now(worker, block);
    if (pick(worker, 3) == 0) /* the same size at once: what was freed last is what comes first */
        allocate(worker, block, bytes, device);
}

/* Waiting of every kind: for one stream, an event, everything; in vain. */
static void synchronize(struct worker *worker, int device)
{
    cudaStream_t stream = stream_of(worker, device, pick_stream(worker));
    uint32_t word = 0;

    switch (pick(worker, 6)) {
    case 0:
        wait_for_device();
        break;
    case 1:
        RELAXED(cudaStreamQuery(stream));
        break;
    case 2:
        if (!settings.streams)
            worked(cuCtxSynchronize(), "cuCtxSynchronize");
        break;
    case 3: /* waits for the legacy stream, and for those that it waits for */
        for (int i = 0; i < SLOTS; i++)
            if (worker->slots[i].address && worker->slots[i].device == device) {
                unsafe_begin();
                worked(
                    cudaMemcpy(&word, (void *)(uintptr_t)worker->slots[i].address, 4, cudaMemcpyDeviceToHost),
                    "cudaMemcpy");
                unsafe_end();
                break;
            }
        break;
    default:
        worked(RELAXED(cudaStreamSynchronize(stream)), "cudaStreamSynchronize");
    }
}

/* Work that a block waits for goes on elsewhere. */
static void leave_stream(struct worker *worker, struct block *block, int device, enum stream_kind kind)
{
    if (block->address && block->device == device && block->stream == kind)
        move_to_stream(worker, block, kind == NONBLOCKING ? NONBLOCKING_TOO : NONBLOCKING);
}

void release_block(struct worker *worker, struct block *block)
{
    leave_work(worker, block);
    free_now(worker, block);
}

static void replace_stream(struct worker *worker, int device)
{
    enum stream_kind kind = settings.streams ? MORE + pick(worker, STREAMS - MORE) : NONBLOCKING_TOO;
    cudaStream_t *stream = &worker->streams[device][kind];

    stream_of(worker, device, kind);
    for (int i = 0; i < SLOTS; i++)
        leave_stream(worker, &worker->slots[i], device, kind);
    for (int i = 0; i < GRAPHS; i++)
        leave_stream(worker, &worker->graphs[i].block, device, kind);
    worked(cudaStreamDestroy(*stream), "cudaStreamDestroy");
    *stream = NULL;
}

/* What is seldom done to memory in the order of streams. */
static void step_of_streams(struct worker *worker, uint32_t what, int device)
{
    if (what < 30)
        use_graphs(worker, device);
    else if (what < 33 && !settings.solo)
        replace_stream(worker, device);
    else if (what < 34)
        a_thread_comes_and_goes(worker, device);
    else if (what < 38 && worker->index == 0 && !settings.pure)
        change_current_pool(worker, device);
}

static void step(struct worker *worker)
{
    struct block *block = &worker->slots[pick(worker, slots_used(worker))];
    uint32_t what = pick(worker, 1000);
    int device = (int)pick(worker, (uint32_t)settings.devices);

    if (what < 4)
        synchronize(worker, device);
    else if (what < 5 && !settings.solo)
        replace_stream(worker, device);
    else if (what < 7 && settings.ends)
        context_comes_and_goes(worker);
    else if (what < 8 && settings.ends && worker->index == 0)
        device_is_reset(worker, settings.devices);
    else if (settings.streams)
        step_of_streams(worker, what - 8, device);
    if (!block->address) {
        allocate(worker, block, pick_size(worker), (int)pick(worker, (uint32_t)settings.devices));
        return;
    }
    what = pick(worker, 100);
    if (what < 12)
        check_block(worker, block);
    else if (what < 17)
        move_to_stream(worker, block, pick_stream(worker));
    else
        release(worker, block);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    if (!prepare_worker(worker))
        return NULL;
    while (worker->operations < settings.operations / (uint64_t)settings.workers && !atomic_load(&stopping))
        step(worker);
    for (int i = 0; i < SLOTS; i++)
        if (worker->slots[i].address) {
            check_block(worker, &worker->slots[i]);
            free_now(worker, &worker->slots[i]);
        }
    end_graphs(worker);
    end_ordered(worker);
    end_worker(worker);
    return NULL;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void empty_mailboxes(struct worker *worker)
{
    for (int i = 0; i < MAILBOXES; i++)
        if (mailboxes[i].block.address) {
            worker->device = -1;
            use_device(worker, mailboxes[i].block.device);
            if (mailboxes[i].event) { /* the worker's streams are gone */
                worked(cudaEventSynchronize(mailboxes[i].event), "cudaEventSynchronize");
                worked(cudaEventDestroy(mailboxes[i].event), "cudaEventDestroy");
            }
            worked(cudaFree((void *)(uintptr_t)mailboxes[i].block.address), "cudaFree");
        }
}

/* Every device has been used when the workers begin, so that none of them meets it half ready. */
static void warm_up(void)
{
    for (int device = settings.devices - 1; device >= 0; device--) {
        void *p = NULL;

        worked(cudaSetDevice(device), "cudaSetDevice");
        if (worked(cudaMalloc(&p, 4096), "cudaMalloc"))
            worked(cudaFree(p), "cudaFree");
    }
}

struct figures {
    uint64_t operations, checks, contexts, resets, streams, pools, captures, launches, visitors;
};

static struct figures figures_of_all(void)
{
    struct figures sum = {0};

    for (int i = 0; i < settings.workers; i++) {
        sum.operations += workers[i].operations;
        sum.checks += workers[i].checks;
        sum.contexts += workers[i].contexts;
        sum.resets += workers[i].resets;
        sum.streams += workers[i].streams_made;
        sum.pools += workers[i].pools_made;
        sum.captures += workers[i].captures;
        sum.launches += workers[i].launches;
        sum.visitors += workers[i].visitors;
    }
    return sum;
}

static int tell(double took)
{
    const struct figures sum = figures_of_all();
    unsigned long blocks = atomic_load(&wrong_blocks), copies = atomic_load(&wrong_copies),
                  statuses = atomic_load(&wrong_statuses);

    printf("streams %" PRIu64 ", pools %" PRIu64 ", captures %" PRIu64 ", launches %" PRIu64
           ", threads %" PRIu64 ", requests refused %lu\n",
           sum.streams, sum.pools, sum.captures, sum.launches, sum.visitors, atomic_load(&refused));
    printf("operations %" PRIu64 ", blocks checked %" PRIu64 ", late copies checked %lu, contexts %" PRIu64
           ", resets %" PRIu64 ", seconds %.1f\n",
           sum.operations, sum.checks, atomic_load(&late_checks), sum.contexts, sum.resets, took);
    printf("wrong: blocks %lu, late copies %lu, statuses %lu\n", blocks, copies, statuses);
    return blocks || copies || statuses;
}

int main(int argc, char **argv)
{
    const char *words = getenv("HAZARDS") ? getenv("HAZARDS") : "";
    pthread_t threads[MAX_WORKERS];
    double begun = seconds();

    if (argc > 1)
        settings.operations = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        settings.workers = atoi(argv[2]);
    if (argc > 3)
        settings.seed = strtoull(argv[3], NULL, 0);
    if (argc > 4)
        settings.devices = atoi(argv[4]);
    settings.cross = strstr(words, "cross") != NULL;
    settings.ends = strstr(words, "ends") != NULL;
    settings.solo = strstr(words, "solo") != NULL;
    settings.streams = strstr(words, "streams") != NULL;
    settings.pure = strstr(words, "pure") != NULL;
    settings.scarce = strstr(words, "scarce") != NULL;
    settings.stop = strstr(words, "stop") != NULL;
    if (settings.workers < 1 || settings.workers > MAX_WORKERS || settings.devices < 1 ||
        settings.devices >= MAX_DEVICES)
        return 2;
    for (int i = 0; i < MAILBOXES; i++)
        pthread_mutex_init(&mailboxes[i].lock, NULL);
    warm_up();
    for (int i = 0; i < settings.workers; i++) {
        workers[i].index = i;
        workers[i].random =
            (settings.seed * 0x9e3779b97f4a7c15ull) ^ ((uint64_t)(i + 1) * 0xbf58476d1ce4e5b9ull);
        workers[i].next_tag = (uint32_t)(i + 1) << 25;
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            return 2;
    }
    for (int i = 0; i < settings.workers; i++)
        pthread_join(threads[i], NULL);
    empty_mailboxes(&workers[0]);
    worked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return tell(seconds() - begun);
}
