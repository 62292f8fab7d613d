/*
 * captures.c - graphs: captured in every mode, with memory that was there before and memory of their own,
 * kept, and launched again and again on many streams while other memory comes and goes.
 */
#include "hazards.h"

#include <pthread.h>

/* Captures hold it for reading, who waits for a whole context for writing: that breaks a capture in it. */
static pthread_rwlock_t captures = PTHREAD_RWLOCK_INITIALIZER;
/* Global captures hold it for writing, who does what they forbid for reading. */
static pthread_rwlock_t unsafe = PTHREAD_RWLOCK_INITIALIZER;

bool wait_for_device(void)
{
    pthread_rwlock_wrlock(&captures);
    bool good = worked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    pthread_rwlock_unlock(&captures);
    return good;
}

void unsafe_begin(void)
{
    if (settings.streams)
        pthread_rwlock_rdlock(&unsafe);
}

void unsafe_end(void)
{
    if (settings.streams)
        pthread_rwlock_unlock(&unsafe);
}

/* A free of HIP's waits for the device, which breaks captures as any such wait does. */
#ifdef TEST_HIP
void free_begin(void)
{
    if (settings.streams)
        pthread_rwlock_wrlock(&captures);
}

void free_end(void)
{
    if (settings.streams)
        pthread_rwlock_unlock(&captures);
}
#else
void free_begin(void)
{
    unsafe_begin();
}

void free_end(void)
{
    unsafe_end();
}
#endif

/* Mostly one that does nothing else; else one that has memory of its own. */
static cudaStream_t stream_to_capture(struct worker *worker, int device, int which)
{
    cudaStream_t *stream = &worker->capturing[device][which];

    if (!which && !settings.solo && pick(worker, 3) == 0)
        return stream_of(worker, device, NONBLOCKING);
    use_device(worker, device);
    if (!*stream)
        worked(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return *stream;
}

/* A second stream joins the capture behind the first, or the first goes on behind it. */
static void join(struct worker *worker, int device, cudaStream_t from, cudaStream_t to)
{
    cudaEvent_t event = NULL;

    use_device(worker, device);
    if (!worked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags"))
        return;
    worked(cudaEventRecord(event, from), "cudaEventRecord in a capture");
    worked(cudaStreamWaitEvent(to, event, 0), "cudaStreamWaitEvent in a capture");
    worked(cudaEventDestroy(event), "cudaEventDestroy");
}

/* Memory of the graph's own holds its tag, from where it goes into the block; or it is what the graph
 * leaves. */
static void record(struct worker *worker, struct graph *graph, int device, cudaStream_t stream)
{
    struct block own = {.bytes = graph->block.bytes, .tag = graph->tag, .device = device};
    cudaStream_t second = pick(worker, 3) ? stream : stream_to_capture(worker, device, 1);
    void *p = NULL;

    worker->operations++;
    if (second != stream)
        join(worker, device, stream, second);
    if (worked(cudaMallocAsync(&p, own.bytes, second), "cudaMallocAsync in a capture")) {
        own.address = graph->address = (uintptr_t)p;
        write_tag(&own, second);
        if (!graph->allocates) {
            copy_tag(&own, &graph->block, second);
            worker->operations++;
            worked(cudaFreeAsync(p, second), "cudaFreeAsync in a capture");
        }
    }
    if (second != stream)
        join(worker, device, second, stream);
}

/* Other streams go on meanwhile. */
static void go_on_beside(struct worker *worker, int device)
{
    struct block other = {
        .device = device, .stream = NONBLOCKING_TOO, .bytes = 70000, .tag = worker->next_tag++};
    cudaStream_t beside = settings.solo ? NULL : stream_of(worker, device, NONBLOCKING_TOO);

    if (!beside || !allocate_ordered(worker, &other, other.bytes, beside, device))
        return;
    worker->operations += 2;
    write_tag(&other, beside);
    queue_late_copy(worker, &other, beside);
    worked(RELAXED(cudaFreeAsync((void *)(uintptr_t)other.address, beside)),
           "cudaFreeAsync beside a capture");
}

static bool capture(struct worker *worker, struct graph *graph, int device)
{
    static const enum cudaStreamCaptureMode modes[] = {
        cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeGlobal};
    enum cudaStreamCaptureMode mode = modes[pick(worker, 3)];
    cudaStream_t stream = stream_to_capture(worker, device, 0);
    bool global = mode == cudaStreamCaptureModeGlobal, good = false;

    pthread_rwlock_rdlock(&captures);
    if (global)
        pthread_rwlock_wrlock(&unsafe);
    if (worked(cudaStreamBeginCapture(stream, mode), "cudaStreamBeginCapture")) {
        record(worker, graph, device, stream);
        if (pick(worker, 4) == 0)
            go_on_beside(worker, device);
        use_device(worker, device);
        good = worked(cudaStreamEndCapture(stream, &graph->graph), "cudaStreamEndCapture");
    }
    if (global)
        pthread_rwlock_unlock(&unsafe);
    pthread_rwlock_unlock(&captures);
    worker->captures++;
    return good;
}

/* A graph that leaves memory behind frees it by itself before it allocates it again, or leaves that to the
 * worker. */
static void make(struct worker *worker, struct graph *graph, int device)
{
    struct block *block = &worker->slots[pick(worker, SLOTS)];
    /* What becomes of memory that a launch was to free, and could not allocate again, is nobody's to say. */
    unsigned flags = pick(worker, 2) && !settings.scarce ? cudaGraphInstantiateFlagAutoFreeOnLaunch : 0;

    *graph = (struct graph){
        .allocates = pick(worker, 3) == 0, .tag = worker->next_tag++, .launches = 2 + pick(worker, 12)};
    if (graph->allocates) {
        graph->block =
            (struct block){.bytes = 4096 + pick(worker, 1 << 20), .device = device, .ordered = true};
    } else {
        if (!block->address || block->device != device)
            return;
        graph->block = *block;
        block->address = 0;
    }
    graph->frees_itself = graph->allocates && flags;
    if (!capture(worker, graph, device) ||
        !worked(cudaGraphInstantiateWithFlags(&graph->exec, graph->graph, flags),
                "cudaGraphInstantiateWithFlags"))
        graph->exec = NULL; /* told; what it had stays */
    if (graph->exec && !graph->allocates && pick(worker, 2)) {
        worked(cudaGraphDestroy(graph->graph), "cudaGraphDestroy");
        graph->graph = NULL;
    }
}

/* Memory that the last launch has left. Where it is allocated again comes behind where it is freed here. */
static void free_what_is_left(struct worker *worker, struct graph *graph)
{
    struct block *block = &graph->block;

    worker->operations++;
    move_to_stream(worker, block, pick_stream(worker));
    worked(RELAXED(cudaFreeAsync((void *)(uintptr_t)block->address,
                                 stream_of(worker, block->device, block->stream))),
           "cudaFreeAsync of a graph's memory");
    block->address = 0;
}

static void launch(struct worker *worker, struct graph *graph)
{
    struct block *block = &graph->block;

    if (graph->allocates && block->address && !graph->frees_itself)
        free_what_is_left(worker, graph);
    move_to_stream(worker, block, pick_stream(worker));
    if (pick(worker, 12) == 0)
        delay(worker, stream_of(worker, block->device, block->stream), 400);
    graph->launches--;
    worker->launches++;
    worker->operations += graph->allocates ? 1 : 2;
    if (!worked(cudaGraphLaunch(graph->exec, stream_of(worker, block->device, block->stream)),
                "cudaGraphLaunch"))
        return;
    block->address = graph->allocates ? graph->address : block->address;
    block->tag = graph->tag;
    switch (pick(worker, 4)) {
    case 0:
        check_block(worker, block);
        break;
    case 1: /* what the next launch has to write over */
        block->tag = worker->next_tag++;
        write_tag(block, stream_of(worker, block->device, block->stream));
        break;
    case 2:
        queue_late_copy(worker, block, stream_of(worker, block->device, block->stream));
        break;
    default:
        break;
    }
}

static void end(struct worker *worker, struct graph *graph)
{
    bool first = pick(worker, 2);

    if (graph->block.address && (first || graph->allocates))
        release_block(worker, &graph->block);
    worked(cudaGraphExecDestroy(graph->exec), "cudaGraphExecDestroy");
    if (graph->graph)
        worked(cudaGraphDestroy(graph->graph), "cudaGraphDestroy");
    graph->exec = NULL;
    if (graph->block.address)
        release_block(worker, &graph->block);
}

void use_graphs(struct worker *worker, int device)
{
    struct graph *graph = &worker->graphs[pick(worker, GRAPHS)];

    if (!graph->exec)
        make(worker, graph, device);
    else if (graph->launches)
        launch(worker, graph);
    else
        end(worker, graph);
}

void end_graphs(struct worker *worker)
{
    for (int i = 0; i < GRAPHS; i++)
        if (worker->graphs[i].exec)
            end(worker, &worker->graphs[i]);
}
