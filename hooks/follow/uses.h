/* uses.h - which memory a call uses: copies, fills, and the arguments of kernels (class USE).
 *
 * Floor 3, for the wrappers of hooks/table/cuda_uses.def. Nothing happens before the vendor's function, nor
 * after one that failed; what it was given is read when it has read it itself. A use is told to the ledger by
 * its address (record/live/uses.h), without a lock. uses.c knows the calls, layouts.c the parameters of
 * kernels. */
#ifndef MS_HOOKS_FOLLOW_USES_H
#define MS_HOOKS_FOLLOW_USES_H

#include "base/thread/guard.h"
#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_held.h"
#include "hooks/hook.h"
#include "record/live/uses.h"

/** The arguments of a call, by the fields that its row names. */
struct ms_use {
    uint64_t to, from, bytes;  /* of a copy or a fill; `bytes` of each */
    const void *contents;      /* host memory that was copied to the device: it may hold addresses */
    const CUDA_MEMCPY2D *flat; /* copies of rows */
    const CUDA_MEMCPY3D *deep;
    const CUDA_MEMCPY3D_PEER *peer;
    const CUDA_MEMSET_NODE_PARAMS *fill;
    const CUDA_MEMCPY3D_BATCH_OP *deep_batch;
    const CUdeviceptr *tos, *froms; /* batches: as many as `count` */
    const size_t *sizes;
    size_t count;
    const CUstreamBatchMemOpParams *ops;
    const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch;
    CUfunction kernel; /* a launch: its arguments, in one of two forms */
    void **arguments, **extra;
    const CUDA_KERNEL_NODE_PARAMS_v1 *node; /* the arguments of a kernel node; version 2 has more behind it */
    const CUDA_KERNEL_NODE_PARAMS_v2 *node_v2;
    const CUgraphNodeParams *any_node;
    CUkernel *kernels;    /* what was handed out: `count` of them */
    uint64_t held;        /* something has this address from now on that kernels read */
    const void *resource; /* the same, of a texture: what CUDA_RESOURCE_DESC says */
    uint64_t shared;      /* other processes have this address from now on */
    uint8_t asked;   /* enum ms_asked, of what may be refused for want of memory (no_memory.h); 0: a launch */
    uint64_t exec;   /* of a launch: the graph; */
    uint64_t change; /* of any other call: a graph that is another now */
    bool launches, launches_graph;
    bool into_graph; /* no use yet, but a graph has the addresses */
    bool unread;     /* what it uses is not read */
};

/** Rows of `width` bytes, `pitch` bytes from each other. */
static inline uint64_t ms_rows_bytes(uint64_t pitch, uint64_t height, uint64_t width)
{
    return height ? pitch * (height - 1) + width : 0;
}

struct ms_target;
/** Who used it: the wrapper's row, the latest event before the vendor was called, and where from. */
struct ms_use_call {
    unsigned row;
    uint64_t begun;
    const void *frame, *caller;
};
/** The vendor's function has succeeded. */
void ms_use_told(const struct ms_target *target, const struct ms_use *use, const struct ms_use_call *call);
/** A node was added whose parameters are these; NULL: of a type that is a function of its own. */
void ms_use_of_node(const struct ms_gpu *gpu, const CUgraphNodeParams *node);

/** A node of the executable graph was given these parameters (graph_execs.h). */
void ms_use_of_exec(const struct ms_gpu *gpu, uint64_t exec, const CUgraphNodeParams *node);

static inline uint64_t ms_use_begins(void)
{
    return ms_uses_wanted() ? ms_uses_latest() : 0;
}

static inline bool ms_use_is_wanted(int status)
{
    return status == 0 && ms_uses_wanted() && ms_thread.depth == 0;
}

/* layouts.c: what a kernel's parameters are. */

/** Once, where MEMSHIM_USES is on; again in a fork child. */
void ms_layouts_start(void);
/** A module or a context is gone: handles may be other functions'. */
void ms_layouts_forget(void);
/** `kernel` is a kernel of a library: launched as a function, it has to be asked about as a kernel. */
void ms_layout_is_kernel(const struct ms_gpu *gpu, CUkernel kernel);
/** Each argument of a launch, with its size. False if the driver does not say what there is. Asks the driver,
 * the first time. */
typedef void (*ms_argument_func_t)(void *arg, const void *argument, size_t bytes);
bool ms_layout_each(const struct ms_gpu *gpu, CUfunction kernel, void *const *arguments,
                    ms_argument_func_t each, void *arg);

#endif
