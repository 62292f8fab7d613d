/*
 * The interfaces between the rooms of the simulated NCCL.
 *
 * driver.c reaches the driver, status.c keeps statuses, room.c is the memory that the ranks of a communicator
 * share, comm.c makes and ends communicators, job.c runs what needs several ranks, group.c is the group of a
 * thread, launch.c puts work on streams, collective.c and mail.c are that work, reduce.c adds, memory.c
 * allocates, window.c registers, reach.c reaches into the windows of other ranks, onesided.c puts and
 * signals, suspend.c gives back what a communicator has for itself, grow.c adds ranks.
 *
 * Nothing of the device is touched but by copies on the program's stream: an operation is a copy into pinned
 * memory, a host function that exchanges with the other ranks, and a copy back. So it works wherever the
 * driver does.
 */
#ifndef SIM_NCCL_NCCL_H
#define SIM_NCCL_NCCL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vendor/abi/nccl_fn.h"
#include "vendor/abi/nccl_later.h"
#include "sim/embedded/driver.h"

/** Define an exported function under both names; ncclX is weak and of the same address. */
#define SIM_NCCL(result, name, parameters)                                                                   \
    extern result nccl##name parameters __attribute__((weak, alias("pnccl" #name), visibility("default")));  \
    __attribute__((visibility("default"))) result pnccl##name parameters

#define SIM_TRY(expression)                                                                                  \
    do {                                                                                                     \
        ncclResult_t result_ = (expression);                                                                 \
        if (result_ != ncclSuccess)                                                                          \
            return result_;                                                                                  \
    } while (0)

/* driver.c */

/** Open the driver, once in the process; then make sure that the thread has a context, as the runtime
 * does. */
ncclResult_t sim_runtime(void);
/** The calling thread's device, with a context current. */
ncclResult_t sim_device(CUdevice *device_p);
/** The primary context of the device that the program names by number. */
ncclResult_t sim_context_of(int ordinal, CUcontext *context_p);
/** A driver's status as NCCL gives it; the reason is kept as the last error. */
ncclResult_t sim_cuda(CUresult status);

/* status.c */

/** Keep a text for ncclGetLastError and return `result`. */
ncclResult_t sim_fail(ncclResult_t result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Count a call of something that is not simulated, also in MEMSIM_LOG. */
ncclResult_t sim_unsupported(const char *name, unsigned long long *calls);

/* room.c */

enum { SIM_RANKS = 64, SIM_WINDOW_BYTES = 256 << 10, SIM_MAIL_BYTES = 64 << 10, SIM_NAME_BYTES = 96 };
/* Ranks meet for two reasons that must not mix: in calls of the host, and in work on streams. */
enum sim_meeting { SIM_MEET_HOST, SIM_MEET_STREAM, SIM_MEETINGS };

/** A rank's word about itself: given to all others before a meeting, read after it. */
struct sim_word {
    uint64_t count;
    int32_t kind, type, op, root;
    int32_t color, key;
    int32_t file;  /* descriptor in its own process, of memory that is offered; or -1 */
    uint64_t span; /* bytes of that memory */
    char next[SIM_NAME_BYTES];
};

struct sim_seat {
    _Atomic uint32_t taken, left;
    int32_t pid;
    CUuuid device;
    _Atomic uint32_t step[SIM_MEETINGS];
    _Atomic uint32_t signals[SIM_RANKS]; /* from each rank, so far */
    struct sim_word word[SIM_MEETINGS];
};

/** From one rank to another: full or empty. */
struct sim_mail {
    _Atomic uint32_t full;
    uint32_t bytes;
    char data[SIM_MAIL_BYTES];
};

struct sim_room {
    uint32_t magic, ranks;
    _Atomic uint32_t bell, aborted;
    struct sim_seat seats[SIM_RANKS];
    char windows[]; /* of each rank; then the mail of each pair */
};

/** A name for a new room, and its file, which the caller's end removes if the ranks have not. */
ncclResult_t sim_room_name(char name[SIM_NAME_BYTES]);
/** Enter a room of `ranks`, which the first to come sizes, and take a seat. */
ncclResult_t sim_room_enter(const char *name, int ranks, int rank, struct sim_room **room_p);
void sim_room_leave(struct sim_room *room, int rank);
void sim_room_unlink(const char *name);
char *sim_room_window(struct sim_room *room, int rank);
struct sim_mail *sim_room_mail(struct sim_room *room, int from, int to);

/** Wait for something in the room: `done` is asked again whenever the bell rang. An error if the room was
 * aborted, or a rank has gone of which something is needed. */
ncclResult_t sim_room_wait(struct sim_room *room, int rank, bool (*done)(void *arg),
                           bool (*needs)(void *arg, int rank), void *arg);
void sim_room_ring(struct sim_room *room);
/** Say that this rank has come, which gives the number of its step; and wait until every rank has come that
 * often. */
uint32_t sim_room_post(struct sim_room *room, int rank, enum sim_meeting meeting);
ncclResult_t sim_room_await(struct sim_room *room, int rank, enum sim_meeting meeting, uint32_t step);
ncclResult_t sim_room_meet(struct sim_room *room, int rank, enum sim_meeting meeting);

/* comm.c */

struct sim_stage;
struct sim_window;

struct ncclComm {
    uint64_t magic;
    struct sim_room *room;
    int rank, ranks, ordinal;
    CUcontext context;
    CUdeviceptr buffers; /* 0, or as much as MEMSIM_COMMUNICATOR says */
    CUevent done;        /* after the latest operation */
    CUstream stream;     /* the stream that it was put on */
    bool busy;           /* there is one */
    _Atomic int async;   /* ncclResult_t */
    struct sim_stage *_Atomic stages;
    struct sim_window *windows;
    void *scratch;        /* of the library itself, for windows */
    size_t scratch_bytes; /* that it has, or gave back when it was suspended */
    bool suspended;
    char grow[SIM_NAME_BYTES];   /* the room of an id for growing that nobody has used yet */
    uint32_t awaited[SIM_RANKS]; /* signals of each rank that were waited for, or will be */
};

ncclResult_t sim_comm_check(const struct ncclComm *comm, const char *function);
/** Note what went wrong in work on a stream; the first stays. */
void sim_comm_note(struct ncclComm *comm, ncclResult_t result);
/** Wait for all operations of the communicator. */
ncclResult_t sim_comm_drain(struct ncclComm *comm);
/** ncclSuccess if the program initialised its configuration; NULL is the default one. */
ncclResult_t sim_config_check(const ncclConfig_t *config);
/** The name of the room that a unique id stands for. */
ncclResult_t sim_id_room(const ncclUniqueId *id, char name[SIM_NAME_BYTES]);
void sim_id_make(ncclUniqueId *id, const char *name);
struct sim_job;
/** Phases of every job that makes a communicator: into the room `job->name`; and when all are there. */
ncclResult_t sim_comm_enter(struct sim_job *job);
ncclResult_t sim_comm_meet(struct sim_job *job);

/* job.c: host work that needs all ranks, in phases: each phase of every job of a group runs before the next
 * phase of any, so one thread can do it for several ranks. */

struct sim_job {
    struct sim_job *next;
    ncclResult_t (*phases[5])(struct sim_job *job);
    ncclResult_t result;
    struct ncclComm *comm, *parent;
    uint32_t step;
    ncclComm_t *comm_p;
    CUcontext context;
    char name[SIM_NAME_BYTES];
    int ranks, rank, color, key, leader;
    void *buffer;
    size_t bytes;
    struct sim_window *window;
    ncclWindow_t *window_p;
    int flags;
};

/** Run the job now, or at the end of the thread's group; it is freed then. */
ncclResult_t sim_job_submit(struct sim_job *job);
ncclResult_t sim_jobs_run(struct sim_job *jobs);
struct sim_job *sim_job_new(void);

/* launch.c */

enum sim_kind {
    SIM_ALL_GATHER,
    SIM_ALL_REDUCE,
    SIM_BROADCAST,
    SIM_REDUCE,
    SIM_REDUCE_SCATTER,
    SIM_ALL_TO_ALL,
    SIM_GATHER,
    SIM_SCATTER,
    SIM_SEND,
    SIM_RECEIVE,
    SIM_PUT,
    SIM_SIGNAL,
    SIM_AWAIT
};

/** How many signals of a rank have to have come. */
struct sim_target {
    int rank;
    uint32_t signals;
};

/** One operation of one rank. */
struct sim_operation {
    struct sim_operation *next;
    enum sim_kind kind;
    struct ncclComm *comm;
    CUstream stream;
    CUdeviceptr from, to;
    uint64_t count; /* elements */
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; /* or peer */
    uint64_t from_bytes, to_bytes;
    struct sim_stage *stage;
    char *in, *out; /* host memory */
    /* Of what is sent or received together (mail.c). */
    struct sim_operation *batch;
    uint64_t moved;
    /* Of SIM_AWAIT; they belong to the operation. */
    struct sim_target *targets;
    int target_count;
};

/** Check, and put on its stream now or at the end of the thread's group. */
ncclResult_t sim_launch(const struct sim_operation *operation);
/** Of a group, in order. Frees them. */
ncclResult_t sim_launch_all(struct sim_operation *operations);
void sim_stages_free(struct ncclComm *comm);
void sim_operation_free(struct sim_operation *operation);

/* collective.c, mail.c, onesided.c: on the stream's thread. */
ncclResult_t sim_onesided_run(struct sim_operation *operation);
ncclResult_t sim_collective_run(struct sim_operation *operation);
ncclResult_t sim_mail_run(struct sim_operation *batch);

/* reduce.c */
size_t sim_type_bytes(ncclDataType_t type);
bool sim_type_reduces(ncclDataType_t type);
/** Fold `count` elements from `from` into `to`; finish divides by the ranks for an average. */
void sim_reduce(void *to, const void *from, uint64_t count, ncclDataType_t type, ncclRedOp_t op);
void sim_reduce_finish(void *to, uint64_t count, ncclDataType_t type, ncclRedOp_t op, int ranks);

/* group.c */

/** True if the thread is in a group; jobs and operations are then kept there. */
bool sim_group_open(void);
void sim_group_keep_job(struct sim_job *job);
ncclResult_t sim_group_keep_operation(const struct sim_operation *operation);

/* window.c */

/** The memory that a rank offers in a window, and where it lies here if it was reached for. */
struct sim_offer {
    int32_t pid, file; /* a descriptor of that process */
    uint64_t span, offset, bytes;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr mapped;
};

struct sim_window {
    struct sim_window *next;
    struct ncclComm *comm;
    uintptr_t begin, end;
    unsigned count;
    bool window;
    int file;
    CUmemGenericAllocationHandle handle;
    struct sim_offer *offers; /* of all ranks, in a symmetric window */
};

void sim_windows_drop(struct ncclComm *comm);
/** The communicator's scratch memory, which its windows need. */
ncclResult_t sim_scratch_take(struct ncclComm *comm);
void sim_scratch_give(struct ncclComm *comm);
/** The window of a handle, of whichever communicator; NULL for anything else. Takes the list's lock. */
struct sim_window *sim_window_of(ncclWindow_t handle);

/* reach.c */

/** The address of `offset` of a rank's window for this process; 0 if the rank is out of reach. */
ncclResult_t sim_reach(struct sim_window *window, int rank, size_t offset, CUdeviceptr *address_p);
void sim_reach_end(struct sim_window *window);

#endif
