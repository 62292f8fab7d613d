/* invalid_free.h - a free that was refused: what it was about, for the report's findings.
 *
 * Floor 3, for whoever answers frees. Nothing is done before a free is refused. */
#ifndef MS_HOOKS_OBSERVE_INVALID_FREE_H
#define MS_HOOKS_OBSERVE_INVALID_FREE_H

#include "hooks/dispatch.h"

/** The free that `call`, between begin and end, asked for was refused, and its `key` in `space` is no live
 * block's. Looks in the record (ledger.h), takes the program's stack, and counts. Inside a hook scope; no
 * lock held; calls nobody. */
void ms_invalid_free_of_call(const struct ms_call *call, enum ms_space space, uint64_t key);
/** As ms_invalid_free_of_call, of a handle that nobody has a reference to any more; `key` is its number in
 * the record. */
void ms_invalid_free_of_handle(const struct ms_call *call, uint64_t key);
/** As ms_invalid_free_of_call, of memory that a library frees and makes by handle (NCCL): call->args.key is
 * where it is mapped. */
void ms_invalid_free_of_buffer(const struct ms_call *call);
/** The record counts a registration with a library (NCCL) until it ends. Memory that is no device's, or
 * longer than its block, is a finding at once. Returns where it is counted, for
 * ms_ledger_invalid_free_undone; 0 for nowhere. */
uint32_t ms_invalid_free_of_registration(const struct ms_call *call);
/** `call` has failed in a child of fork whose parent had used the GPU, with the status by which CUDA and HIP
 * refuse everything there: counted once for each call of the program's. */
void ms_invalid_free_forked(struct ms_call *call, int status);
/** As ms_invalid_free_of_call, for a free that has no frame of its own: `outer` is the runtime's around it,
 * or NULL; then the wrapper of `row` was called from `caller`. */
void ms_invalid_free_served(const struct ms_call *outer, unsigned row, const void *frame, const void *caller,
                            uint64_t address);

/** A block, as far as anybody knows it. */
struct ms_block_range {
    uint64_t begin, bytes; /* 0 bytes: not known */
    int device;            /* MS_DEVICE_NONE: not known */
    uint64_t number;       /* of memory that is mapped there; 0 for none */
};
/** The block that the address lies in: the pool's and the record's word first, then the driver's. False if it
 * is no device's memory. Mappings that lie side by side are one. No lock held. */
bool ms_block_range_find(uint64_t address, struct ms_block_range *range_p);

#endif
