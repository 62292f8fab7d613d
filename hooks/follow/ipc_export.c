/* ipc_export.c - handles of the pool's blocks; see ipc.h.
 *
 * Runs in the program's threads, inside a hook scope. One lock around the table of what is exported; the
 * vendor is called without it. */
#include "hooks/follow/ipc.h"

#include <string.h>

#include "base/keyed.h"
#include "base/lock.h"
#include "base/log.h"
#include "vendor/gpu.h"
#include "hooks/init.h"
#include "hooks/serve/serve.h"
#include "record/ipc/ipc_exports.h"
#include "record/live/uses.h"
#include "pool/api/pool.h"

#define NOWHERE 0x1000u /* no memory of the vendor's, and none that anybody can map */
#define NO_ROW  UINT32_MAX

/* A live block of the pool that a handle was given out for, by its address: pinned once. */
struct exported {
    struct ms_keyed by;
    uint64_t context;
    uint32_t row; /* of the ledger's table, of a packed block */
};

typedef CUresult (*export_func_t)(CUipcMemHandle *, CUdeviceptr);

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table exports = MS_KEYED_TABLE(struct exported, 64, 256);

/* True if the block is in the table now with this row. False if it was there already (its row is in *row_p),
 * or without memory. */
static bool ipc_export_enter(const struct ms_pool_block *block, uint32_t row, uint32_t *row_p)
{
    const struct exported *known;
    struct exported *entry;

    ms_lock(&lock);
    known = *ms_keyed_find(&exports, block->address);
    entry = known ? NULL : ms_keyed_add(&exports, block->address);
    *row_p = known ? known->row : NO_ROW;
    if (entry)
        *entry = (struct exported){.by = entry->by, .context = block->context, .row = row};
    ms_unlock(&lock);
    return entry != NULL;
}

static uint32_t known_row(uint64_t address)
{
    ms_lock(&lock);
    const struct exported *entry = *ms_keyed_find(&exports, address);
    uint32_t row = entry ? entry->row : NO_ROW;
    ms_unlock(&lock);
    return row;
}

/* The vendor's handle is the truth. The block is kept from being recycled under it. */
static int export_whole(export_func_t vendor, const struct ms_args *args, const struct ms_pool_block *block)
{
    CUresult status = vendor((CUipcMemHandle *)(uintptr_t)args->out, args->key);
    uint32_t unused;

    if (status == CUDA_SUCCESS && ms_pool_pin(block->address) && !ipc_export_enter(block, NO_ROW, &unused))
        ms_pool_unpin(block->address);
    return (int)status;
}

static int cannot_export(const char *why)
{
    ms_diagnostic(MS_LOG_WARN, "ipc",
                  "a block that shares its allocation with others cannot be exported: %s; MEMSHIM_IPC=native "
                  "packs none",
                  why);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void say_late(void)
{
    const char *transport = ms_ipc_transport();

    if (transport)
        ms_diagnostic(MS_LOG_WARN, "ipc",
                      "blocks that were packed before %s was loaded are exported by tokens, which only "
                      "processes under memshim open; "
                      "MEMSHIM_IPC=native from the start packs none",
                      transport);
}

/* Pinned by the caller; *kept_p: the pin is the table's now. */
static int ipc_export_publish(export_func_t vendor, const struct ms_pool_block *block,
                              unsigned char token[MS_TOKEN_BYTES], bool *kept_p)
{
    struct ms_ipc_export what = {.address = block->address,
                                 .offset = block->address - block->segment_address,
                                 .bytes = block->requested,
                                 .segment_bytes = block->segment_bytes,
                                 .context = block->context,
                                 .device = block->device};
    CUresult status = vendor((CUipcMemHandle *)(void *)what.handle, block->segment_address);
    const char *why;
    uint32_t row, there;

    if (status != CUDA_SUCCESS)
        return (int)status;
    if (!ms_ipc_export_publish(&what, token, &row, &why))
        return cannot_export(why);
    *kept_p = ipc_export_enter(block, row, &there);
    if (*kept_p)
        return CUDA_SUCCESS;
    ms_ipc_export_revoke(row);
    if (there == NO_ROW)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ms_ipc_export_token(there, token); /* another thread's, which came first */
    return CUDA_SUCCESS;
}

static int export_packed(export_func_t vendor, const struct ms_args *args, const struct ms_pool_block *block)
{
    unsigned char token[MS_TOKEN_BYTES];
    uint32_t row = known_row(block->address);
    int status = CUDA_SUCCESS;
    bool kept = false;

    if (!args->out)
        return (int)vendor(NULL, args->key);
    if (row != NO_ROW) {
        ms_ipc_export_token(row, token);
    } else {
        if (!ms_pool_pin(block->address))
            return (int)vendor((CUipcMemHandle *)(uintptr_t)args->out, NOWHERE);
        status = ipc_export_publish(vendor, block, token, &kept);
        if (!kept)
            ms_pool_unpin(block->address);
        else
            say_late();
    }
    if (status == CUDA_SUCCESS)
        memcpy((void *)(uintptr_t)args->out, token, sizeof(token));
    return status;
}

/* The driver exports no memory that is mapped by handle (CUDA runtime API, cudaIpcGetMemHandle: "created with
 * cudaMalloc"). */
static int export_mapped(export_func_t vendor, const struct ms_args *args)
{
    static atomic_bool said;

    if (!atomic_exchange(&said, true))
        ms_diagnostic(
            MS_LOG_WARN, "ipc",
            "memory that is mapped by handle cannot be exported: cudaIpcGetMemHandle is refused under "
            "MEMSHIM_BACKING=vmm, unless MEMSHIM_IPC=native");
    return (int)vendor((CUipcMemHandle *)(uintptr_t)args->out, NOWHERE);
}

/* Of any address inside a block the handle is the block's, CUDA's (its IPC transports send the offset along)
 * and HIP's (recorded: Mooncake#3546). */
static int export_block(const struct ms_target *target, const struct ms_args *args)
{
    export_func_t vendor = (export_func_t)target->real;
    struct ms_pool_block block;

    /* Freed memory, and what came from a pool of the program's, cannot be exported, as natively. */
    if (!ms_pool_find(args->key, &block) || block.ordered)
        return (int)vendor((CUipcMemHandle *)(uintptr_t)args->out, NOWHERE);
    if (block.vmm)
        return export_mapped(vendor, args);
    ms_serve_large_whole();
    if (block.whole)
        return export_whole(vendor, args, &block);
    return export_packed(vendor, args, &block);
}

bool ms_answer_EXPORT(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    struct ms_hook_scope scope;

    if (ms_uses_wanted())
        ms_uses_mark(args->key, MS_LIFETIME_SHARED);
    if (!ms_init_active() || !ms_serve_is_on() || !ms_pool_owns(args->key))
        return false;
    if (ms_thread.depth > 0) {
        /* a handler that interrupted memshim's own code: the vendor would hand out the neighbours too */
        *status_p = CUDA_ERROR_NOT_SUPPORTED;
        return true;
    }
    ms_hook_scope_enter(&scope);
    *status_p = export_block(target, args);
    ms_hook_scope_leave(&scope);
    return true;
}

void ms_ipc_block_freed(const struct ms_pool_block *block)
{
    ms_lock(&lock);
    void **place = ms_keyed_find(&exports, block->address);
    const struct exported *entry = *place;
    uint32_t row = entry ? entry->row : NO_ROW;
    if (entry)
        ms_keyed_drop(&exports, place);
    ms_unlock(&lock);
    if (row != NO_ROW)
        ms_ipc_export_revoke(row);
    if (entry)
        ms_pool_unpin(block->address);
}

void ms_ipc_exports_context_ended(uint64_t context)
{
    ms_lock(&lock);
    for (unsigned b = 0; b < exports.bucket_count; b++) {
        for (void **place = &exports.buckets[b]; *place;) {
            struct exported *entry = *place;
            if (entry->context != context) {
                place = &entry->by.next;
                continue;
            }
            if (entry->row != NO_ROW)
                ms_ipc_export_revoke(entry->row);
            ms_keyed_drop(&exports, place);
        }
    }
    ms_unlock(&lock);
}

static void ipc_exports_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&exports);
}
MS_AT_FORK(MS_FORK_HOOKS, ipc_exports_reset);
