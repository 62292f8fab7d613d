/* serve_mapped.c - calls for memory that is mapped by handle, made about the pool's.
 *
 * Under MEMSHIM_BACKING=vmm a block of the program's lies in such memory, and natively it would not: the
 * driver refuses a handle to it, and to unmap it. So it is asked about an address that is nobody's, and its
 * refusal is the program's. No lock, no allocation. */

#include "hooks/serve/answer.h"
#include "hooks/serve/serve.h"
#include "pool/api/pool.h"

/* The address lies in the pool's memory. Any may be asked about: only a range that is mapped by handle would
 * be answered otherwise than as nobody's. */
static bool is_the_pools(uint64_t address)
{
    return ms_serve_matters() && ms_pool_owns(address);
}

bool ms_serve_HANDLE_RETAIN(unsigned row, const struct ms_target *target, const void *frame,
                            const void *caller, const struct ms_args *args, int *status_p)
{
    CUmemGenericAllocationHandle handle = 0;
    struct ms_hook_scope scope;

    (void)row, (void)frame, (void)caller;
    if (!args->out || !is_the_pools(args->key))
        return false;
    ms_hook_scope_enter(&scope);
    *status_p = (int)((CUresult(*)(CUmemGenericAllocationHandle *, void *))target->real)(
        &handle, (void *)(uintptr_t)MS_NOWHERE);
    ms_hook_scope_leave(&scope);
    return true;
}

bool ms_serve_HANDLE_UNMAP(unsigned row, const struct ms_target *target, const void *frame,
                           const void *caller, const struct ms_args *args, int *status_p)
{
    struct ms_hook_scope scope;

    (void)row, (void)frame, (void)caller;
    if (!is_the_pools(args->given))
        return false;
    ms_hook_scope_enter(&scope);
    *status_p = (int)((CUresult(*)(CUdeviceptr, size_t))target->real)(MS_NOWHERE, args->bytes);
    ms_hook_scope_leave(&scope);
    return true;
}
