/* ipc.h - memory of one process in another, where the pool packs.
 *
 * Floor 3. The vendor's handle of a packed block would open the whole allocation that it lies in, neighbours
 * and all. So the exporter hands out a token (record/ipc/token.h) of the same 64 bytes, which no vendor's
 * open accepts, and an importer under memshim finds out through the exporter's ledger what it stands for: the
 * vendor's handle of the allocation, opened by the vendor as ever, and a place in it. A block that is an
 * allocation of the vendor's has the vendor's own handle.
 *
 * What a program frees is exported no more, whoever has it open; natively too nobody may touch it then.
 *
 *   ipc_export.c     tokens that were given out            ipc_import.c     what is opened here
 *   ipc_transport.c  beside MPI, UCX and NVSHMEM nothing is packed that could be exported
 *
 * Locks: MS_RANK_OBJECT around each file's tables, never across a vendor call. Memory is the arena's. */
#ifndef MS_HOOKS_FOLLOW_IPC_H
#define MS_HOOKS_FOLLOW_IPC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "hooks/dispatch.h"

struct ms_pool_block;

/* ipc_export.c */

/** cuIpcGetMemHandle: out = handle, key = address. */
bool ms_answer_EXPORT(const struct ms_target *target, const struct ms_args *args, int *status_p);
/** A block that was pinned has been freed by the program: between the two halves of the pool's free. */
void ms_ipc_block_freed(const struct ms_pool_block *block);

/* ipc_import.c: around the vendor's open and close. The first may change the wrapper's parameter
 * (args.turned) or answer in the vendor's place (call->answered); the second takes the vendor's status and
 * returns the program's. */

void ms_ipc_open_begin(struct ms_call *call);
void ms_ipc_close_begin(struct ms_call *call);
int ms_ipc_turned_back(struct ms_call *call, int status);
static inline int ms_ipc_turned(struct ms_call *call, int status)
{
    return MS_LIKELY(!call->ipc) ? status : ms_ipc_turned_back(call, status);
}

/** An imported block, as the program sees it. */
struct ms_ipc_view {
    uint64_t address, bytes;
    uint64_t id; /* for BUFFER_ID: neither the vendor's nor the pool's */
};
/** True if the address lies in another process's allocation that packed blocks were opened in; `*found_p`
 * says whether it lies in one of those blocks. */
bool ms_ipc_find(uint64_t address, struct ms_ipc_view *view_p, bool *found_p);

/* ipc_transport.c */

/* Requests until the next look for a transport, since it reads the clock; 0: nothing is to be looked for. Of
 * two threads that count at once one may not be counted, and hits are not: every few dozen requests one is
 * none. */
extern MS_HIDDEN _Atomic unsigned ms_ipc_look_in;
extern MS_HIDDEN _Atomic uint64_t ms_ipc_next_look_ns; /* 0: at once */
void ms_ipc_look(void);
/** Before a request to the pool: whether anything that is exported from now on must be an allocation of the
 * vendor's. */
static inline void ms_ipc_before_alloc(void)
{
    unsigned left = atomic_load_explicit(&ms_ipc_look_in, memory_order_relaxed);

    if (MS_LIKELY(!left))
        return;
    if (left > 1 && atomic_load_explicit(&ms_ipc_next_look_ns, memory_order_relaxed))
        atomic_store_explicit(&ms_ipc_look_in, left - 1, memory_order_relaxed);
    else
        ms_ipc_look();
}
/** Something may be loaded soon: called before dlopen. */
void ms_ipc_loading(void);
/** The transport that was found, as a file's name; NULL for none. */
const char *ms_ipc_transport(void);

/** A context has died: what it exported is gone, and what was open in it. */
void ms_ipc_context_ended(uint64_t context);
void ms_ipc_exports_context_ended(uint64_t context);
void ms_ipc_imports_context_ended(uint64_t context);

#endif
