/*
 * Registered buffers and windows. A registration is a range of pages, kept by address and counted; a window
 * needs memory by handle, an offset in it that is a multiple of 4096, and for a symmetric one that all ranks
 * offer as much at the same offset. What is shared with the other ranks is exported as a file, as the vendor
 * does; they open it when they first reach for it (reach.c).
 *
 * With its first symmetric window a communicator takes a little memory for itself, through the exported name,
 * as the real library does: whoever stands before it sees a call from inside.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/nccl/nccl.h"

enum { PAGE = 4096, SCRATCH_BYTES = 1 << 20, HANDLES = 1024 };

/* Windows of all communicators: some functions are given nothing else. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_window *handles[HANDLES];

static struct sim_window **find(struct ncclComm *comm, const void *handle)
{
    struct sim_window **link = &comm->windows;

    while (*link && *link != handle)
        link = &(*link)->next;
    return link;
}

static struct sim_window *add(struct ncclComm *comm, uintptr_t begin, uintptr_t end)
{
    struct sim_window *window = calloc(1, sizeof(*window));

    if (!window)
        return NULL;
    window->comm = comm;
    window->begin = begin;
    window->end = end;
    window->count = 1;
    window->file = -1;
    window->next = comm->windows;
    comm->windows = window;
    return window;
}

/* Replace one entry of the list of handles. Without room for one the window is refused. */
static bool exchange_handle(const struct sim_window *from, struct sim_window *to)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < HANDLES && !found; i++) {
        found = handles[i] == from;
        if (found)
            handles[i] = to;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

struct sim_window *sim_window_of(ncclWindow_t handle)
{
    struct sim_window *window = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < HANDLES && !window && handle; i++)
        if ((ncclWindow_t)handles[i] == handle)
            window = handles[i];
    pthread_mutex_unlock(&lock);
    return window;
}

static void drop(struct ncclComm *comm, struct sim_window *window)
{
    *find(comm, window) = window->next;
    if (window->window) {
        exchange_handle(window, NULL);
        sim_reach_end(window);
        SIM_DRV(cuMemRelease, window->handle);
    }
    if (window->file >= 0)
        close(window->file);
    free(window->offers);
    free(window);
}

ncclResult_t sim_scratch_take(struct ncclComm *comm)
{
    CUdeviceptr base;

    SIM_TRY(ncclMemAlloc(&comm->scratch, SCRATCH_BYTES));
    return sim_cuda(SIM_DRV(cuMemGetAddressRange_v2, &base, &comm->scratch_bytes, (uintptr_t)comm->scratch));
}

void sim_scratch_give(struct ncclComm *comm)
{
    if (comm->scratch)
        ncclMemFree(comm->scratch);
    comm->scratch = NULL;
}

void sim_windows_drop(struct ncclComm *comm)
{
    while (comm->windows)
        drop(comm, comm->windows);
    sim_scratch_give(comm);
}

SIM_NCCL(ncclResult_t, CommRegister, (const ncclComm_t comm, void *buffer, size_t bytes, void **handle_p))
{
    const char *wanted = secure_getenv("NCCL_LOCAL_REGISTER");
    uintptr_t begin = (uintptr_t)buffer & -(uintptr_t)PAGE,
              end = ((uintptr_t)buffer + bytes + PAGE - 1) & -(uintptr_t)PAGE;
    struct sim_window *window;

    SIM_TRY(sim_comm_check(comm, "CommRegister"));
    if (!handle_p)
        return sim_fail(ncclInvalidArgument, "CommRegister : handle argument is NULL");
    *handle_p = NULL;
    if (wanted && *wanted == '0')
        return ncclSuccess;
    if (!buffer || !bytes)
        return sim_fail(ncclInvalidArgument, "CommRegister : nothing to register");
    for (window = comm->windows; window; window = window->next)
        if (!window->window && window->begin <= begin && end <= window->end)
            break;
    if (window)
        window->count++;
    else if (!(window = add(comm, begin, end)))
        return sim_fail(ncclSystemError, "out of memory");
    *handle_p = window;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle))
{
    struct sim_window *window;

    SIM_TRY(sim_comm_check(comm, "CommDeregister"));
    if (!handle) /* what a registration that was switched off gave */
        return ncclSuccess;
    window = *find(comm, handle);
    if (!window || window->window)
        return sim_fail(ncclInvalidUsage, "Deregister NCCL register %p fails: not registered", handle);
    if (!--window->count)
        drop(comm, window);
    return ncclSuccess;
}

/* The handle behind the buffer, and the file by which others can have it. */
static CUresult share(CUdeviceptr base, struct sim_window *window)
{
    CUresult status = SIM_DRV(cuMemRetainAllocationHandle, &window->handle, (void *)(uintptr_t)base);

    if (status != CUDA_SUCCESS)
        return status;
    status = SIM_DRV(cuMemExportToShareableHandle, &window->file, window->handle,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (status != CUDA_SUCCESS)
        SIM_DRV(cuMemRelease, window->handle);
    else
        window->window = true;
    return status;
}

static ncclResult_t make_window(struct sim_job *job, CUdeviceptr base)
{
    CUdeviceptr address = (uintptr_t)job->buffer;

    if ((address - base) % NCCL_WIN_REQUIRED_ALIGNMENT)
        return sim_fail(ncclInvalidArgument,
                        "Window registration: buffer %p is not aligned to %d in its allocation", job->buffer,
                        NCCL_WIN_REQUIRED_ALIGNMENT);
    job->window = add(job->parent, address, address + job->bytes);
    if (!job->window)
        return sim_fail(ncclSystemError, "out of memory");
    SIM_TRY(sim_cuda(share(base, job->window)));
    if (!exchange_handle(NULL, job->window))
        return sim_fail(ncclInternalError, "more than %d windows are not simulated", HANDLES);
    if (!(job->flags & NCCL_WIN_COLL_SYMMETRIC))
        return ncclSuccess;
    job->window->offers = calloc((size_t)job->parent->ranks, sizeof(*job->window->offers));
    return job->window->offers ? ncclSuccess : sim_fail(ncclSystemError, "out of memory");
}

/* Phases: look at one's own buffer and say what it is; agree; make it. */
static ncclResult_t offer(struct sim_job *job)
{
    struct ncclComm *comm = job->parent;
    struct sim_word *word = &comm->room->seats[comm->rank].word[SIM_MEET_HOST];
    CUdeviceptr address = (uintptr_t)job->buffer, base = 0;
    size_t bytes = 0;
    ncclResult_t result = sim_cuda(SIM_DRV(cuMemGetAddressRange_v2, &base, &bytes, address));

    if (result == ncclSuccess)
        result = make_window(job, base);
    *word = (struct sim_word){.count = result == ncclSuccess ? job->bytes : 0,
                              .kind = (int)(address - base),
                              .type = (int)result,
                              .span = bytes,
                              .file = result == ncclSuccess ? job->window->file : -1};
    if (job->flags & NCCL_WIN_COLL_SYMMETRIC)
        job->step = sim_room_post(comm->room, comm->rank, SIM_MEET_HOST);
    job->color = (int)result;
    return ncclSuccess;
}

static ncclResult_t agree(struct sim_job *job)
{
    struct ncclComm *comm = job->parent;
    const struct sim_seat *seats = comm->room->seats;
    bool same = true;

    if (!(job->flags & NCCL_WIN_COLL_SYMMETRIC))
        return ncclSuccess;
    SIM_TRY(sim_room_await(comm->room, comm->rank, SIM_MEET_HOST, job->step));
    for (int i = 0; i < comm->ranks; i++) {
        const struct sim_word *word = &seats[i].word[SIM_MEET_HOST];

        same &= memcmp(word, &seats[0].word[SIM_MEET_HOST], offsetof(struct sim_word, op)) == 0;
        if (job->color == ncclSuccess)
            job->window->offers[i] = (struct sim_offer){.pid = seats[i].pid,
                                                        .file = word->file,
                                                        .span = word->span,
                                                        .offset = (uint64_t)word->kind,
                                                        .bytes = word->count};
    }
    if (!same && job->color == ncclSuccess)
        job->color =
            (int)sim_fail(ncclInvalidArgument, "Window registration: the ranks do not offer the same");
    job->step = sim_room_post(comm->room, comm->rank, SIM_MEET_HOST);
    return ncclSuccess;
}

static ncclResult_t finish(struct sim_job *job)
{
    struct ncclComm *comm = job->parent;

    if (job->flags & NCCL_WIN_COLL_SYMMETRIC) {
        SIM_TRY(sim_room_await(comm->room, comm->rank, SIM_MEET_HOST, job->step));
        if (job->color == ncclSuccess && !comm->scratch)
            sim_scratch_take(comm);
    }
    if (job->color != ncclSuccess) {
        if (job->window)
            drop(comm, job->window);
        return (ncclResult_t)job->color;
    }
    *job->window_p = (ncclWindow_t)job->window;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommWindowRegister,
         (ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window_p, int flags))
{
    struct sim_job *job;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_comm_check(comm, "CommWindowRegister"));
    if (!buffer || !bytes || !window_p || flags & ~NCCL_WIN_COLL_SYMMETRIC)
        return sim_fail(ncclInvalidArgument, "CommWindowRegister : improper arguments");
    job = sim_job_new();
    if (!job)
        return ncclSystemError;
    job->phases[0] = offer;
    job->phases[1] = agree;
    job->phases[2] = finish;
    job->parent = comm;
    job->context = comm->context;
    job->buffer = buffer;
    job->bytes = bytes;
    job->window_p = window_p;
    job->flags = flags;
    return sim_job_submit(job);
}

SIM_NCCL(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t handle))
{
    struct sim_window *window;

    SIM_TRY(sim_comm_check(comm, "CommWindowDeregister"));
    if (!handle)
        return ncclSuccess;
    window = *find(comm, handle);
    if (!window || !window->window)
        return sim_fail(ncclInvalidUsage, "CommWindowDeregister : not a window of this communicator");
    drop(comm, window);
    return ncclSuccess;
}

/* The address of the program's own buffer (nccl.h, ncclWinGetUserPtr). */
SIM_NCCL(ncclResult_t, WinGetUserPtr, (ncclComm_t comm, ncclWindow_t handle, void **pointer_p))
{
    struct sim_window *window = sim_window_of(handle);

    SIM_TRY(sim_comm_check(comm, "WinGetUserPtr"));
    if (!pointer_p)
        return sim_fail(ncclInvalidArgument, "WinGetUserPtr : outUserPtr argument is NULL");
    if (!window || window->comm != comm)
        return sim_fail(ncclInvalidArgument, "WinGetUserPtr : not a window of this communicator");
    *pointer_p = (void *)window->begin;
    return ncclSuccess;
}
