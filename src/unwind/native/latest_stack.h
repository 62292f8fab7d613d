/* latest_stack.h - the stack that the calling thread's latest call was made from, if this one is made from
 * the very same, where nothing is to be walked.
 *
 * Floor 1, for calls that are answered in no more time than a call of ms_stack_capture takes. The caller
 * holds off whoever else would take a stack in this thread (base/thread/guard.h), and knows that no object
 * was loaded or unloaded since the latest one (base/thread/slow_path.h). */
#ifndef MS_UNWIND_NATIVE_LATEST_STACK_H
#define MS_UNWIND_NATIVE_LATEST_STACK_H

#include <stdatomic.h>

#include "unwind/python/python.h"
#include "unwind/native/recall.h"

/** As ms_stack_capture, in the calling thread; 0 if it has to be asked. */
static inline MS_RAW ms_stack_id ms_stack_again(const struct ms_thread *me, const void *frame,
                                                const void *caller)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_python_is_here, memory_order_relaxed))
               ? 0
               : ms_recall_again(ms_recall_of(me), frame, (uintptr_t)caller);
}

#endif
