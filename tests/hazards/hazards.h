/*
 * hazards.h - what the parts of the stress program share.
 *
 * Workers allocate, write, check and free device memory on streams of every kind, with work that is late on
 * purpose. Every block has a tag of its own, which late work writes into it and late copies read out of it: a
 * block that is handed to somebody else while such work is pending shows it, as the wrong tag in a block or
 * in a copy. Nothing here knows of memshim, and every program that it plays is one that the vendor's rules
 * allow. With TEST_HIP it is built for HIP, which has no contexts to make.
 */
#ifndef MS_TESTS_HAZARDS_H
#define MS_TESTS_HAZARDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MAX_DEVICES 8
#define WORDS       64  /* written and looked at, at either end of a block */
#define SLOTS       96  /* blocks that a worker holds at most */
#define PHASE       800 /* operations of a worker */
#define LATES       64  /* late copies of a worker that are under way at most */
#define POOLS       2   /* of a worker on each device */
#define GRAPHS      4   /* that a worker keeps for later launches */

/* From MORE on: where memory is in the order of streams, since then each stream has memory of its own. */
enum stream_kind { LEGACY, BLOCKING, NONBLOCKING, NONBLOCKING_TOO, PER_THREAD, MORE, STREAMS = MORE + 6 };

struct settings {
    uint64_t operations; /* of all workers: allocations and frees */
    uint64_t seed;
    int workers, devices;
    bool cross; /* frees while another device is current do not wait first: more than the vendor promises */
    bool ends;  /* contexts and devices end while others go on */
    /* one stream has all the work for a while, whoever gives it; then another joins and takes over */
    bool solo;
    bool streams; /* memory in the order of streams, from pools, beside captures */
    bool pure;    /* ... and no other, from the device's own pool */
    bool scarce;  /* that there is no memory is an answer */
    bool stop;    /* at the first thing that is wrong */
};
extern struct settings settings;

struct block {
    uint64_t address;
    size_t bytes;
    uint32_t tag;
    int device;
    enum stream_kind stream; /* where its work is; other streams wait by event before they touch it */
    bool ordered;            /* not from cudaMalloc */
};

struct late {
    struct worker *worker;
    uint32_t *copy; /* WORDS words of pinned memory */
    uint32_t tag, words;
    size_t bytes;
    atomic_bool busy;
};

/** A graph that is launched now and then, and what it writes: the block is its own as long as it is kept. */
struct graph {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct block block; /* that was there before the capture, or that the graph allocates */
    /* a launch allocates the block; `block.address` is 0 until then, and when it is freed */
    bool allocates;
    bool frees_itself; /* ... and frees what the last one has left */
    uint64_t address;
    uint32_t tag;
    uint32_t launches; /* still to come */
};

struct worker {
    uint64_t random;
    int index, device; /* current */
    uint64_t operations, checks, lates_seen, contexts, resets;
    uint64_t streams_made, pools_made, captures, launches, visitors;
    uint32_t next_tag;
    struct block slots[SLOTS];
    struct late lates[LATES];
    uint32_t *seen; /* WORDS words of pinned memory */
    cudaStream_t streams[MAX_DEVICES][STREAMS];
    cudaEvent_t events[MAX_DEVICES];
    cudaStream_t capturing[MAX_DEVICES][2];
    cudaMemPool_t pools[MAX_DEVICES][POOLS];
    struct graph graphs[GRAPHS];
};

extern atomic_ulong wrong_blocks, wrong_copies, wrong_statuses, late_checks, refused;
extern atomic_bool stopping;

/* hazards.c */
/** Leaves work behind, and frees the block. */
void release_block(struct worker *worker, struct block *block);

/* work.c */
uint32_t pick(struct worker *worker, uint32_t below);
bool worked(int status, const char *what);
void use_device(struct worker *worker, int device);
enum stream_kind pick_stream(struct worker *worker);
cudaStream_t stream_of(struct worker *worker, int device, enum stream_kind kind);
void delay(struct worker *worker, cudaStream_t stream, uint32_t most_us);
void write_tag(const struct block *block, cudaStream_t stream);
/** From one block into another of the same size. */
void copy_tag(const struct block *from, const struct block *to, cudaStream_t stream);
void check_block(struct worker *worker, const struct block *block);
void queue_late_copy(struct worker *worker, const struct block *block, cudaStream_t stream);
void move_to_stream(struct worker *worker, struct block *block, enum stream_kind kind);
uint32_t slots_used(const struct worker *worker);
size_t pick_size(struct worker *worker);
bool prepare_worker(struct worker *worker);
void end_worker(struct worker *worker);

/* ends.c */
void context_comes_and_goes(struct worker *worker);
void device_is_reset(struct worker *worker, int device);

void a_thread_comes_and_goes(struct worker *worker, int device);

/* ordered.c */
bool allocate_ordered(struct worker *worker, struct block *block, size_t bytes, cudaStream_t stream,
                      int device);
void free_ordered(struct worker *worker, struct block *block);
/** Another pool becomes the current one of a device, or stops being it; one worker does so. */
void change_current_pool(struct worker *worker, int device);
void end_ordered(struct worker *worker);

/* captures.c */
/** Captures a graph, or launches one, or ends it. */
void use_graphs(struct worker *worker, int device);
/** Waits for the current device; not while a stream captures, which would break that. */
bool wait_for_device(void);
/** Around calls that a global capture forbids to all threads. */
void unsafe_begin(void);
void unsafe_end(void);
/** Around a free that has no order. */
void free_begin(void);
void free_end(void);

/** What goes on in stream order beside captures: a global one forbids it to threads whose own mode is not
 * relaxed (docs/user/hardware.md). */
#define RELAXED(call)                                                                                        \
    ({                                                                                                       \
        enum cudaStreamCaptureMode relaxed_mode = cudaStreamCaptureModeRelaxed;                              \
        cudaThreadExchangeStreamCaptureMode(&relaxed_mode);                                                  \
        int relaxed_status = (int)(call);                                                                    \
        cudaThreadExchangeStreamCaptureMode(&relaxed_mode);                                                  \
        relaxed_status;                                                                                      \
    })
void end_graphs(struct worker *worker);

#endif
