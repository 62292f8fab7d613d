/*
 * Events that several processes record and wait for: two numbers in a file in memory that they all map.
 * Recordings are counted, and the last one that is over is noted; who waits looks at that a moment at a time.
 * A process that ends before its recording was over holds nobody up. No lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/stream/event.h"

#define FILE_BYTES     4096UL
#define FIRST_PAUSE_NS 2000
#define LAST_PAUSE_NS  100000

struct words {
    _Atomic uint64_t begun, over;
    _Atomic int32_t recorder; /* whose recording is the latest */
};

struct sim_shared {
    int fd;
    uint64_t inode;
    struct words *words;
};

struct handle {
    char magic[8];
    uint64_t inode;
    int32_t pid, fd;
};

struct wait_op {
    struct sim_op op;
    struct CUevent_st *event; /* referenced */
    uint64_t number;
};

static const char magic[8] = "memsime";

/* Over a descriptor, which it takes. */
static struct sim_shared *map_file(int fd)
{
    struct sim_shared *shared = calloc(1, sizeof *shared);
    struct stat st;
    void *words = MAP_FAILED;

    if (shared && fd >= 0 && !fstat(fd, &st))
        words = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        free(shared);
        return NULL;
    }
    *shared = (struct sim_shared){fd, st.st_ino, words};
    return shared;
}

struct sim_shared *sim_shared_new(void)
{
    return map_file(sim_memfd_open("memsim.event", FILE_BYTES));
}

/* The descriptor may be another's by now: a program may have closed all it found. */
static bool is_ours(const struct sim_shared *shared)
{
    struct stat st;

    return !fstat(shared->fd, &st) && st.st_ino == shared->inode;
}

void sim_shared_end(struct sim_shared *shared)
{
    if (is_ours(shared))
        close(shared->fd);
    munmap(shared->words, FILE_BYTES);
    free(shared);
}

uint64_t sim_shared_begin(struct sim_shared *shared)
{
    atomic_store(&shared->words->recorder, (int32_t)getpid());
    return 1 + atomic_fetch_add(&shared->words->begun, 1);
}

void sim_shared_done(struct sim_shared *shared, uint64_t number)
{
    uint64_t over = atomic_load(&shared->words->over);

    while (over < number && !atomic_compare_exchange_weak(&shared->words->over, &over, number))
        ;
}

uint64_t sim_shared_latest(const struct sim_shared *shared)
{
    return atomic_load(&shared->words->begun);
}

bool sim_shared_over(const struct sim_shared *shared, uint64_t number)
{
    pid_t recorder = atomic_load(&shared->words->recorder);

    if (atomic_load(&shared->words->over) >= number)
        return true;
    int saved = errno;
    bool gone = recorder != getpid() && kill(recorder, 0) && errno == ESRCH;
    errno = saved;
    return gone;
}

static CUresult run_wait(struct sim_op *op, struct sim_queue *queue)
{
    const struct wait_op *wait = (struct wait_op *)op;

    for (uint64_t pause = FIRST_PAUSE_NS; !sim_shared_over(wait->event->shared, wait->number);) {
        if (sim_context_error(queue->ctx) != CUDA_SUCCESS)
            return CUDA_SUCCESS; /* nothing moves in a broken context */
        sim_spend(pause);
        pause = pause < LAST_PAUSE_NS ? pause * 2 : LAST_PAUSE_NS;
    }
    return CUDA_SUCCESS;
}

static void dispose_wait(struct sim_op *op)
{
    sim_object_put(((struct wait_op *)op)->event);
}

CUresult sim_shared_wait(struct CUevent_st *event, struct sim_queue *queue)
{
    uint64_t number = sim_shared_latest(event->shared);

    if (sim_shared_over(event->shared, number))
        return CUDA_SUCCESS;
    struct wait_op *wait = sim_op_new(sizeof *wait, run_wait);
    if (!wait)
        return CUDA_ERROR_OUT_OF_MEMORY;
    wait->op.dispose = dispose_wait;
    wait->event = sim_object_ref(event);
    wait->number = number;
    sim_queue_push(queue, &wait->op);
    return CUDA_SUCCESS;
}

SIM_API(cuIpcGetEventHandle)(CUipcEventHandle *out, CUevent handle)
{
    SIM_ENTER(cuIpcGetEventHandle);
    struct CUevent_st *event = out ? sim_object_get(handle, SIM_EVENT) : NULL;
    CUresult status = CUDA_SUCCESS;

    if (!event)
        return out ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    if (!event->shared || !is_ours(event->shared)) {
        status = event->shared ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_INVALID_HANDLE;
    } else {
        struct handle data = {
            .inode = event->shared->inode, .pid = (int32_t)getpid(), .fd = event->shared->fd};
        memcpy(data.magic, magic, sizeof magic);
        memset(out, 0, sizeof *out);
        memcpy(out, &data, sizeof data);
    }
    sim_object_put(event);
    return status;
}

/* The exporter's file, if it is still what the handle says. */
static struct sim_shared *open_handle(const struct handle *data)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", data->pid, data->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    int own = sim_memfd_reopen(fd, "event");
    close(fd);
    struct sim_shared *shared = own >= 0 ? map_file(own) : NULL;
    if (shared && shared->inode != data->inode) {
        sim_shared_end(shared);
        return NULL;
    }
    return shared;
}

SIM_API(cuIpcOpenEventHandle)(CUevent *event_p, CUipcEventHandle in)
{
    SIM_ENTER_CTX(cuIpcOpenEventHandle);
    struct handle data;

    memcpy(&data, &in, sizeof data);
    if (!event_p || memcmp(data.magic, magic, sizeof magic))
        return CUDA_ERROR_INVALID_VALUE;
    if (data.pid == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_shared *shared = open_handle(&data);
    if (!shared)
        return CUDA_ERROR_MAP_FAILED;
    struct CUevent_st *event = sim_event_new(ctx, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    if (!event) {
        sim_shared_end(shared);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->shared = shared;
    sim_object_publish(event);
    *event_p = event;
    return CUDA_SUCCESS;
}
