/* imports.c - other processes' memory, opened here: how often it is open.
 *
 * Memory that is opened twice is one block until it was closed twice, by whichever function: what came out of
 * a pool of another process's is freed as memory of one's own is. It is known by its address, or by the name
 * that it is closed by (enum ms_space). As with frees, a close is taken off before the vendor hears of it,
 * and put back if it refuses: the address may come back at once.
 *
 * Runs in the program's threads, inside the frame of the call. Owns a table under a lock (MS_RANK_OBJECT)
 * that is held across the record and never across a call of the vendor's; its memory is the arena's and is
 * used again. */
#include "hooks/dispatch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/keyed.h"
#include "base/lock.h"
#include "vendor/gpu.h"
#include "hooks/observe/invalid_free.h"

/* By the ledger's key. Invariant: in the table while opens + closing > 0, and findable while opens > 0. */
struct import {
    struct ms_keyed by;
    uint64_t context; /* it ends with it */
    uint32_t opens;
    uint32_t closing; /* closes under way in the vendor */
    uint8_t space;
    bool gone; /* with its context, while a close was under way */
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table imports = MS_KEYED_TABLE(struct import, 128, 256);
static _Atomic uint32_t import_count; /* in the table: a free need not look where there are none */

static struct import *imports_find_locked(unsigned space, uint64_t key)
{
    for (void **place = ms_keyed_find(&imports, key); *place; place = ms_keyed_after(place, key)) {
        struct import *import = *place;
        if (import->space == space && import->opens > 0)
            return import;
    }
    return NULL;
}

/* Takes it out of the table if nothing holds it any more. */
static void bury_locked(struct import *import)
{
    if (import->opens > 0 || import->closing > 0)
        return;
    ms_keyed_remove(&imports, import);
    atomic_fetch_sub_explicit(&import_count, 1, memory_order_relaxed);
}

/* One more open of what is open already, or a new one: then true. */
static bool count_open(unsigned space, uint64_t key, uint64_t context)
{
    bool is_new = false;

    ms_lock(&lock);
    struct import *import = imports_find_locked(space, key);
    if (import) {
        import->opens++;
    } else if ((import = ms_keyed_add(&imports, key))) {
        *import = (struct import){.by = import->by, .context = context, .opens = 1, .space = (uint8_t)space};
        atomic_fetch_add_explicit(&import_count, 1, memory_order_relaxed);
        is_new = true;
    }
    ms_unlock(&lock);
    return is_new;
}

/* An import that is closed by its address is known by its address; one that is closed by a name, by the name
 * (`given`, in a space of its own). */
void ms_import_opened(struct ms_call *call)
{
    uint64_t pointer, context, bytes = call->args.bytes;

    memcpy(&pointer, call->args.out, sizeof(pointer));
    uint64_t name = call->args.given ? call->args.given : pointer;
    enum ms_space space = (enum ms_space)call->args.space;
    int device = ms_gpu_device_of(call->gpu, pointer, ms_gpu_current(call->gpu, &context));
    if (count_open(space, name, context))
        ms_call_record(call, space, name, bytes ? bytes : ms_gpu_size_of(call->gpu, pointer), device);
}

bool ms_import_close_begin(struct ms_call *call)
{
    if (!atomic_load_explicit(&import_count, memory_order_relaxed))
        return false;
    ms_lock(&lock);
    struct import *import = imports_find_locked(call->args.space, call->args.key);
    if (import) {
        import->closing++;
        if (--import->opens == 0)
            call->found = ms_ledger_free_begin((enum ms_space)import->space, import->by.key, &call->block);
    }
    ms_unlock(&lock);
    call->object = import;
    return import != NULL;
}

/* The vendor refused the close: it is as open as before, under the name of what was opened there meanwhile,
 * if anything was. */
static void count_again_locked(struct import *import, const struct ms_call *call)
{
    struct import *now = imports_find_locked(import->space, import->by.key);

    if (now) {
        now->opens++;
    } else if (!import->gone) {
        import->opens++;
        if (call->found)
            ms_ledger_free_abort(&call->block);
    }
}

void ms_import_close_end(struct ms_call *call, int status)
{
    struct import *import = call->object;

    if (!import) {
        if (status != 0)
            ms_invalid_free_of_call(call, (enum ms_space)call->args.space, call->args.key);
        else if (call->args.space == MS_SPACE_ADDRESS) /* a name may be closed by who gave it */
            ms_ledger_unseen_free();
        return;
    }
    ms_lock(&lock);
    if (status != 0)
        count_again_locked(import, call);
    import->closing--;
    bury_locked(import);
    ms_unlock(&lock);
}

/* Memory that was open in a context is gone with it, and the ledger knows: the pointers may come back for
 * others. */
void ms_imports_context_ended(uint64_t context)
{
    ms_lock(&lock);
    for (unsigned b = 0; b < imports.bucket_count; b++) {
        for (struct import *import = imports.buckets[b], *next; import; import = next) {
            next = import->by.next;
            if (import->context == context) {
                import->opens = 0;
                import->gone = true;
                bury_locked(import);
            }
        }
    }
    ms_unlock(&lock);
}

static void imports_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&imports);
    atomic_store_explicit(&import_count, 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_HOOKS, imports_reset);
