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
    /* None: inner blocks that a program reports by include/memshim.h, and by NVTX. */
    MS_ROW_INNER = MS_ROW_COUNT,
    MS_ROW_INNER_NVTX,
    MS_ROW_RECORDED /* what has a name in the record */
};

/** The class of a row, by which all is decided that is done around its calls (classes.def). */
enum ms_class {
#define MS_CLASS(name, before, after, takes_stack) MS_CLASS_##name,
#include "hooks/table/classes.def"
    MS_CLASS_COUNT
};

/** True of a call that allocates memory by itself. */
static inline bool ms_class_allocates(enum ms_class class)
{
    return class == MS_CLASS_ALLOC || class == MS_CLASS_ALLOC_ASYNC || class == MS_CLASS_ALLOC_FLAGS ||
           class == MS_CLASS_PITCH || class == MS_CLASS_HANDLE_CREATE || class == MS_CLASS_RECYCLED_CREATE;
}

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
    X(13, "libcudart.so.13", __VA_ARGS__)                                                                    \
    X(14, "libcudart.so.14", __VA_ARGS__) X(15, "libcudart.so.15", __VA_ARGS__)

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
