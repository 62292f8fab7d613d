/*
 * The simulated driver's inner contract: what each room offers the others. No file outside sim/cuda
 * includes it.
 *
 * Locks, in the order in which they may be taken: contexts (context.c), graphs (graph.c), code (module.c),
 * events (event.c), memory (range.c, a read-write lock), queues (queue.c), objects (object.c). None is held
 * while a host function runs or while a queue is waited for. Exported functions never call each other: a
 * preloaded library may stand in front of any of them.
 */
#ifndef MEMSIM_CUDA_SIM_H
#define MEMSIM_CUDA_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

#define SIM_MAX_DEVICES 16
#define SIM_HOST        (-1)
#define SIM_MIB         (1024UL * 1024UL)
#define SIM_VMM_PAGE    (2 * SIM_MIB)

#define SIM_API(name) __attribute__((visibility("default"))) CUresult name

enum sim_fn {
#define X(name, version, twin, symbol) SIM_FN_##symbol,
#include "sim/cuda/exports.def"
#undef X
    SIM_FN_KERNEL, /* work on a stream, for costs and faults */
    SIM_FN_COPY,
    SIM_FN_MEMSET,
    SIM_FN_COPY_KIB, /* a cost only: nanoseconds per KiB moved */
    SIM_FN_COUNT
};

/* --- config.c, fault.c, clock.c: what MEMSIM_* asks for ------------------------------------------------- */

struct sim_config {
    unsigned devices;
    size_t memory_bytes;      /* per device */
    bool memory_asked;        /* by the environment; else a card that is asked for brings its own */
    size_t granularity_bytes; /* of device memory; a power of two */
    size_t window_bytes;      /* of addresses, that one arena asks for at most; 0: as it likes */
    size_t context_bytes;     /* that a context takes of its device; 0: nor do modules take any */
    uint64_t seed;            /* 0: streams run as fast as they can */
    const char *log_path;     /* NULL: unsupported calls are only counted */
    size_t others_bytes;      /* that others hold of each device */
    const char *ledger_path;  /* a directory for the driver's own ledger, or NULL (books.h) */
    bool counts;              /* every call is counted, for memsim_count */
};

extern struct sim_config sim_config;

/** Nonzero until the environment was read and found to ask for nothing that every call must look at. */
extern atomic_int sim_armed;

/** Nonzero after cuInit; negative in a child made by fork, where nothing may be used again. */
extern atomic_int sim_initialized;

void sim_config_read(void);
bool sim_config_size(const char *text, size_t *bytes_p);
void sim_config_complain(const char *name, const char *value, const char *allowed);

/** Cost and fault of one call of fn; reads the environment the first time. Returns the status to answer, or
 * 0. */
CUresult sim_fault_enter(enum sim_fn fn);
void sim_fault_read(void);
uint64_t sim_fault_cost(enum sim_fn fn);
CUresult sim_fault_work(enum sim_fn fn);
bool sim_fault_asked(enum sim_fn fn);
CUresult sim_unsupported(enum sim_fn fn);
long long memsim_count(const char *name); /* exported */
void sim_spend(uint64_t ns);
uint64_t sim_now_ns(void);

/* The first line of an exported function's body: of one that needs nothing, one that needs cuInit, one that
 * needs a current context (which it declares as ctx), and of a function with its per-thread twin. */
#define SIM_ENTER_RAW(fn)                                                                                    \
    do {                                                                                                     \
        if (__builtin_expect(atomic_load_explicit(&sim_armed, memory_order_acquire), 0)) {                   \
            CUresult enter_status = sim_fault_enter(SIM_FN_##fn);                                            \
            if (enter_status != CUDA_SUCCESS)                                                                \
                return enter_status;                                                                         \
        }                                                                                                    \
    } while (0)

#define SIM_ENTER(fn)                                                                                        \
    do {                                                                                                     \
        SIM_ENTER_RAW(fn);                                                                                   \
        if (__builtin_expect(atomic_load_explicit(&sim_initialized, memory_order_acquire) <= 0, 0))          \
            return CUDA_ERROR_NOT_INITIALIZED;                                                               \
    } while (0)

#define SIM_ENTER_CTX(fn)                                                                                    \
    SIM_ENTER(fn);                                                                                           \
    struct CUctx_st *ctx;                                                                                    \
    do {                                                                                                     \
        CUresult enter_status = sim_context_current(&ctx);                                                   \
        if (enter_status != CUDA_SUCCESS)                                                                    \
            return enter_status;                                                                             \
    } while (0)

#define SIM_PAIR(fn, suffix, params, answer)                                                                 \
    SIM_API(fn) params                                                                                       \
    {                                                                                                        \
        const bool per_thread = false;                                                                       \
        SIM_ENTER(fn);                                                                                       \
        return answer;                                                                                       \
    }                                                                                                        \
    SIM_API(fn##_##suffix) params                                                                            \
    {                                                                                                        \
        const bool per_thread = true;                                                                        \
        SIM_ENTER(fn##_##suffix);                                                                            \
        return answer;                                                                                       \
    }

/* --- object.c: handles that can be told from garbage ---------------------------------------------------- */

enum sim_kind {
    SIM_CONTEXT = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_ARRAY,
    SIM_MIPMAP,
    SIM_POOL,
    SIM_MODULE,
    SIM_LIBRARY,
    SIM_FUNCTION,
    SIM_KERNEL,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
    SIM_USER_OBJECT,
    SIM_GREEN,
};

struct sim_object {
    struct sim_object *bucket_next;
    enum sim_kind kind;
    atomic_uint refs;
    void (*dispose)(void *object);
};

void *sim_object_new(size_t bytes, enum sim_kind kind, void (*dispose)(void *object));
void sim_object_publish(void *object);
void *sim_object_get(const void *handle, enum sim_kind kind);
void *sim_object_ref(void *object);
void sim_object_put(void *object);
bool sim_object_retire(void *object);

/* --- range.c: address ranges in order, and the lock over everything that is mapped ---------------------- */

struct sim_range {
    uintptr_t start;
    size_t bytes;
    struct sim_range *left, *right;
    uint32_t weight;
};

void sim_memory_read_lock(void);
void sim_memory_write_lock(void);
void sim_memory_unlock(void);
bool sim_range_insert(struct sim_range **root, struct sim_range *range);
void sim_range_remove(struct sim_range **root, struct sim_range *range);
struct sim_range *sim_range_find(struct sim_range *root, uintptr_t address);
struct sim_range *sim_range_above(struct sim_range *root, uintptr_t address);

/* --- arena.c: a window of addresses over a file in memory ----------------------------------------------- */

struct sim_hole {
    size_t offset, bytes;
    struct sim_hole *next;
};

struct sim_arena {
    struct sim_range window; /* first; in sim_windows */
    int fd;                  /* -1: anonymous, cannot be shared */
    unsigned long long inode;
    char *base;
    size_t bytes;
    struct sim_hole *holes;
};

CUresult sim_arena_open(struct sim_arena *arena, const char *name, size_t bytes);
void sim_arena_close(struct sim_arena *arena);
bool sim_arena_take(struct sim_arena *arena, size_t bytes, size_t align, size_t *offset_p);
bool sim_arena_take_at(struct sim_arena *arena, size_t offset, size_t bytes);
void sim_arena_give(struct sim_arena *arena, size_t offset, size_t bytes);
bool sim_arena_show(struct sim_arena *arena, size_t offset, size_t bytes);
void sim_arena_hide(struct sim_arena *arena, size_t offset, size_t bytes);
void sim_arena_expect(CUdeviceptr address, size_t bytes);
bool sim_arena_valid_fd(const struct sim_arena *arena);
int sim_memfd_open(const char *name, size_t bytes);
int sim_memfd_reopen(int fd, const char *kind);
int sim_memfd_number(int fd);
CUresult sim_arena_adopt(struct sim_arena *arena, int fd);

/* --- card.c: which card the devices are ----------------------------------------------------------------- */

/** Reads MEMSIM_CARD; until then, and in the libraries of other vendors, the card is the first, an H200. */
void sim_card_read(void);
const char *sim_card_name(void);
/** How much more memory the management library tells than the driver: what the card keeps for itself. */
size_t sim_card_reserved(void);
/** The card's answer for an attribute; 0 for one that it has nothing to say of. */
int sim_card_attribute(CUdevice_attribute attribute);
/** True if devices of this card reach each other's memory. */
bool sim_card_peers(void);
/** True if the driver runs under Windows' Linux (WSL), where some refusals have other numbers. */
bool sim_card_wsl(void);

/* --- device.c ------------------------------------------------------------------------------------------- */

struct sim_chunk;

struct sim_device {
    int ordinal;
    struct CUctx_st *primary; /* made once, never freed */
    unsigned primary_refs, primary_flags;
    CUresult spoiled; /* by a fault, after which its primary context was reset: no other is had */
    /* under the memory lock */
    struct sim_arena arena;
    size_t used_bytes, peak_bytes;                                          /* of the capacity */
    struct CUmemPoolHandle_st *_Atomic default_pool, *_Atomic current_pool; /* NULL: the default one */
    struct sim_graph_usage {
        size_t used_high, reserved, reserved_high; /* as programs are told */
        size_t busy;                               /* of what is reserved: launched and not freed */
    } graphs;
};

extern struct sim_device sim_devices[SIM_MAX_DEVICES];

/** The device of an ordinal, NULL if there is none. */
struct sim_device *sim_device(CUdevice ordinal);
/** Of the first device's capacity, by the names "used_bytes" and "peak_bytes"; -1 for any other name. */
long long sim_device_count(const char *name);

/* --- context.c, thread.c -------------------------------------------------------------------------------- */

#define SIM_LIMITS 10

struct CUctx_st {
    struct sim_object object;
    struct sim_device *device;
    unsigned long long id; /* of this life: a primary context that is activated again has a new one */
    unsigned flags;
    unsigned api_version;
    bool primary;
    atomic_bool alive;
    struct CUgreenCtx_st *owner; /* and that green context; referenced */
    /* of a green context as a context: the primary one, which has all that is made in it; referenced */
    struct CUctx_st *home;
    bool closing;      /* under the contexts' lock */
    atomic_int error;  /* sticky */
    atomic_uint peers; /* bit per device */
    size_t limits[SIM_LIMITS];
    CUfunc_cache cache;
    struct sim_queue *legacy;
    struct sim_queue *queues; /* under the queues' lock, like the rest */
    struct sim_ticket *gate;  /* what all later work waits for */
    size_t gate_count;
    uint64_t gate_generation;
    atomic_uint pending; /* pieces of work that are enqueued and not over */
    uint64_t waits;      /* of the host, for all of it */
};

struct sim_thread_queue {
    struct sim_thread_queue *next;
    unsigned long long ctx_id;
    struct sim_queue *queue;
};

struct sim_thread {
    unsigned long long id;
    unsigned depth;
    struct CUctx_st
        *stack[64]; /* each referenced, so that a destroyed one is never confused with a new one */
    struct sim_thread_queue *queues;
    CUstreamCaptureMode capture_mode;
    bool in_host_function;
};

/** The calling thread's own state, made on first use; NULL when memory ran out. */
struct sim_thread *sim_thread(void);

/** The current context if it can be used: 201 none, 709 destroyed, 800 in a host function, or its sticky
 * error. */
CUresult sim_context_current(struct CUctx_st **ctx_p);
/** The green context that the current one is a view of, or NULL. */
struct CUctx_st *sim_context_green(void);
/** The context that has what is made in this one. */
static inline struct CUctx_st *sim_context_home(struct CUctx_st *ctx)
{
    return ctx->home ? ctx->home : ctx;
}
/** As sim_context_current, whatever the context's sticky error. */
CUresult sim_context_peek(struct CUctx_st **ctx_p);
CUresult sim_context_new(struct sim_device *device, unsigned flags, unsigned version,
                         struct CUctx_st **ctx_p);
CUresult sim_context_open(struct CUctx_st *ctx);
bool sim_context_doom(struct CUctx_st *ctx);
void sim_context_close(struct CUctx_st *ctx);
CUresult sim_context_error(struct CUctx_st *ctx);
void sim_context_fail(struct CUctx_st *ctx, CUresult status);
void sim_context_lock(void);
void sim_context_unlock(void);

/* --- queue.c: the order of work, and the threads that do it --------------------------------------------- */

struct sim_ticket {
    struct sim_queue *queue;
    uint64_t seq;
};

struct sim_op {
    struct sim_op *next;
    uint64_t seq;
    CUresult (*run)(struct sim_op *op, struct sim_queue *queue); /* NULL: only an order */
    void (*dispose)(struct sim_op *op);
    struct sim_ticket *tickets; /* what must be over first; owned */
    size_t ticket_count;
    bool always; /* also in a context that has failed */
    CUresult status;
    size_t bytes;                    /* of all of it, for copies */
    bool quick;                      /* over in a moment: in an idle queue the caller does it */
    int node;                        /* the kind of node it is in a graph, or SIM_NO_NODE */
    void (*hold)(struct sim_op *op); /* of a copy: takes its share of what dispose lets go of */
};

#define SIM_NO_NODE (-1) /* cannot be captured */

/* A queue, by its id, up to a number. */
struct sim_known {
    unsigned long long id;
    uint64_t seq;
};

#define SIM_KNOWN 16 /* of the latest, for each queue */

/* The values that a stream's attributes were set to (streamattr.c). */
struct sim_stream_attributes {
    CUaccessPolicyWindow window;
    CUsynchronizationPolicy policy; /* 0: never set */
    CUlaunchMemSyncDomainMap domains;
    CUlaunchMemSyncDomain domain;
};

enum { SIM_PRIORITY_LOWEST = 0, SIM_PRIORITY_GREATEST = -5 };

struct sim_queue {
    atomic_uint refs;
    struct CUctx_st *ctx;   /* referenced */
    struct CUctx_st *green; /* the green context it belongs to, or NULL; referenced */
    unsigned long long id;
    bool joins_legacy, is_legacy, closed;
    struct sim_op *head, *tail;
    uint64_t enqueued, completed, gate_seen, green_gate_seen;
    /* the host has waited for it: for this very stream, by an event or itself, or for the context */
    uint64_t seen;
    /* closed, and without work: how often the host had waited for the context by then, and one */
    uint64_t gone;
    uint64_t joined; /* of a blocking stream: what the legacy stream has waited for */
    struct sim_known known[SIM_KNOWN];
    unsigned known_count, known_next;
    bool served;
    struct sim_queue *next, **link; /* in the context's list */
    pthread_cond_t more, done;
    struct sim_stream_attributes attributes; /* under the lock of streamattr.c */
    struct sim_member *_Atomic captured;     /* while it is captured; changed under the graphs' lock */
};

struct sim_queue *sim_queue_new(struct CUctx_st *ctx, bool joins_legacy, bool is_legacy);
struct sim_queue *sim_queue_new_green(struct CUctx_st *green, bool is_legacy);
struct sim_queue *sim_queue_ref(struct sim_queue *queue);
void sim_queue_put(struct sim_queue *queue);
void sim_queue_close(struct sim_queue *queue);
void sim_queue_close_all(struct CUctx_st *ctx);
uint64_t sim_queue_push(struct sim_queue *queue, struct sim_op *op);
uint64_t sim_queue_append(struct sim_queue *queue, struct sim_op *op);
void sim_queue_serve(struct sim_queue *queue);
CUresult sim_queue_push_wait(struct sim_queue *queue, struct sim_op *op);
uint64_t sim_queue_position(struct sim_queue *queue);
bool sim_queue_over(struct sim_queue *queue, uint64_t seq);
void sim_queue_wait(struct sim_queue *queue, uint64_t seq);
void sim_queue_see(struct sim_queue *queue, uint64_t seq);
void sim_context_see(struct CUctx_st *ctx);
size_t sim_queue_tickets(struct CUctx_st *ctx, struct sim_ticket **tickets_p);
void sim_context_drain(struct CUctx_st *ctx);
void sim_queue_lock(void);
void sim_queue_unlock(void);
uint64_t sim_queue_pass(struct sim_queue *queue);

/* order.c */
void sim_order_join(struct sim_queue *queue, struct sim_op *op);
void sim_order_learn(struct sim_queue *queue, const struct sim_ticket *ticket, const struct sim_known *known,
                     unsigned count);
struct sim_known *sim_order_known(struct sim_queue *queue, unsigned *count_p);
bool sim_queue_knows(struct sim_queue *queue, struct sim_queue *other, uint64_t seq);
bool sim_queue_seen(struct sim_queue *queue, uint64_t seq);
bool sim_queue_gate(struct CUctx_st *ctx, const struct sim_ticket *tickets, size_t count);
void sim_queue_gate_prune(struct CUctx_st *ctx, bool all);

/* op.c */
void *sim_op_new(size_t bytes, CUresult (*run)(struct sim_op *op, struct sim_queue *queue));
struct sim_op *sim_op_copy(const struct sim_op *op);
void sim_op_drop(struct sim_op *op);
bool sim_op_after(struct sim_op *op, struct sim_queue *queue, uint64_t seq);
bool sim_ticket_add(struct sim_ticket **tickets, size_t *count, struct sim_queue *queue, uint64_t seq);
void sim_ticket_free(struct sim_ticket *tickets, size_t count);

/* --- stream.c, event.c ---------------------------------------------------------------------------------- */

struct CUstream_st {
    struct sim_object object;
    struct sim_queue *queue;
    unsigned flags;
    int priority;
};

/** The queue behind a stream handle, referenced; the constants and NULL mean the current context's own. For
 * work: of a captured stream too. */
CUresult sim_stream_queue(CUstream stream, bool per_thread, struct sim_queue **queue_p);
CUresult sim_stream_memory_queue(CUstream stream, bool per_thread, struct sim_queue **queue_p);
/** As sim_stream_queue, whatever the error of the stream's context and whatever it is captured into. */
CUresult sim_stream_find(CUstream stream, bool per_thread, struct sim_queue **queue_p);
/** As sim_stream_queue, but to look at the queue or to wait for it, which breaks a capture. */
CUresult sim_stream_idle_queue(CUstream stream, bool per_thread, struct sim_queue **queue_p);
CUresult sim_stream_make(struct CUctx_st *ctx, struct CUctx_st *green, CUstream *stream_p, unsigned flags,
                         int priority);
CUresult sim_stream_check(CUstream stream, bool per_thread);
CUresult sim_stream_enqueue(CUstream stream, bool per_thread, struct sim_op *op);
CUresult sim_stream_submit(struct sim_queue *queue, struct sim_op *op);

/* --- capture.c: what a capture forbids ------------------------------------------------------------------ */

extern atomic_uint sim_captures; /* how many are open */

CUresult sim_capture_check_unsafe(void);
CUresult sim_capture_check_context(struct CUctx_st *ctx);
void sim_capture_forget(struct sim_queue *queue);
void sim_capture_forget_context(struct CUctx_st *ctx);

/** CUDA_SUCCESS if a call that no capture can see may be made now; else 900, and what forbids it is
 * broken. */
static inline CUresult sim_unsafe(void)
{
    return atomic_load_explicit(&sim_captures, memory_order_relaxed) ? sim_capture_check_unsafe()
                                                                     : CUDA_SUCCESS;
}

#define SIM_REFUSE_UNSAFE()                                                                                  \
    do {                                                                                                     \
        CUresult unsafe_status = sim_unsafe();                                                               \
        if (unsafe_status != CUDA_SUCCESS)                                                                   \
            return unsafe_status;                                                                            \
    } while (0)

/* --- primary.c, green.c --------------------------------------------------------------------------------- */

CUresult sim_primary_retain(CUcontext *ctx_p, CUdevice ordinal);
CUresult sim_primary_release(CUdevice ordinal);
/** The green context whose view a context is. */
CUgreenCtx sim_green_of(const struct CUctx_st *view);

/* --- block.c: what lies at an address ------------------------------------------------------------------- */

enum sim_block_kind {
    SIM_BLOCK_DEVICE = 1,
    SIM_BLOCK_POOL,
    SIM_BLOCK_MANAGED,
    SIM_BLOCK_HOST,
    SIM_BLOCK_REGISTERED,
    SIM_BLOCK_MAPPED,
    SIM_BLOCK_IPC,
    SIM_BLOCK_IMPORTED,
    SIM_BLOCK_GRAPH,
};

#define SIM_ACCESS_HOST (1u << 31)

/* For whom a block of the device's memory is: the driver takes some for itself. */
enum sim_taker { SIM_FOR_PROGRAM, SIM_FOR_CONTEXT, SIM_FOR_MODULE, SIM_FOR_LAZY, SIM_FOR_ARRAY };

struct sim_block {
    struct sim_range range; /* first: blocks are found as ranges */
    enum sim_block_kind kind;
    enum sim_taker taker; /* of device memory */
    int device;           /* SIM_HOST for host memory */
    struct CUctx_st *ctx; /* compared, never followed; NULL where memory belongs to no context */
    unsigned long long ctx_id;
    unsigned long long id;
    unsigned flags;
    bool sync_memops;
    bool claimed;                /* a free has begun; work that came earlier may still touch it */
    bool freed;                  /* in stream order: whoever touches it now is wrong */
    unsigned readable, writable; /* a bit per device, and SIM_ACCESS_HOST */
    struct sim_arena *arena;
    size_t arena_offset, arena_bytes;
    size_t padding;          /* of the range: what a library on this driver added to what it was asked for */
    struct sim_chunk *chunk; /* small device blocks */
    struct CUmemPoolHandle_st *pool;
    void *owner;            /* of the room that made the block */
    struct sim_ticket left; /* its free in stream order, once the stream is there; the queue is referenced */
    struct sim_block *left_next;
};

extern struct sim_range *sim_blocks;  /* under the memory lock */
extern struct sim_range *sim_windows; /* all addresses that are ours, mapped or not; likewise */

struct sim_block *sim_block_new(enum sim_block_kind kind, uintptr_t start, size_t bytes);
struct sim_block *sim_block_at(CUdeviceptr address);
/** Memory of a graph that no launch has taken: its address is given away, and nobody knows it yet. */
bool sim_block_is_idle_node(const struct sim_block *block);
struct sim_block *sim_block_base(CUdeviceptr address);
bool sim_block_in_windows(CUdeviceptr address);
bool sim_block_covers(CUdeviceptr address, size_t bytes, unsigned devices, bool write);
void sim_block_drop(struct sim_block *block);
struct sim_block *sim_block_next(struct sim_block *block);

/* --- heap.c: device memory ------------------------------------------------------------------------------ */

/* With the memory lock held for writing, but for alloc and drop_context, which take it. */
CUresult sim_heap_charge(struct sim_device *device, size_t bytes);
void sim_heap_refund(struct sim_device *device, size_t bytes);
CUresult sim_heap_own(struct CUctx_st *ctx, enum sim_taker taker, size_t bytes, CUdeviceptr *address_p);
void sim_heap_disown(unsigned long long ctx_id, CUdeviceptr address);
size_t sim_heap_round(size_t bytes);
size_t sim_heap_align(size_t bytes);
CUresult sim_heap_arena(struct sim_device *device, struct sim_arena **arena_p);
CUresult sim_heap_alloc(struct CUctx_st *ctx, size_t bytes, struct sim_block **block_p);
CUresult sim_heap_take(struct CUctx_st *ctx, enum sim_taker taker, size_t bytes, struct sim_block **block_p);
void sim_heap_free(struct sim_block *block);
void sim_heap_leave(struct sim_block *block, struct sim_queue *queue, uint64_t seq);
void sim_heap_settle(const struct sim_device *device);
void sim_heap_drop_context(struct CUctx_st *ctx);

/** Waits as a free does, for all work of the block's context. */
CUresult sim_heap_release(CUdeviceptr address);

/* --- copy.c: moving bytes ------------------------------------------------------------------------------- */

struct sim_side {
    CUdeviceptr address; /* of the first byte that is moved */
    size_t pitch, slice; /* bytes from row to row and from plane to plane */
    bool pageable;       /* memory that the driver does not know */
    unsigned devices;    /* who reaches for it: a bit per device */
};

struct sim_copy {
    struct sim_side to, from;
    size_t width, height, depth;
};

bool sim_copy_side(struct sim_side *side, CUdeviceptr address, size_t pitch, size_t slice,
                   const struct sim_copy *copy, bool write);
/* How a copy was asked for: into a stream, without one, without one and to be waited for. */
enum sim_copy_kind { SIM_COPY_ASYNC, SIM_COPY_STREAMLESS, SIM_COPY_WAITS };

CUresult sim_copy_submit(CUstream stream, bool per_thread, const struct sim_copy *copy,
                         enum sim_copy_kind kind);

/* --- pool.c --------------------------------------------------------------------------------------------- */

void sim_pool_settle(struct sim_device *device);
bool sim_pool_squeeze(struct sim_device *device, size_t bytes);
CUresult sim_pool_free_now(struct sim_block *block);
CUresult sim_pool_drop_import(struct sim_block *block, struct sim_queue *queue);
CUresult sim_pool_free_later(struct sim_block *block, struct sim_queue *queue, bool *serve_p);
bool sim_pool_covers(CUdeviceptr address, size_t bytes, unsigned devices, bool write);

/* --- host.c, ipc.c: what dies with a context --------------------------------------------------------- */

void sim_host_drop_context(struct CUctx_st *ctx);
void sim_ipc_drop_context(struct CUctx_st *ctx);

/* --- array.c, managed memory ---------------------------------------------------------------------- */

CUresult sim_array_memory(CUarray handle, CUdeviceptr *address_p, size_t *bytes_p);
CUresult sim_array_shape(CUarray handle, size_t *row_bytes_p, size_t *plane_bytes_p);
CUresult sim_managed_free(struct sim_block *block);
unsigned long long sim_next_id(void);

#endif
