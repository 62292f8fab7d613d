/* pair.h - putting the Python frames of a moment between the native frames of the same moment.
 *
 * Floor 1, for src/unwind alone. Reads what it is given, and nothing else. */
#ifndef MS_UNWIND_PYTHON_PAIR_H
#define MS_UNWIND_PYTHON_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/python/python.h"

/** Both stacks, innermost first. */
struct ms_pairing {
    const uintptr_t *frames, *sps; /* native: return addresses, and the stack pointer in each frame */
    unsigned count;                /* of them that were walked */
    unsigned shown;                /* of them that are to be told; the stack is cut there */
    bool is_cut;                   /* there are more than were walked */
    uintptr_t end;                 /* the stack pointer further out than all of them; 0: not known */
    uintptr_t stack_end;           /* the upper end of the thread's own stack; 0: not known */
    uintptr_t loop, loop_end; /* code of the evaluation loop, where it runs one frame each; 0: not known */
    const struct ms_python_frame *python;
    unsigned python_count;
};

enum { MS_PAIRED_MAX = MS_STACK_DEPTH_MAX + MS_PYTHON_DEPTH_MAX };

/** Fills `merged` (MS_PAIRED_MAX) with frames as the tree has them, and returns how many; 0 if it does not
 * come out which Python frame belongs where. Each run of Python frames comes right inside of the native frame
 * of the loop that runs it; those that are further out than all native frames come last. */
unsigned ms_pair_frames(const struct ms_pairing *pairing, uintptr_t *merged);

#endif
