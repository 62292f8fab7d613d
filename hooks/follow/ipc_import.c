/* ipc_import.c - what other processes' tokens stand for, opened here; see ipc.h.
 *
 * Runs in the program's threads, inside the frame of cuIpcOpenMemHandle or cuIpcCloseMemHandle. Every open of
 * the program is one open of the vendor's, of the allocation that the block lies in, and every close one
 * close: so flags, peers and counting are the vendor's own. A driver that refuses to open an allocation again
 * in one context (ALREADY_MAPPED, before CUDA 11) is asked once for all its blocks. */
#include "hooks/follow/ipc.h"

#include <string.h>

#include "base/records.h"
#include "base/lock.h"
#include "base/log.h"
#include "vendor/context_scope.h"
#include "hooks/serve/serve.h"
#include "record/ipc/ipc_exports.h"
#include "pool/api/pool.h"

#define OWN_BUFFER_ID (UINT64_C(3) << 61)

/* Another process's allocation, mapped at `base` in one context. */
struct mapping {
    struct mapping *next;
    struct import *imports;
    uint64_t context, base, bytes;
    uint32_t opens, vendor_opens; /* of all blocks in it; no fewer than the vendor counts */
    unsigned char handle[MS_VENDOR_HANDLE_BYTES];
};

/* A block in it. Not in a list: what a call under way holds. */
struct import {
    struct import *next;
    unsigned char token[MS_TOKEN_BYTES];
    uint64_t offset, bytes, id;
    uint32_t opens;
    /* Of a call under way. */
    bool refused;   /* no token that stands for anything: must not be opened */
    bool by_vendor; /* the vendor counts this open, or close */
    bool waits;     /* a block is closed in an allocation that stays open */
    uint64_t context, base, segment_bytes;
    unsigned char handle[MS_VENDOR_HANDLE_BYTES];
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct mapping *mappings;
static struct ms_records spare_mappings = MS_RECORDS(struct mapping, next, 1);
static struct ms_records spare_imports = MS_RECORDS(struct import, next, 64);
static _Atomic uint64_t mapping_count;
static uint64_t last_id;

static struct import *take_import_locked(void)
{
    struct import *import = ms_records_take(&spare_imports);
    if (import)
        memset(import, 0, sizeof(*import));
    return import;
}

static void give_import_locked(struct import *import)
{
    ms_records_drop(&spare_imports, import);
}

static struct import *take_import(void)
{
    ms_lock(&lock);
    struct import *import = take_import_locked();
    ms_unlock(&lock);
    return import;
}

static void give_import(struct import *import)
{
    ms_lock(&lock);
    give_import_locked(import);
    ms_unlock(&lock);
}

static struct mapping *take_mapping_locked(void)
{
    struct mapping *mapping = ms_records_take(&spare_mappings);

    if (mapping) {
        memset(mapping, 0, sizeof(*mapping));
        mapping->next = mappings;
        mappings = mapping;
        atomic_fetch_add_explicit(&mapping_count, 1, memory_order_relaxed);
    }
    return mapping;
}

static void drop_mapping_locked(struct mapping **link)
{
    struct mapping *mapping = *link;

    while (mapping->imports) {
        struct import *import = mapping->imports;
        mapping->imports = import->next;
        give_import_locked(import);
    }
    *link = mapping->next;
    ms_records_drop(&spare_mappings, mapping);
    atomic_fetch_sub_explicit(&mapping_count, 1, memory_order_relaxed);
}

/* The mapping of the allocation in the context, or NULL: at `base`, or, if that is 0, wherever. */
static struct mapping *find_mapping_locked(const struct import *call, uint64_t base)
{
    for (struct mapping *m = mappings; m; m = m->next) {
        if (m->context == call->context && (!base || m->base == base) &&
            memcmp(m->handle, call->handle, sizeof(m->handle)) == 0)
            return m;
    }
    return NULL;
}

static struct import *find_import_locked(struct mapping *mapping, const struct import *call)
{
    struct import *import = mapping->imports;

    while (import && memcmp(import->token, call->token, sizeof(import->token)) != 0)
        import = import->next;
    return import;
}

/* The block that was opened is counted. False without memory. */
static bool count_open_locked(const struct import *call)
{
    struct mapping *mapping = find_mapping_locked(call, call->base);
    struct import *import = mapping ? find_import_locked(mapping, call) : NULL;

    if (!import) {
        import = take_import_locked();
        if (import && !mapping)
            mapping = take_mapping_locked();
        if (!mapping && import)
            give_import_locked(import);
        if (!mapping || !import)
            return false;
        mapping->context = call->context;
        mapping->base = call->base;
        mapping->bytes = call->segment_bytes;
        memcpy(mapping->handle, call->handle, sizeof(mapping->handle));
        memcpy(import->token, call->token, sizeof(import->token));
        import->offset = call->offset;
        import->bytes = call->bytes;
        import->id = OWN_BUFFER_ID | ++last_id;
        import->next = mapping->imports;
        mapping->imports = import;
    }
    import->opens++;
    mapping->opens++;
    mapping->vendor_opens += call->by_vendor;
    return true;
}

static bool count_open(const struct import *call)
{
    ms_lock(&lock);
    bool good = count_open_locked(call);
    ms_unlock(&lock);
    return good;
}

void ms_ipc_open_begin(struct ms_call *call)
{
    unsigned char *handle = call->args.turned;
    struct ms_ipc_export block;
    struct import *import;
    char why[400];

    if (!ms_token_is(handle) || !(import = take_import()))
        return;
    call->ipc = import;
    memcpy(import->token, handle, sizeof(import->token));
    if (!ms_ipc_export_resolve(handle, &block, why, sizeof(why))) {
        /* The vendor is given the token, to say what it says of a handle that it does not know. */
        import->refused = true;
        ms_diagnostic(MS_LOG_WARN, "ipc", "%s", why);
        return;
    }
    import->offset = block.offset;
    import->bytes = block.bytes;
    import->segment_bytes = block.segment_bytes;
    memcpy(import->handle, block.handle, sizeof(import->handle));
    memcpy(handle, block.handle, sizeof(block.handle));
}

static void close_again(const struct ms_gpu *gpu, uint64_t base)
{
    struct ms_context_scope visit;

    if (!gpu || !gpu->ipc_close)
        return;
    ms_context_scope_begin(&visit, gpu, 0);
    gpu->ipc_close(base);
    ms_context_scope_end(&visit);
}

static int opened(const struct ms_gpu *gpu, struct ms_call *call, struct import *import)
{
    uint64_t *out = (uint64_t *)(uintptr_t)call->args.out;

    import->base = *out;
    import->by_vendor = true;
    uint64_t there = ms_gpu_size_of(gpu, import->base);
    if (import->refused || (there && (import->offset > there || import->bytes > there - import->offset))) {
        close_again(gpu, import->base);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!count_open(import)) {
        close_again(gpu, import->base);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = import->base + import->offset;
    call->args.bytes = import->bytes;
    return CUDA_SUCCESS;
}

/* The driver opens an allocation once in a context. For the same block that is the program's answer, as
 * natively; for another one it is no reason to refuse. */
static int opened_already(struct ms_call *call, struct import *import)
{
    uint64_t *out = (uint64_t *)(uintptr_t)call->args.out;
    int status = CUDA_ERROR_ALREADY_MAPPED;

    ms_lock(&lock);
    struct mapping *mapping = find_mapping_locked(import, 0);
    if (out && mapping && !find_import_locked(mapping, import)) {
        import->base = mapping->base;
        status = count_open_locked(import) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    ms_unlock(&lock);
    if (status == CUDA_SUCCESS) {
        *out = import->base + import->offset;
        call->args.bytes = import->bytes;
    }
    return status;
}

static int open_turned(struct ms_call *call, struct import *import, int status)
{
    ms_gpu_current(call->gpu, &import->context);
    if (status == CUDA_SUCCESS)
        return opened(call->gpu, call, import);
    if (status == CUDA_ERROR_ALREADY_MAPPED && !import->refused)
        return opened_already(call, import);
    return status;
}

/* The mapping and the block at `address`, which is the block's first byte. */
static struct import *at_locked(uint64_t address, struct mapping ***link_p)
{
    for (struct mapping **link = &mappings; *link; link = &(*link)->next) {
        if (address - (*link)->base >= (*link)->bytes)
            continue;
        for (struct import *import = (*link)->imports; import; import = import->next) {
            if ((*link)->base + import->offset == address) {
                *link_p = link;
                return import;
            }
        }
    }
    return NULL;
}

/* True if an address lies in an allocation that is open here for its blocks. */
static bool is_mapped_locked(uint64_t address)
{
    for (const struct mapping *m = mappings; m; m = m->next)
        if (address - m->base < m->bytes)
            return true;
    return false;
}

/* Taken off before the vendor hears of it, put back if it refuses: an address may come back at once. */
static void uncount_locked(struct import *import, struct mapping **link, struct import *call)
{
    struct mapping *mapping = *link;

    memcpy(call->token, import->token, sizeof(call->token));
    memcpy(call->handle, mapping->handle, sizeof(call->handle));
    call->offset = import->offset;
    call->bytes = import->bytes;
    call->context = mapping->context;
    call->base = mapping->base;
    call->segment_bytes = mapping->bytes;
    mapping->opens--;
    call->by_vendor = mapping->vendor_opens > mapping->opens;
    mapping->vendor_opens -= call->by_vendor;
    if (--import->opens == 0) {
        struct import **place = &mapping->imports;
        while (*place != import)
            place = &(*place)->next;
        *place = import->next;
        give_import_locked(import);
        call->waits = mapping->opens > 0;
    }
    if (mapping->opens == 0)
        drop_mapping_locked(link);
}

void ms_ipc_close_begin(struct ms_call *call)
{
    struct import *import, *record = NULL;
    struct mapping **link;

    ms_import_close_begin(call);
    if (!atomic_load_explicit(&mapping_count, memory_order_relaxed))
        return;
    ms_lock(&lock);
    import = at_locked(call->args.key, &link);
    record = import ? take_import_locked() : NULL;
    if (record)
        uncount_locked(import, link, record);
    /* A block that is not open, in an allocation that is: the vendor would close that, under the blocks that
     * are. */
    bool stray = !import && is_mapped_locked(call->args.key);
    ms_unlock(&lock);
    call->ipc = record;
    if (stray) {
        call->answered = true;
        call->status = CUDA_ERROR_INVALID_VALUE;
    }
    if (!record)
        return;
    call->answered = !record->by_vendor;
    call->status = CUDA_SUCCESS;
    *(uint64_t *)call->args.turned = record->base;
}

/* Unmapping waits for what is under way, and the exporter may rely on it. Here nothing is unmapped: the
 * allocation has other blocks. */
static void wait_as_the_vendor(const struct ms_gpu *gpu)
{
    uint64_t context;
    int device = gpu ? ms_gpu_current(gpu, &context) : MS_GPU_NO_DEVICE;

    if (device >= 0)
        ms_pool_wait_for_work(gpu, context, device);
}

static int close_turned(struct ms_call *call, struct import *import, int status)
{
    if (status != CUDA_SUCCESS)
        count_open(import);
    else if (import->waits)
        wait_as_the_vendor(call->gpu);
    return status;
}

int ms_ipc_turned_back(struct ms_call *call, int status)
{
    struct ms_hook_scope scope;
    struct import *import = call->ipc;

    ms_hook_scope_enter_nested(&scope);
    if (ms_rows[call->row]->class == MS_CLASS_IPC_OPEN)
        status = open_turned(call, import, status);
    else
        status = close_turned(call, import, status);
    give_import(import);
    call->ipc = NULL;
    call->answered = true; /* in part by us */
    ms_hook_scope_leave_nested(&scope);
    return status;
}

bool ms_ipc_find(uint64_t address, struct ms_ipc_view *view_p, bool *found_p)
{
    bool ours = false;

    *found_p = false;
    if (!atomic_load_explicit(&mapping_count, memory_order_relaxed))
        return false;
    ms_lock(&lock);
    for (struct mapping *m = mappings; m && !*found_p; m = m->next) {
        if (address - m->base >= m->bytes)
            continue;
        ours = true;
        for (const struct import *import = m->imports; import && !*found_p; import = import->next) {
            if (address - (m->base + import->offset) < import->bytes) {
                *view_p = (struct ms_ipc_view){m->base + import->offset, import->bytes, import->id};
                *found_p = true;
            }
        }
    }
    ms_unlock(&lock);
    return ours;
}

void ms_ipc_imports_context_ended(uint64_t context)
{
    ms_lock(&lock);
    for (struct mapping **link = &mappings; *link;) {
        if ((*link)->context == context)
            drop_mapping_locked(link);
        else
            link = &(*link)->next;
    }
    ms_unlock(&lock);
}

static void ipc_imports_reset(void)
{
    ms_lock_reset(&lock);
    mappings = NULL;
    spare_mappings.spare = spare_imports.spare = NULL;
    atomic_store_explicit(&mapping_count, 0, memory_order_relaxed);
    last_id = 0;
}
MS_AT_FORK(MS_FORK_HOOKS, ipc_imports_reset);
