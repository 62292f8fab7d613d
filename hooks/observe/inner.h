/* inner.h - reports of inner blocks: pieces that an allocator of the program's own gives it.
 *
 * Floor 3. Reporters: PyTorch (table/pytorch.def), programs by include/memshim.h (inner.c), and what speaks
 * NVTX (nvtx_memory.c). Each block gets the stack of the call. Any thread; the allocator's own locks may be
 * held, so that nobody is called back but the vendor, about addresses, where a program does not say the
 * device. */
#ifndef MS_HOOKS_OBSERVE_INNER_H
#define MS_HOOKS_OBSERVE_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks/hook.h"
#include "hooks/hook_scope.h"
#include "vendor/abi/pytorch.h"

/** True if this report counts: then the hook scope is entered, and is left by ms_hook_scope_leave_brief. */
bool ms_inner_enter(struct ms_hook_scope *scope);
/** Within it: a block of `heap` (ms_inner_alloc) was given, from the stack of the wrapper. */
void ms_inner_record(uint64_t heap, uint64_t address, uint64_t bytes, int device, enum ms_row row,
                     const void *frame, const void *caller);

/** True if a piece of so many bytes at the address can be one of a device's block, as far as that is known.
 * Where it cannot, a line in diagnostics[] says that `who` told it. Within the scope. */
bool ms_inner_fits(const char *who, uint64_t address, uint64_t bytes);

/** PyTorch's word of one block, or that there was no memory for one. */
struct ms_inner_report {
    uint64_t address;
    int64_t bytes;      /* negative: it was taken back */
    bool is_refused;    /* no memory; it has no address */
    bool is_host;       /* its host allocator says it */
    bool has_reserved;  /* the release says it: */
    uint64_t reserved;  /* the bytes of the allocator's segments on the device */
    uint64_t allocated; /* of its pieces; only where it is refused */
    struct c10_device device;
};
/** The number of PyTorch's device; false for host memory, and what is no memory at all. */
bool ms_inner_device(struct c10_device device, int *number_p);
/** Records it, as said by the function of `row`; `frame` and `caller` are those of the wrapper
 * (ms_stack_capture). */
void ms_inner_reported(enum ms_row row, const struct ms_inner_report *report, const void *frame,
                       const void *caller);

#endif
