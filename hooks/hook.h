/* hook.h - what a hook is, and the rules for code that runs inside somebody else's process.
 *
 * Rules, for every line under hooks/ and below it:
 *   1. Never abort, exit, raise, or write to standard output (but a report that is asked for there,
 * MEMSHIM_REPORT=-). What cannot be handled is passed to the vendor and noted for the report.
 *   2. The first call may come from anywhere: before our constructor, inside another library's constructor
 * that a third thread waits for, inside pthread_once of the vendor's runtime, from a signal handler. So: no
 * dlopen, no malloc, no stdio.
 *   3. No lock of ours is held across a vendor call.
 *   4. errno, the runtime's last error and signal dispositions stay as they are. Cancellation is deferred
 * inside a hook.
 *   5. Outputs of a failed call are the vendor's business: they are neither read nor written.
 *   6. A hook entered while the thread already runs our code passes straight through (base/thread/guard.h).
 *
 * A hook is a row of a .def file. The rows expand into an enumerator here, and in the .c file of the same
 * name into one body per function, one exported symbol, and MS_WRAPPER_SLOTS wrappers. A wrapper belongs to a
 * slot, and a slot holds one real function: so two runtimes in one process, and variants that only a lookup
 * can reach, each keep their own. */
#ifndef MS_HOOKS_HOOK_H
#define MS_HOOKS_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "unwind/stack.h"

/** Rows that have wrappers; their numbers are the `api` of the ledger. */
enum ms_row {
#define MS_HOOK(result, symbol, ...)  MS_ROW_##symbol,
#define MS_HOOK0(result, symbol, ...) MS_ROW_##symbol,
#define MS_PASS(symbol, class, reason)
#include "hooks/table/rows.def"
#undef MS_HOOK
#undef MS_HOOK0
#undef MS_PASS
    MS_ROW_COUNT,
    MS_ROW_RECORDED = MS_ROW_COUNT /* what has a name in the record */
};

/** The class of a row: what dispatch.c does around its calls. */
enum ms_class {
    MS_CLASS_ALLOC,         /* a block appears */
    MS_CLASS_ALLOC_ASYNC,   /* a block appears when a stream gets there */
    MS_CLASS_PITCH,         /* a block appears whose rows the vendor pads */
    MS_CLASS_FREE,          /* a block goes */
    MS_CLASS_FREE_ASYNC,    /* a block goes when a stream gets there */
    MS_CLASS_HANDLE_CREATE, /* physical memory by handle */
    MS_CLASS_HANDLE_RETAIN,
    MS_CLASS_HANDLE_RELEASE,
    MS_CLASS_HANDLE_MAP,
    MS_CLASS_HANDLE_UNMAP,
    MS_CLASS_RECYCLED_CREATE, /* the same four where handles are recycled (serve_handles.h) */
    MS_CLASS_RECYCLED_RELEASE,
    MS_CLASS_RECYCLED_MAP,
    MS_CLASS_RECYCLED_SHARE, /* somebody else may reach the memory from now on */
    MS_CLASS_RECYCLED_ASK,   /* a question that is about a handle */
    MS_CLASS_DEVICE_END,     /* memory may go with the library, or with all its devices */
    MS_CLASS_IMPORT,         /* another process's memory; opened again it is the same block */
    MS_CLASS_IMPORT_END,
    MS_CLASS_IPC_OPEN, /* likewise, where a token may stand for the vendor's handle (ipc.h) */
    MS_CLASS_IPC_CLOSE,
    MS_CLASS_GRAPH_NODE,
    MS_CLASS_CONTEXT_CREATE,
    MS_CLASS_CONTEXT_END,
    MS_CLASS_PRIMARY_RETAIN, /* the first one makes the context */
    MS_CLASS_PRIMARY_END,
    MS_CLASS_PRIMARY_RESET,
    MS_CLASS_MODULE_LOAD, /* code, and its variables, come onto the device */
    MS_CLASS_MODULE_END,
    /* a green context begins: streams of its own, the memory of its device's primary context */
    MS_CLASS_GREEN_CREATE,
    MS_CLASS_LOOKUP,       /* cuGetProcAddress */
    MS_CLASS_ENTRY_POINT,  /* the runtime's way to it */
    MS_CLASS_NAME,         /* names the nested driver calls */
    MS_CLASS_NAME_ALLOC,   /* the same, and takes the call stack */
    MS_CLASS_COMMUNICATOR, /* the same, of which of NCCL's communicators (communicators.h) */
    /* Buffers of a library that ends in another interface, recycled whole (buffers.c). */
    MS_CLASS_BUFFER_ALLOC,
    MS_CLASS_BUFFER_FREE,
    MS_CLASS_BUFFER_HOLD, /* one is registered, by a holder */
    MS_CLASS_BUFFER_RELEASE,
    MS_CLASS_BUFFER_HOLDER_END,
    MS_CLASS_BUFFER_GROUP, /* what is asked for from here on is done when the group ends */
    MS_CLASS_BUFFER_GROUP_END,
    /* Questions about addresses and memory, answered for blocks of the pool (answer.c); not recorded. */
    MS_CLASS_RANGE,
    MS_CLASS_BLOCK_SIZE,
    MS_CLASS_ATTRIBUTE,
    MS_CLASS_ATTRIBUTES,
    MS_CLASS_POINTER, /* all that HIP says of an address */
    MS_CLASS_SET_ATTRIBUTE,
    MS_CLASS_MEMINFO,
    MS_CLASS_MEMINFO_OF, /* the same of a kind of memory: one argument more */
    MS_CLASS_ACCESS,
    MS_CLASS_EXPORT, /* a handle for other processes (ipc.h) */
    /* Calls that the pool must know of (watch.c); not recorded. */
    MS_CLASS_SYNC,        /* the program waits for a context */
    MS_CLASS_STREAM_WAIT, /* it waits for a stream: tells whether its context is sound */
    MS_CLASS_CAPTURE,     /* a capture begins, or ends */
    MS_CLASS_STREAM_CREATE,
    MS_CLASS_STREAM_END,
    MS_CLASS_GRAPH, /* a graph, or what runs one, appears */
    MS_CLASS_GRAPH_END,
    MS_CLASS_GRAPH_TRIM, /* what the device keeps for graphs goes back */
    MS_CLASS_GREEN,      /* such a one as a context, which is not served */
    MS_CLASS_MEMPOOL,    /* a pool of the program's appears */
    MS_CLASS_MEMPOOL_END,
    MS_CLASS_MEMPOOL_CURRENT, /* a pool is the one that requests without one come from */
    MS_CLASS_MEMPOOL_GET,     /* what it says of itself: answered (serve_mempool.c) */
    MS_CLASS_MEMPOOL_SET,
    MS_CLASS_MEMPOOL_TRIM,
    MS_CLASS_PEER,   /* a context may reach another's memory, or no longer */
    MS_CLASS_PIN,    /* a block is shared with somebody whom a free does not reach */
    MS_CLASS_LISTEN, /* somebody wants to hear of every call (listeners.h); not recorded */
    /* The program names what it does (phases.h). */
    MS_CLASS_PHASE_MARK,
    MS_CLASS_PHASE_PUSH,
    MS_CLASS_PHASE_POP,
    MS_CLASS_PHASE_BEGIN, /* the answer is its number */
    MS_CLASS_PHASE_END,
    MS_CLASS_USE, /* memory is used (uses.h); not hooked without MEMSHIM_USES, and not recorded */
    /* Only whether there was memory is looked at (no_memory.h). */
    MS_CLASS_STATUS,
    MS_CLASS_LAUNCH, /* the same, and memory is used */
    MS_CLASS_COUNT
};

enum ms_hook_outcome { MS_OUTCOME_SERVED, MS_OUTCOME_FOLLOWED };

/** The interfaces, see families.def. */
enum ms_api {
#define MS_FAMILY_ROW(api, ...) MS_API_##api,
#include "hooks/table/families.def"
#undef MS_FAMILY_ROW
    MS_API_COUNT
};

/* The version nodes of the CUDA runtime, each the SONAME of its library. A function of the runtime is
 * exported once at each, and once for references without a version: so a call reaches the runtime that it was
 * linked with, whatever its return address says (a tail call shows its caller's caller). libmemshim.map lists
 * the same nodes. */
#define MS_RUNTIME_NODES(X, ...)                                                                             \
    X(10_0, "libcudart.so.10.0", __VA_ARGS__)                                                                \
    X(10_1, "libcudart.so.10.1", __VA_ARGS__)                                                                \
    X(10_2, "libcudart.so.10.2", __VA_ARGS__)                                                                \
    X(11_0, "libcudart.so.11.0", __VA_ARGS__)                                                                \
    X(12, "libcudart.so.12", __VA_ARGS__)                                                                    \
    X(13, "libcudart.so.13", __VA_ARGS__) X(14, "libcudart.so.14", __VA_ARGS__)                              \
        X(15, "libcudart.so.15", __VA_ARGS__)

enum ms_version_node {
    MS_NODE_NONE,
#define MS_NODE(tag, name, unused) MS_NODE_##tag,
    MS_RUNTIME_NODES(MS_NODE, )
#undef MS_NODE
        MS_NODE_COUNT
};

/** Wrappers per row besides the exported symbol: that many real functions of one name can be told apart. */
#define MS_WRAPPER_SLOTS 4

struct ms_row_info {
    const char *symbol;
    const char *lookup;    /* base name for cuGetProcAddress, NULL if it has none */
    int version;           /* the first CUDA version that answers that name with this symbol */
    bool per_thread;       /* it does so under the per-thread default stream flag */
    uint8_t api;           /* enum ms_api */
    uint8_t class;         /* enum ms_class */
    uint8_t outcome;       /* enum ms_hook_outcome */
    void *const *wrappers; /* MS_WRAPPER_SLOTS of them */
};

extern const struct ms_row_info *const ms_rows[MS_ROW_COUNT];

struct ms_gpu_vendor;
struct ms_family {
    const char *tag;        /* "cuda_driver" */
    const char *anchors[2]; /* an object that defines both is a library of the interface */
    /* Whose devices and memory its functions are about: blocks are recorded and served there. NULL: where its
     * functions end in another's, and only name what that records. */
    const struct ms_gpu_vendor *vendor;
    int no_memory[2]; /* the statuses that say so */
};
extern const struct ms_family ms_families[MS_API_COUNT];

static inline bool ms_is_no_memory(unsigned api, int status)
{
    return status != 0 &&
           (status == ms_families[api].no_memory[0] || status == ms_families[api].no_memory[1]);
}

struct ms_gpu;

/** The target of a wrapper's call: the real function, and the driver library it belongs to (NULL for the
 * runtime's). */
struct ms_target {
    void *real;
    const struct ms_gpu *gpu;
};

#endif
