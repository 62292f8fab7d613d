/* answer.h - questions about addresses and about memory, where the vendor's answer is not the program's.
 *
 * Floor 3. A block of the pool lies in an allocation of the vendor's that is larger: so the vendor is asked
 * what it knows (where the memory is, who may reach it), and what is the block's own (where it begins and
 * ends, which allocation it is) is put in its place. An address of ours that no block of the program's lies
 * at is as unknown as natively. True: answered, with a status for the program. */
#ifndef MS_HOOKS_SERVE_ANSWER_H
#define MS_HOOKS_SERVE_ANSWER_H

#include "hooks/dispatch.h"

/** hipMemPtrGetInfo: out = size, key = address. */
bool ms_answer_BLOCK_SIZE(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuMemGetAddressRange_v2: out = base, pitch = size, key = address. */
bool ms_answer_RANGE(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuPointerGetAttribute: out = data, flags = attribute, key = address. */
bool ms_answer_ATTRIBUTE(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuPointerGetAttributes: bytes = how many, given = attributes, out = data pointers, key = address. */
bool ms_answer_ATTRIBUTES(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuPointerSetAttribute: out = value, flags = attribute, key = address. */
bool ms_answer_POINTER(const struct ms_target *target, const struct ms_args *args, int *status_p);
bool ms_answer_SET_ATTRIBUTE(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuMemGetAccess: for memory that is mapped by handle, and the pool's is none to the program
 * (serve_mapped.c). */
bool ms_answer_ACCESS(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuMemGetInfo_v2: out = free, pitch = total. */
bool ms_answer_MEMINFO(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** cuMemPoolGetAttribute: out = value, flags = attribute, key = pool. */
bool ms_answer_MEMPOOL_GET(const struct ms_target *target, const struct ms_args *args, int *status_p);

/** aclrtGetMemInfo: flags = kind of memory, out = free, pitch = total. */
bool ms_answer_MEMINFO_OF(const struct ms_target *target, const struct ms_args *args, int *status_p);

/** totals.c: nvmlDeviceGetMemoryInfo: given = the library's device, out = structure, flags = its version. */
bool ms_answer_CARD_MEMORY(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** totals.c: out = the structure, and its total lies at flags; device = index. */
bool ms_answer_TOTAL(const struct ms_target *target, const struct ms_args *args, int *status_p);

/** An address that the vendor knows nothing of, and at which nobody can map memory: its answer is that for an
 * unknown pointer. */
#define MS_NOWHERE 0x1000u

/* memops.c: the blocks whose copies the program wants to be synchronous. */
void ms_memops_set(uint64_t block_id, bool on);
bool ms_memops_get(uint64_t block_id);

#endif
