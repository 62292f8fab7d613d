/*
 * User objects: what a program wants to keep while graphs use it. When the last reference goes, the program's
 * destructor is called on a thread of ours, with no lock held. Graphs hold shares; copies of a graph hold as
 * many as it does.
 */
#include <signal.h>
#include <stdlib.h>

#include "sim/cuda/graph/graph.h"

struct CUuserObject_st {
    struct sim_object object;
    atomic_uint shares;
    CUhostFn destroy;
    void *data;
};

struct sim_user_share {
    struct sim_user_share *next;
    struct CUuserObject_st *user; /* referenced as an object */
    unsigned count;
};

static void *call_destructor(void *argument)
{
    struct CUuserObject_st *user = argument;
    struct sim_thread *thread = sim_thread();

    if (thread)
        thread->in_host_function = true;
    user->destroy(user->data);
    if (thread)
        thread->in_host_function = false;
    sim_object_put(user);
    return NULL;
}

/* Gives up shares; the last one ends it. */
static void release(struct CUuserObject_st *user, unsigned count)
{
    sigset_t all, before;
    pthread_t thread;

    if (atomic_fetch_sub(&user->shares, count) != count || !sim_object_retire(user))
        return;
    sigfillset(&all); /* signals are the program's: none is handled on a thread of ours */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&thread, NULL, call_destructor, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    else
        call_destructor(user);
}

SIM_API(cuUserObjectCreate)
(CUuserObject *user_p, void *data, CUhostFn destroy, unsigned count, unsigned flags)
{
    SIM_ENTER(cuUserObjectCreate);
    if (!user_p || !destroy || !count || count > INT32_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUuserObject_st *user = sim_object_new(sizeof *user, SIM_USER_OBJECT, NULL);
    if (!user)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&user->shares, count);
    user->destroy = destroy;
    user->data = data;
    sim_object_publish(user);
    *user_p = user;
    return CUDA_SUCCESS;
}

static CUresult change(CUuserObject handle, unsigned count, bool more)
{
    struct CUuserObject_st *user =
        count && count <= INT32_MAX ? sim_object_get(handle, SIM_USER_OBJECT) : NULL;

    if (!user)
        return CUDA_ERROR_INVALID_VALUE;
    if (more)
        atomic_fetch_add(&user->shares, count);
    else
        release(user, count);
    sim_object_put(user);
    return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRetain)(CUuserObject user, unsigned count)
{
    SIM_ENTER(cuUserObjectRetain);
    return change(user, count, true);
}

SIM_API(cuUserObjectRelease)(CUuserObject user, unsigned count)
{
    SIM_ENTER(cuUserObjectRelease);
    return change(user, count, false);
}

static struct sim_user_share *find_share(struct CUgraph_st *graph, const struct CUuserObject_st *user)
{
    struct sim_user_share *share = graph->users;

    while (share && share->user != user)
        share = share->next;
    return share;
}

static bool add_share(struct CUgraph_st *graph, struct CUuserObject_st *user, unsigned count)
{
    struct sim_user_share *share = find_share(graph, user);

    if (!share) {
        share = calloc(1, sizeof *share);
        if (!share)
            return false;
        share->user = sim_object_ref(user);
        share->next = graph->users;
        graph->users = share;
    }
    share->count += count;
    return true;
}

void sim_user_copy(struct CUgraph_st *to, const struct CUgraph_st *from)
{
    for (const struct sim_user_share *share = from->users; share; share = share->next)
        if (add_share(to, share->user, share->count))
            atomic_fetch_add(&share->user->shares, share->count);
}

void sim_user_drop(struct CUgraph_st *graph)
{
    while (graph->users) {
        struct sim_user_share *share = graph->users;
        graph->users = share->next;
        release(share->user, share->count);
        sim_object_put(share->user);
        free(share);
    }
}

SIM_API(cuGraphRetainUserObject)(CUgraph handle, CUuserObject user_handle, unsigned count, unsigned flags)
{
    SIM_ENTER(cuGraphRetainUserObject);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!count || count > INT32_MAX || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
        return status;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    struct CUuserObject_st *user = graph ? sim_object_get(user_handle, SIM_USER_OBJECT) : NULL;
    if (user)
        status = add_share(graph, user, count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
        atomic_fetch_add(&user->shares, count);
    sim_graph_unlock();
    if (user)
        sim_object_put(user);
    if (graph)
        sim_object_put(graph);
    return status;
}

SIM_API(cuGraphReleaseUserObject)(CUgraph handle, CUuserObject user_handle, unsigned count)
{
    SIM_ENTER(cuGraphReleaseUserObject);
    struct CUuserObject_st *user = sim_object_get(user_handle, SIM_USER_OBJECT);

    if (!user)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    struct sim_user_share *share = graph ? find_share(graph, user) : NULL;
    bool good = share && count && share->count >= count;
    if (good)
        share->count -= count;
    sim_graph_unlock();
    if (good)
        release(user, count);
    if (graph)
        sim_object_put(graph);
    sim_object_put(user);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
