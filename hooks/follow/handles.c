/* handles.c - memory that is counted by reference.
 *
 * Physical memory behind a VMM handle lives until every handle to it was released and every mapping of it is
 * gone. An object here counts both; the ledger knows the block under the object's number. One lock
 * (MS_RANK_OBJECT) covers the tables; memory is the arena's and is used again.
 *
 * Handle values come back as soon as the driver has freed one: so a release is taken off *before* the vendor
 * hears of it and put back if it refuses, as frees are. */
#include "hooks/dispatch.h"

#include <string.h>

#include "base/keyed.h"
#include "base/lock.h"
#include "vendor/gpu.h"
#include "hooks/follow/buffers.h"
#include "hooks/observe/invalid_free.h"
#include "hooks/serve/serve_handles.h"

/* Invariant: an object is in the table while references + mappings > 0, and findable by its handle while
 * references > 0. */
struct object {
    struct ms_keyed by; /* the vendor's handle */
    uint64_t number;    /* the ledger's key */
    uint32_t references;
    uint32_t mappings;
    uint8_t fill;      /* with what it is filled when it is mapped next, if with anything */
    bool pinned;       /* somebody else may reach it, or did: never recycled */
    bool imported;     /* how long it is, only its mappings tell: */
    uint64_t bytes;    /* mapped of it so far */
    ms_stack_id stack; /* of the call that imported it */
    uint16_t api;
    struct ms_recycled_key whole; /* as what it may be recycled, if its bytes are not 0 */
};

struct mapping {
    struct ms_keyed by; /* its address */
    uint64_t bytes;
    uint64_t number; /* the object's, also when both have gone */
    struct object *object;
    bool leaving; /* being unmapped by a call under way */
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table objects = MS_KEYED_TABLE(struct object, 128, 1024);
static struct ms_keyed_table mappings = MS_KEYED_TABLE(struct mapping, 128, 1024);
static uint64_t last_number;
static bool unseen_mappings; /* there was one that is not in the table */

static struct object *handles_find_locked(uint64_t handle)
{
    for (void **place = ms_keyed_find(&objects, handle); *place; place = ms_keyed_after(place, handle)) {
        struct object *object = *place;
        if (object->references > 0)
            return object;
    }
    return NULL;
}

/* Two vendors' handles may have one value. */
static uint64_t handles_named(const struct ms_call *call, uint64_t handle)
{
    return handle ^ (uint64_t)ms_gpu_maker(call->gpu) << 56;
}

/* Take a dead object out of the table. Returns true if it was dead; its number is then in *number_p. */
static bool bury_locked(struct object *object, uint64_t *number_p)
{
    if (object->references > 0 || object->mappings > 0)
        return false;
    *number_p = object->number;
    ms_keyed_remove(&objects, object);
    return true;
}

/* The handle that a call returned: one more reference to what it already names, or a new object. True if
 * new. */
static bool reference(uint64_t handle, struct object **object_p)
{
    struct object *object;
    bool is_new = false;

    ms_lock(&lock);
    object = handles_find_locked(handle);
    if (object) {
        object->references++;
    } else if ((object = ms_keyed_add(&objects, handle))) {
        *object = (struct object){.by = object->by, .references = 1, .number = ++last_number};
        is_new = true;
    }
    ms_unlock(&lock);
    *object_p = object;
    return is_new;
}

static void handles_end_block(uint64_t number)
{
    struct ms_block block;

    ms_ledger_free_begin(MS_SPACE_HANDLE, number, &block);
}

static uint64_t handle_out(const struct ms_call *call)
{
    uint64_t handle;

    memcpy(&handle, call->args.out, sizeof(handle));
    return handle;
}

/* Its stack is asked for once more when its length is known. */
static void note_import(struct object *object, const struct ms_call *call)
{
    const struct ms_call *outer = ms_thread.outermost ? ms_thread.outermost : call;

    if (call->args.kind != MS_KIND_IMPORTED)
        return;
    ms_lock(&lock);
    object->imported = true;
    object->stack = outer->stack;
    object->api = outer->row;
    ms_unlock(&lock);
}

void ms_handle_created(struct ms_call *call)
{
    struct object *object;
    struct ms_recycled_key key;

    if (!reference(handles_named(call, handle_out(call)), &object))
        return;
    if (ms_recycled_key_of(call, &key)) {
        ms_lock(&lock);
        object->whole = key;
        object->fill = (uint8_t)ms_recycled_fill(call);
        ms_unlock(&lock);
    }
    note_import(object, call);
    ms_call_record(call, MS_SPACE_HANDLE, object->number, call->args.bytes, call->args.device);
}

/* It is mapped: as much of it as that is the block from now on. */
static void extend_import(const struct ms_call *call, struct object *object)
{
    uint64_t context, bytes = call->args.width + call->args.bytes;
    struct ms_block block = {.space = MS_SPACE_HANDLE,
                             .bytes = bytes,
                             .requested = bytes,
                             .thread = ms_thread_id(),
                             .kind = MS_KIND_IMPORTED,
                             .device = (int16_t)ms_gpu_current(call->gpu, &context),
                             .outlives_context = true};

    ms_lock(&lock);
    bool grows = object->imported && bytes > object->bytes;
    if (grows) {
        object->bytes = bytes;
        block.key = object->number;
        block.api = object->api;
        block.stack = object->stack;
    }
    ms_unlock(&lock);
    if (!grows)
        return;
    handles_end_block(block.key);
    ms_call_describe_device(call->gpu, block.device);
    ms_ledger_alloc(&block);
}

bool ms_handle_recycle(struct ms_call *call, struct ms_recycled_key *key_p)
{
    uint64_t number = 0;

    ms_lock(&lock);
    struct object *object = handles_find_locked(handles_named(call, call->args.key));
    bool idle =
        object && object->whole.bytes && !object->pinned && object->references == 1 && object->mappings == 0;
    if (idle) {
        *key_p = object->whole;
        object->references = 0;
        bury_locked(object, &number);
    }
    ms_unlock(&lock);
    if (idle)
        handles_end_block(number);
    return idle;
}

static struct mapping *mapping_at_locked(uint64_t address)
{
    for (unsigned b = 0; b < mappings.bucket_count; b++) {
        for (struct mapping *m = mappings.buckets[b]; m; m = m->by.next) {
            if (address - m->by.key < m->bytes)
                return m;
        }
    }
    return NULL;
}

void ms_handle_pin(struct ms_call *call)
{
    ms_lock(&lock);
    struct object *object = call->args.key ? handles_find_locked(handles_named(call, call->args.key)) : NULL;
    struct mapping *mapping = call->args.given ? mapping_at_locked(call->args.given) : NULL;
    if (object)
        object->pinned = true;
    if (mapping)
        mapping->object->pinned = true;
    ms_unlock(&lock);
}

void ms_handle_retained(struct ms_call *call)
{
    uint64_t handle = handles_named(call, handle_out(call));
    struct object *object;
    struct mapping *mapping;

    ms_lock(&lock);
    object = handles_find_locked(handle);
    mapping = mapping_at_locked(call->args.key);
    if (mapping)
        mapping->object->pinned = true; /* its handle may be another's too from now on */
    if (object) {
        object->references++;
        object->pinned = true;
    } else if (mapping) {
        /* Every handle was released, the mapping kept the memory: it goes on under the value that the driver
         * gives now. */
        object = mapping->object;
        object->references = 1;
        ms_keyed_rename(&objects, object, handle);
    }
    ms_unlock(&lock);
    /* The handle of a buffer that is recorded as a buffer: counted here for its release alone. */
    if (!object && ms_buffer_retained(call->args.key))
        reference(handle, &object);
}

void ms_handle_release_begin(struct ms_call *call)
{
    struct object *object;

    ms_lock(&lock);
    object = handles_find_locked(handles_named(call, call->args.key));
    if (object) {
        object->references--;
        object->mappings++; /* keeps it in the table until the vendor has answered */
    }
    ms_unlock(&lock);
    call->object = object;
}

/* The pin of a begin is dropped; where that was the last hold, the block is over. */
static void drop_pin(struct object *object, bool refused)
{
    uint64_t number;
    bool dead;

    ms_lock(&lock);
    object->mappings--;
    object->references += refused;
    dead = bury_locked(object, &number);
    ms_unlock(&lock);
    if (dead)
        handles_end_block(number);
}

void ms_handle_release_end(struct ms_call *call, int status)
{
    if (call->object)
        drop_pin(call->object, status != 0);
    else if (status != 0)
        ms_handle_release_refused(call);
    else if (!ms_buffer_released())
        ms_ledger_unseen_free();
}

/* Of what is gone only so much is gone through. */
enum { GONE_MAX = 4096 };

/* The latest that had this value and has no reference any more, mapped or gone; 0 for none. */
static uint64_t former_locked(uint64_t handle)
{
    uint64_t number = 0;
    unsigned left = GONE_MAX;

    for (void **place = ms_keyed_find(&objects, handle); *place; place = ms_keyed_after(place, handle)) {
        const struct object *o = *place;
        if (o->references == 0 && o->number > number)
            number = o->number;
    }
    for (struct object *o = objects.records.spare; o && left > 0; o = o->by.next, left--) {
        if (o->by.key == handle && o->number > number)
            number = o->number;
    }
    return number;
}

void ms_handle_release_refused(const struct ms_call *call)
{
    ms_lock(&lock);
    uint64_t number = call->args.key && !handles_find_locked(handles_named(call, call->args.key))
                          ? former_locked(handles_named(call, call->args.key))
                          : 0;
    ms_unlock(&lock);
    if (number)
        ms_invalid_free_of_handle(call, number);
}

bool ms_handle_at(uint64_t address, uint64_t *number_p, uint64_t *begin_p, bool *mapped_p)
{
    unsigned left = GONE_MAX;

    ms_lock(&lock);
    struct mapping *found = mapping_at_locked(address);
    *mapped_p = found != NULL;
    for (struct mapping *m = mappings.records.spare; !*mapped_p && m && left > 0; m = m->by.next, left--) {
        if (m->by.key == address && m->number && (!found || m->number > found->number))
            found = m;
    }
    *number_p = found ? found->number : 0;
    *begin_p = found ? found->by.key : 0;
    ms_unlock(&lock);
    return found != NULL;
}

bool ms_handle_span(uint64_t address, uint64_t *number_p, uint64_t *begin_p, uint64_t *end_p)
{
    ms_lock(&lock);
    struct mapping *m = unseen_mappings ? NULL : mapping_at_locked(address);
    bool found = m != NULL;

    if (found) {
        *number_p = m->number;
        *begin_p = m->by.key;
    }
    for (; m && m->bytes; m = *ms_keyed_find(&mappings, *end_p))
        *end_p = m->by.key + m->bytes;
    ms_unlock(&lock);
    return found;
}

void ms_handle_map_begin(struct ms_call *call)
{
    struct object *object;

    ms_lock(&lock);
    object = handles_find_locked(handles_named(call, call->args.key));
    if (object)
        object->mappings++;
    ms_unlock(&lock);
    call->object = object;
}

static void note_unseen(int status)
{
    ms_lock(&lock);
    unseen_mappings = unseen_mappings || status == 0;
    ms_unlock(&lock);
}

void ms_handle_map_end(struct ms_call *call, int status)
{
    struct object *object = call->object;
    struct mapping *mapping = NULL;
    unsigned fill = 0;

    if (!call->object) {
        note_unseen(status);
        return;
    }
    if (status == 0) {
        extend_import(call, object);
        ms_lock(&lock);
        mapping = ms_keyed_add(&mappings, call->args.given);
        if (mapping) {
            *mapping = (struct mapping){.by = mapping->by,
                                        .bytes = call->args.bytes,
                                        .number = object->number,
                                        .object = call->object};
            fill = object->fill;
            object->fill = 0;
        }
        ms_unlock(&lock);
    }
    if (fill && call->gpu->vendor->fill)
        call->gpu->vendor->fill(call->gpu, call->args.given, (int)fill, call->args.bytes);
    if (!mapping) {
        note_unseen(status);
        drop_pin(call->object, false);
    }
}

/* Marks what is mapped in the call's range as leaving, or as not. True if any of it was marked otherwise. */
static bool handles_mark(const struct ms_call *call, bool leaving)
{
    bool any = false;

    ms_lock(&lock);
    for (unsigned b = 0; b < mappings.bucket_count; b++) {
        for (struct mapping *m = mappings.buckets[b]; m; m = m->by.next) {
            if (m->by.key - call->args.given < call->args.bytes && m->leaving != leaving) {
                m->leaving = leaving;
                any = true;
            }
        }
    }
    ms_unlock(&lock);
    return any;
}

/* A range may cover several whole mappings side by side. They are marked first, so that a mapping made at the
 * same place by another thread, once the vendor has unmapped these, is not mistaken for one of them. */
void ms_handle_unmap_begin(struct ms_call *call)
{
    call->found = handles_mark(call, true);
}

/* One mapping of the range whose unmapping has ended. */
static struct mapping *leaving_locked(uint64_t begin, uint64_t bytes)
{
    for (unsigned b = 0; b < mappings.bucket_count; b++) {
        for (struct mapping *m = mappings.buckets[b]; m; m = m->by.next) {
            if (m->leaving && m->by.key - begin < bytes)
                return m;
        }
    }
    return NULL;
}

void ms_handle_unmap_end(struct ms_call *call, int status)
{
    uint64_t begin = call->args.given, bytes = call->args.bytes, number;
    struct mapping *mapping;
    bool dead;

    if (!call->found) {
        if (status == 0)
            ms_buffer_unmapped(begin, bytes);
        return;
    }
    if (status != 0) {
        handles_mark(call, false);
        return;
    }
    for (;;) {
        ms_lock(&lock);
        mapping = leaving_locked(begin, bytes);
        dead = mapping && (mapping->object->mappings--, bury_locked(mapping->object, &number));
        if (mapping)
            ms_keyed_remove(&mappings, mapping);
        ms_unlock(&lock);
        if (dead)
            handles_end_block(number);
        if (!mapping)
            return;
    }
}

static void handles_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&objects);
    ms_keyed_reset(&mappings);
    last_number = 0;
    unseen_mappings = false;
}
MS_AT_FORK(MS_FORK_HOOKS, handles_reset);
