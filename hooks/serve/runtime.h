/* runtime.h - calls of the CUDA runtime's that are answered in the runtime's own hook.
 *
 * Floor 3. cudaMalloc ends in cuMemAlloc_v2 of the context that is current, cudaFree in cuMemFree_v2, and
 * those in stream order likewise. Where that is all there is to it, and the pool has what is asked for at
 * hand, neither the runtime nor the driver's hook is needed. The fast path is tried first (hits.h), then the
 * slow path with what the pool has at hand (serve.c). All else goes through the runtime to the driver's hook.
 * A thread learns of a runtime that this is so when a call of its went all the way and was answered from the
 * pool. */
#ifndef MS_HOOKS_SERVE_RUNTIME_H
#define MS_HOOKS_SERVE_RUNTIME_H

#include <stdatomic.h>

#include "base/objects/objects.h"
#include "hooks/serve/hits.h"
#include "vendor/gpu.h"

/** A runtime as this thread knows it: the driver that its `real` function ends in, NULL if it has to be asked
 * itself. It holds until something is loaded or unloaded. */
struct ms_runtime {
    const void *real;
    const struct ms_gpu *gpu;
    uint64_t changes; /* ms_objects_changes() */
};
/* Each kind of call has its own, since it is another function of the runtime's. */
_Static_assert(MS_HIT_KINDS * sizeof(struct ms_runtime) == MS_OWN_RUNTIMES_BYTES,
               "its place in thread_own.h");
static MS_INLINE const struct ms_runtime *ms_runtime_mine(enum ms_hit which)
{
    return (const struct ms_runtime *)(const void *)ms_thread.own->runtimes + which;
}

/** A call to `target` was answered by the hook of a driver. */
void ms_runtime_learn(enum ms_hit which, const struct ms_target *target, const struct ms_gpu *driver);
static inline bool ms_runtime_knows(enum ms_hit which, const struct ms_target *target)
{
    const struct ms_runtime *mine = ms_runtime_mine(which);

    return mine->real == target->real && mine->changes == ms_objects_changes();
}

/** For calls of which ms_runtime_knows the function, and that ms_hit_may answer. */
bool ms_runtime_alloc(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                      const struct ms_args *args);
bool ms_runtime_free(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                     const struct ms_args *args);
/** The latest ms_objects_changes(), + 1, for which a thread has learned: then frees are answered as well. */
extern MS_HIDDEN _Atomic uint64_t ms_runtime_frees;

static MS_INLINE bool ms_serve_NAME_ALLOC(unsigned row, const struct ms_target *target, const void *frame,
                                          const void *caller, const struct ms_args *args, int *status_p)
{
    *status_p = 0;
    return args->hit && ms_runtime_knows(args->hit, target) && ms_runtime_mine(args->hit)->gpu &&
           ms_hit_may(&ms_thread) && ms_runtime_alloc(row, target, frame, caller, args);
}

static MS_INLINE bool ms_serve_NAME(unsigned row, const struct ms_target *target, const void *frame,
                                    const void *caller, const struct ms_args *args, int *status_p)
{
    *status_p = 0;
    return args->hit &&
           atomic_load_explicit(&ms_runtime_frees, memory_order_relaxed) == ms_objects_changes() + 1 &&
           ms_hit_may(&ms_thread) && ms_runtime_free(row, target, frame, caller, args);
}

#endif
