/* imports.c - other processes' memory, opened here: how often it is open.
 *
 * Memory that is opened twice is one block until it was closed twice. It is known by its address, or by the name that it is closed by
 * (enum ms_space). Runs in the program's threads, inside the frame of the call. Owns a table under a lock (MS_RANK_OBJECT) that is never
 * held across a call of the vendor's; its memory is the arena's and is used again. */
#include "hooks/dispatch.h"

#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "gpu/gpu.h"

enum { BUCKETS = 256, CHUNK = 128 };

/* Invariant: in the table while opens + closing > 0, and findable while opens > 0. */
struct import {
    struct import *next;
    uint64_t key;     /* the ledger's too */
    uint64_t context; /* it ends with it */
    uint32_t opens;
    uint32_t closing; /* closes under way in the vendor */
    uint8_t space;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct import *imports[BUCKETS], *spare;

static struct import **bucket_of(uint64_t key)
{
    return &imports[(key * 0x9e3779b97f4a7c15u >> 48) % BUCKETS];
}

static struct import *take_locked(void)
{
    if (!spare) {
        struct import *chunk = ms_arena_alloc(CHUNK * sizeof(*chunk));
        for (unsigned i = 0; chunk && i < CHUNK; i++) {
            chunk[i].next = spare;
            spare = &chunk[i];
        }
    }
    struct import *import = spare;
    if (import)
        spare = import->next;
    return import;
}

static struct import *find_locked(unsigned space, uint64_t key)
{
    for (struct import *import = *bucket_of(key); import; import = import->next) {
        if (import->key == key && import->space == space && import->opens > 0)
            return import;
    }
    return NULL;
}

/* Takes it out of the table if nothing holds it any more. */
static bool bury_locked(struct import *import)
{
    struct import **link = bucket_of(import->key);

    if (import->opens > 0 || import->closing > 0)
        return false;
    while (*link != import)
        link = &(*link)->next;
    *link = import->next;
    import->next = spare;
    spare = import;
    return true;
}

/* One more open of what is open already, or a new one: then true. */
static bool count_open(unsigned space, uint64_t key, uint64_t context)
{
    bool is_new = false;

    ms_lock(&lock);
    struct import *import = find_locked(space, key);
    if (import) {
        import->opens++;
    } else if ((import = take_locked())) {
        struct import **bucket = bucket_of(key);
        *import = (struct import){.next = *bucket, .key = key, .context = context, .opens = 1, .space = (uint8_t)space};
        *bucket = import;
        is_new = true;
    }
    ms_unlock(&lock);
    return is_new;
}

/* What is closed by its address is known by it; what is closed by a name, by that (`given`, in a space of its own). */
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

void ms_import_close_begin(struct ms_call *call)
{
    ms_lock(&lock);
    struct import *import = find_locked(call->args.space, call->args.key);
    if (import) {
        import->opens--;
        import->closing++;
    }
    ms_unlock(&lock);
    call->object = import;
}

void ms_import_close_end(struct ms_call *call, int status)
{
    struct import *import = call->object;
    struct ms_block block;

    if (!import) {
        if (status == 0 && call->args.space == MS_SPACE_ADDRESS) /* a name may be closed by who gave it */
            ms_ledger_unseen_free();
        return;
    }
    ms_lock(&lock);
    uint64_t key = import->key;
    import->closing--;
    import->opens += status != 0;
    bool dead = bury_locked(import);
    ms_unlock(&lock);
    if (dead)
        ms_ledger_free_begin((enum ms_space)call->args.space, key, &block);
}

/* What was open in a context is gone with it, and the ledger knows: the pointers may come back for others. */
void ms_imports_context_ended(uint64_t context)
{
    ms_lock(&lock);
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (struct import *import = imports[b], *next; import; import = next) {
            next = import->next;
            if (import->context == context) {
                import->opens = 0;
                bury_locked(import);
            }
        }
    }
    ms_unlock(&lock);
}

void ms_imports_reset(void)
{
    ms_lock_reset(&lock);
    memset(imports, 0, sizeof(imports));
    spare = NULL;
}
