/*
 * Captures: streams whose work becomes nodes of a graph instead of running, and what may not be done
 * meanwhile.
 *
 * A capture begins with one stream and spreads to others through events. What it forbids depends on its mode,
 * on the calling thread's mode and on which thread began it; a call that it forbids breaks it, and it stays
 * broken until it is ended. All under the graphs' lock; while nothing is captured nobody takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

atomic_uint sim_captures;

static struct sim_capture *captures;

static struct sim_capture *find_capture(unsigned long long id)
{
    struct sim_capture *capture = captures;

    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

/** Breaks a capture if it is still open; whether it is. The lock is held. */
bool sim_capture_break(unsigned long long id)
{
    struct sim_capture *capture = find_capture(id);

    if (capture)
        capture->broken = true;
    return capture != NULL;
}

/* --- what is forbidden ---------------------------------------------------------------------------------- */

static bool forbids(const struct sim_capture *capture, const struct sim_thread *thread)
{
    if (capture->thread == thread->id)
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
               thread->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/** CUDA_SUCCESS if the calling thread may do what a capture cannot see. A capture that forbids it is broken.
 * Takes the lock. */
CUresult sim_capture_check_unsafe(void)
{
    const struct sim_thread *thread = sim_thread();
    CUresult status = CUDA_SUCCESS;

    sim_graph_lock();
    for (struct sim_capture *capture = captures; thread && capture; capture = capture->next)
        if (forbids(capture, thread)) {
            capture->broken = true;
            status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    sim_graph_unlock();
    return status;
}

/** CUDA_SUCCESS if nothing in a context (or a green one's part of it) is captured; a capture there is broken.
 * Takes the lock. */
CUresult sim_capture_check_context(struct CUctx_st *ctx)
{
    CUresult status = CUDA_SUCCESS;

    if (!atomic_load(&sim_captures))
        return CUDA_SUCCESS;
    sim_graph_lock();
    for (struct sim_capture *capture = captures; capture; capture = capture->next)
        for (struct sim_member *member = capture->members; member; member = member->next)
            if (ctx->home ? member->queue->green == ctx : member->queue->ctx == ctx) {
                capture->broken = true;
                status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
    sim_graph_unlock();
    return status;
}

/* The legacy stream would wait for blocking streams that are captured. */
static bool meets_capture(struct sim_queue *legacy, bool breaks)
{
    bool meets = false;

    for (struct sim_capture *capture = captures; capture; capture = capture->next)
        for (struct sim_member *member = capture->members; member; member = member->next)
            if (member->queue->ctx == legacy->ctx && member->queue->green == legacy->green &&
                member->queue->joins_legacy) {
                meets = true;
                capture->broken = capture->broken || breaks;
            }
    return meets;
}

/** True if a queue is a legacy one that would wait for something captured. The lock is held; nothing is
 * broken. */
bool sim_capture_legacy(struct sim_queue *queue)
{
    return queue->is_legacy && meets_capture(queue, false);
}

/** CUDA_SUCCESS if work may be put into a queue, captured or not. Takes the lock. */
CUresult sim_capture_check_work(struct sim_queue *queue)
{
    CUresult status = CUDA_SUCCESS;

    if (!atomic_load(&sim_captures))
        return CUDA_SUCCESS;
    sim_graph_lock();
    struct sim_member *member = atomic_load(&queue->captured);
    if (member && member->capture->broken)
        status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (queue->is_legacy && meets_capture(queue, true))
        status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    sim_graph_unlock();
    return status;
}

/** Answers a call that a captured queue cannot take with the status, and breaks its capture. 0 if it is not
 * captured. */
CUresult sim_capture_refuse(struct sim_queue *queue, CUresult status)
{
    if (!atomic_load(&queue->captured))
        return CUDA_SUCCESS;
    sim_graph_lock();
    struct sim_member *member = atomic_load(&queue->captured);
    if (member)
        member->capture->broken = true;
    sim_graph_unlock();
    return member ? status : CUDA_SUCCESS;
}

/** CUDA_SUCCESS if a queue may be looked at or waited for. */
CUresult sim_capture_check_idle(struct sim_queue *queue)
{
    return sim_capture_refuse(queue, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* --- what is captured ----------------------------------------------------------------------------------- */

/** Makes these nodes what the next work of a queue waits for; false when memory ran out. The lock is held. */
bool sim_capture_move(struct sim_member *member, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                      size_t count)
{
    CUgraphNode *front = malloc((count + 1) * sizeof *front);
    CUgraphEdgeData *data = calloc(count + 1, sizeof *data);

    if (!front || !data) {
        free(front);
        free(data);
        return false;
    }
    if (count)
        memcpy(front, nodes, count * sizeof *front);
    if (edges && count)
        memcpy(data, edges, count * sizeof *data);
    free(member->front);
    free(member->edges);
    member->front = front;
    member->edges = data;
    member->count = count;
    return true;
}

static struct sim_member *enter(struct sim_capture *capture, struct sim_queue *queue,
                                const CUgraphNode *front, const CUgraphEdgeData *edges, size_t count)
{
    struct sim_member *member = calloc(1, sizeof *member);

    if (!member || !sim_capture_move(member, front, edges, count)) {
        free(member);
        return NULL;
    }
    member->capture = capture;
    member->queue = sim_queue_ref(queue);
    member->next = capture->members;
    capture->members = member;
    atomic_store(&queue->captured, member);
    return member;
}

static void let_go(struct sim_member *member)
{
    if (member->queue) {
        atomic_store(&member->queue->captured, NULL);
        sim_queue_put(member->queue);
    }
    member->queue = NULL;
}

static void leave(struct sim_member **link)
{
    struct sim_member *member = *link;

    *link = member->next;
    let_go(member);
    free(member->front);
    free(member->edges);
    free(member);
}

/** Begins a capture into a graph, whose reference it takes, or into one of its own. The lock is held. */
CUresult sim_capture_begin(struct sim_queue *queue, CUstreamCaptureMode mode, struct CUgraph_st *graph,
                           const CUgraphNode *front, const CUgraphEdgeData *edges, size_t count)
{
    struct sim_capture *capture = calloc(1, sizeof *capture);
    struct CUgraph_st *into = graph ? graph : sim_graph_new();

    if (!capture || !into || !enter(capture, queue, front, edges, count)) {
        free(capture);
        if (into)
            sim_object_put(into);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!graph) {
        sim_object_publish(into);
        sim_object_ref(into);
    }
    capture->id = sim_next_id();
    capture->thread = sim_thread()->id;
    capture->mode = mode;
    capture->origin = queue;
    capture->graph = into;
    capture->into_given = graph != NULL;
    capture->next = captures;
    captures = capture;
    atomic_fetch_add(&sim_captures, 1);
    return CUDA_SUCCESS;
}

/* Takes a capture out of the world. Its graph is the caller's, who has its reference; one of its own that
 * nobody wants ends. */
static void close_capture(struct sim_capture *capture, bool keep_graph)
{
    struct sim_capture **link = &captures;

    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    atomic_fetch_sub(&sim_captures, 1);
    while (capture->members)
        leave(&capture->members);
    while (capture->gone)
        leave(&capture->gone);
    if (!keep_graph && !capture->into_given)
        sim_graph_end(capture->graph);
    sim_object_put(capture->graph);
    free(capture);
}

static bool are_marked(const struct sim_member *member)
{
    for (; member; member = member->next)
        for (size_t i = 0; i < member->count; i++)
            if (!member->front[i]->place)
                return false;
    return true;
}

/* Every forked queue has come back: what it did last is something that the origin waits for. */
static CUresult check_joined(const struct sim_capture *capture, const struct sim_member *origin)
{
    if (!sim_graph_mark(capture->graph, origin->front, origin->count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return are_marked(capture->members) && are_marked(capture->gone) ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

/** Ends the capture that began with a queue: its graph, or NULL and why not. One that is ended by the wrong
 * thread is over, and one that is ended at a stream that joined it is broken. The lock is held. */
CUresult sim_capture_end(struct sim_queue *queue, CUgraph *graph_p)
{
    struct sim_member *member = atomic_load(&queue->captured);

    *graph_p = NULL;
    if (!member)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *capture = member->capture;
    if (capture->origin != queue) {
        capture->broken = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread()->id) {
        close_capture(capture, false);
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    CUresult status = capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(capture, member);
    if (status == CUDA_SUCCESS)
        *graph_p = capture->graph;
    close_capture(capture, status == CUDA_SUCCESS);
    return status;
}

/** A queue ends: a capture that began there is over. From another one it leaves, and breaks nothing: NVIDIA's
 * sample graphMemoryNodes destroys its forked streams before the capture ends. Takes the lock. */
void sim_capture_forget(struct sim_queue *queue)
{
    if (!atomic_load(&queue->captured))
        return;
    sim_graph_lock();
    struct sim_member *member = atomic_load(&queue->captured);
    if (member && member->capture->origin == queue) {
        close_capture(member->capture, false);
    } else if (member) {
        struct sim_member **link = &member->capture->members;
        while (*link != member)
            link = &(*link)->next;
        *link = member->next;
        let_go(member);
        member->next = member->capture->gone;
        member->capture->gone = member;
    }
    sim_graph_unlock();
}

/** As sim_capture_forget, for all queues of a context that ends. Takes the lock. */
void sim_capture_forget_context(struct CUctx_st *ctx)
{
    if (!atomic_load(&sim_captures))
        return;
    sim_graph_lock();
    for (struct sim_capture *capture = captures, *next; capture; capture = next) {
        next = capture->next;
        if (capture->origin->ctx == ctx)
            close_capture(capture, false);
    }
    sim_graph_unlock();
}

CUresult sim_capture_append(struct sim_queue *queue,
                            CUresult (*add)(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                                            struct sim_queue *queue, void *data,
                                            struct CUgraphNode_st **node_p),
                            void *data)
{
    struct CUgraphNode_st *node = NULL;
    CUresult status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

    sim_graph_lock();
    struct sim_member *member = atomic_load(&queue->captured);
    if (member && !member->capture->broken) {
        status = add(member->capture->graph, member->front, member->count, queue, data, &node);
        if (status == CUDA_SUCCESS && !sim_capture_move(member, &node, NULL, 1))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_graph_unlock();
    return status;
}

static CUresult add_work(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                         struct sim_queue *queue, void *data, struct CUgraphNode_st **node_p)
{
    struct sim_op **work = data;
    CUresult status = sim_node_add(graph, (CUgraphNodeType)(*work)->node, after, NULL, count, *work, node_p);

    *work = NULL;
    if (status == CUDA_SUCCESS)
        (*node_p)->ctx = sim_object_ref(queue->ctx);
    return status;
}

/** Adds work to the graph that a queue is captured into. Takes it. */
CUresult sim_capture_add(struct sim_queue *queue, struct sim_op *work)
{
    CUresult status = CUDA_SUCCESS;

    if (work->node == SIM_NO_NODE)
        status = sim_capture_refuse(queue, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    else
        status = sim_capture_append(queue, add_work, &work);
    sim_op_drop(work);
    return status;
}

/* --- events --------------------------------------------------------------------------------------------- */

/** Finds the nodes that an event stands for if it is recorded in a captured queue: capture 0 if the queue is
 * not captured. The list is the caller's. */
CUresult sim_capture_record(struct sim_queue *queue, struct sim_captured *captured)
{
    CUresult status = CUDA_SUCCESS;

    *captured = (struct sim_captured){0};
    if (!atomic_load(&queue->captured))
        return CUDA_SUCCESS;
    sim_graph_lock();
    struct sim_member *member = atomic_load(&queue->captured);
    if (member) {
        captured->nodes = malloc((member->count + 1) * sizeof *captured->nodes);
        if (captured->nodes) {
            memcpy(captured->nodes, member->front, member->count * sizeof *captured->nodes);
            captured->count = member->count;
            captured->capture = member->capture->id;
        } else {
            status = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    sim_graph_unlock();
    return status;
}

/* The next work of a member waits for more nodes. */
static CUresult widen(struct sim_member *member, const struct sim_captured *captured)
{
    CUgraphNode *all = malloc((member->count + captured->count + 1) * sizeof *all);
    CUgraphEdgeData *edges = calloc(member->count + captured->count + 1, sizeof *edges);
    size_t count = member->count;
    bool done = all && edges;

    if (done) {
        memcpy(all, member->front, count * sizeof *all);
        memcpy(edges, member->edges, count * sizeof *edges);
        for (size_t i = 0; i < captured->count; i++) {
            size_t j = 0;
            while (j < count && all[j] != captured->nodes[i])
                j++;
            if (j == count)
                all[count++] = captured->nodes[i];
        }
        done = sim_capture_move(member, all, edges, count);
    }
    free(all);
    free(edges);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/** Lets a queue wait for an event that was recorded in a capture: it is captured, too, from then on. Takes
 * the lock. */
CUresult sim_capture_join(struct sim_queue *queue, const struct sim_captured *captured)
{
    CUresult status = CUDA_SUCCESS;

    sim_graph_lock();
    struct sim_capture *capture = find_capture(captured->capture);
    struct sim_member *member = atomic_load(&queue->captured);
    if (!capture) {
        status = CUDA_ERROR_CAPTURED_EVENT;
    } else if (capture->broken) {
        status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (queue->is_legacy) {
        capture->broken = true;
        status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else if (!member) {
        if (!enter(capture, queue, captured->nodes, NULL, captured->count))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (member->capture == capture) {
        status = widen(member, captured);
    } else {
        capture->broken = member->capture->broken = true;
        status = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    sim_graph_unlock();
    return status;
}
