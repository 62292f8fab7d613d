/* serve_handles.c - see serve_handles.h. Runs in the program's threads inside a hooked call, with the guard
 * closed. No lock across a vendor call; no allocation but the arena's. Figures of each device under one lock
 * (MS_RANK_POOL_PINS). */
#include "hooks/serve/serve_handles.h"

#include <stdatomic.h>
#include <string.h>

#include "quota/quota.h"
#include "base/thread/aux_stack.h"
#include "base/lock.h"
#include "base/options/options.h"
#include "vendor/gpu.h"
#include "hooks/serve/serve.h"
#include "pool/stream/driver_frees.h"

enum { ALLOC_BYTE = 0xa5, FREE_BYTE = 0xdf };

struct device {
    struct ms_pool_figures record;
    uint64_t total_bytes; /* of the device, for shares of it */
    bool asked;           /* set once the device was asked, whatever it says */
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_PINS);
static struct device devices[MS_DEVICES_MAX];

bool ms_recycled_key_of(const struct ms_call *call, struct ms_recycled_key *key_p)
{
    if (!call->args.flags || !call->gpu || !call->gpu->vendor || !call->gpu->vendor->handle_free ||
        call->args.device < 0 || call->args.device >= MS_DEVICES_MAX || !ms_serve_is_on())
        return false;
    *key_p = (struct ms_recycled_key){call->gpu, call->args.flags, call->args.bytes, call->args.device};
    return true;
}

int ms_recycled_fill(const struct ms_call *call)
{
    int64_t poison = ms_option_int(MS_OPT_POISON);

    if (poison == MS_POISON_ALLOC || poison == MS_POISON_BOTH)
        return ALLOC_BYTE;
    return call->answered && poison == MS_POISON_FREE ? FREE_BYTE : 0;
}

/* --- figures --- */

static struct ms_segment_record serve_handles_segment_of(const struct ms_recycled *whole)
{
    return (struct ms_segment_record){.address = whole->place,
                                      .bytes = whole->key.bytes,
                                      .device = (int16_t)whole->key.device,
                                      .tier = MS_TIER_DEDICATED};
}

enum change { TAKEN, PUT, UNPUT, EVICTED, MISSED };

static void serve_handles_count(int device, enum change change, uint64_t bytes)
{
    ms_lock(&lock);
    struct device *d = &devices[device];
    struct ms_pool_figures *r = &d->record;
    switch (change) {
    case PUT:
        r->served_frees++;
        r->reserved_bytes += bytes;
        r->largest_free_bytes = bytes > r->largest_free_bytes ? bytes : r->largest_free_bytes;
        break;
    case UNPUT:
        r->served_frees--;
        r->reserved_bytes -= bytes;
        break;
    case TAKEN:
        r->served_allocs++;
        r->hits[MS_TIER_DEDICATED]++;
        r->reserved_bytes -= bytes;
        break;
    case EVICTED:
        r->vendor_frees++;
        r->reserved_bytes -= bytes;
        break;
    default:
        r->misses++;
        break;
    }
    r->largest_free_bytes = r->reserved_bytes ? r->largest_free_bytes : 0;
    r->parts.cached = r->reserved_bytes;
    if (r->reserved_bytes > r->peak_reserved_bytes) {
        r->peak_reserved_bytes = r->reserved_bytes;
        r->peak_parts = r->parts;
    }
    ms_ledger_pool(device, r); /* in the order of the changes */
    ms_unlock(&lock);
}

/* --- giving back --- */

static void serve_handles_give_back(const struct ms_recycled *whole)
{
    ms_ledger_segment_removed(whole->place);
    whole->key.gpu->vendor->handle_free(whole->key.gpu, whole->thing);
    ms_quota_give_back(whole->key.device, whole->key.bytes);
    serve_handles_count(whole->key.device, EVICTED, whole->key.bytes);
}

/* Another thread's request that the vendor refuses, and that finds nothing here, sees that this one is on its
 * way (ms_room_make): so that is said before it is taken out. */
static bool evict(int device, uint64_t *bytes_p)
{
    struct ms_recycled whole;

    if (!ms_recycled_bytes(device))
        return false;
    ms_driver_frees_begin(device);
    bool found = ms_recycled_evict(device, &whole);
    if (found) {
        serve_handles_give_back(&whole);
        *bytes_p += whole.key.bytes;
    }
    ms_driver_frees_end(device);
    return found;
}

uint64_t ms_recycled_give_back(int device)
{
    uint64_t bytes = 0;

    while (evict(device, &bytes))
        ;
    if (bytes) {
        ms_lock(&lock);
        devices[device].record.trims++;
        ms_unlock(&lock);
    }
    return bytes;
}

void ms_recycled_device_ending(const struct ms_gpu *gpu, int index)
{
    for (int i = 0; gpu && gpu->vendor && i < ms_device_count(gpu->vendor->maker); i++) {
        if (index < 0 || i == index)
            ms_recycled_give_back(ms_gpu_device(gpu, i));
    }
}

static uint64_t total_of(const struct ms_gpu *gpu, int device)
{
    struct ms_gpu_description description;

    ms_lock(&lock);
    uint64_t total = devices[device].total_bytes;
    bool asked = devices[device].asked;
    devices[device].asked = true;
    ms_unlock(&lock);
    if (asked)
        return total;
    ms_gpu_describe(gpu, device, &description);
    ms_lock(&lock);
    devices[device].total_bytes = description.total_bytes;
    ms_unlock(&lock);
    return description.total_bytes;
}

/* Handles that wait beyond MEMSHIM_KEEP go, those first that have waited longest. */
static void keep_bound(const struct ms_gpu *gpu, int device)
{
    uint64_t keep = ms_option_size(MS_OPT_KEEP, total_of(gpu, device)), gone = 0;

    while (ms_recycled_bytes(device) > keep && evict(device, &gone))
        ;
}

/* --- a rest --- */

static _Atomic bool rested;

void ms_recycled_rested(void)
{
    atomic_store_explicit(&rested, true, memory_order_relaxed);
}

static void rest_device(const struct ms_gpu *gpu, int device)
{
    uint64_t keep = ms_option_source(MS_OPT_KEEP) != MS_SOURCE_DEFAULT
                        ? ms_option_size(MS_OPT_KEEP, total_of(gpu, device))
                        : 0,
             most = ms_pool_rest_allowance(ms_ledger_live(device)) + keep, gone = 0;

    while (ms_recycled_bytes(device) > most && evict(device, &gone))
        ;
}

/* Seen to in a call of the vendor's own, whose devices they are. Nothing is under way in what waits, so
 * nothing is waited for. */
void ms_recycled_end_rest(const struct ms_gpu *gpu)
{
    ms_serve_see_to();
    if (MS_LIKELY(!atomic_load_explicit(&rested, memory_order_relaxed)) ||
        !atomic_exchange_explicit(&rested, false, memory_order_relaxed))
        return;
    for (int i = 0; i < ms_device_count(gpu->vendor->maker); i++) {
        int device = ms_gpu_device(gpu, i);
        if (device >= 0 && ms_recycled_bytes(device))
            rest_device(gpu, device);
    }
}

/* --- the calls --- */

static void serve_handles_answer(struct ms_call *call, int status)
{
    call->answered = true;
    call->status = status;
}

static void serve(struct ms_call *call)
{
    call->served = true;
    if (ms_thread.outermost)
        ms_thread.outermost->served = true;
    serve_handles_answer(call, 0);
}

void ms_recycled_create_begin(struct ms_call *call)
{
    struct ms_recycled_key key;
    struct ms_recycled whole;
    uint64_t context;

    /* Without a context the vendor refuses, whatever waits here. */
    if (!call->args.out || !call->args.bytes || !ms_recycled_key_of(call, &key) ||
        ms_gpu_current(call->gpu, &context) < 0)
        return;
    if (ms_recycled_take(&key, &whole)) {
        ms_ledger_segment_removed(whole.place);
        serve_handles_count(key.device, TAKEN, key.bytes);
        *(uint64_t *)(uintptr_t)call->args.out = whole.thing;
        ms_quota_went(key.device, key.bytes); /* until its block comes */
        serve(call);
    }
}

void ms_recycled_create_end(struct ms_call *call, int status)
{
    struct ms_recycled_key key;

    if (status != 0)
        return;
    ms_handle_created(call);
    if (!call->answered && ms_recycled_key_of(call, &key))
        serve_handles_count(key.device, MISSED, key.bytes);
}

void ms_recycled_refuse(struct ms_call *call)
{
    if (call->args.key && ms_recycled_has(call->args.key))
        serve_handles_answer(call, call->gpu->vendor->unknown_handle);
}

void ms_recycled_release_begin(struct ms_call *call)
{
    struct ms_recycled whole = {.thing = call->args.key};
    struct ms_segment_record segment;

    ms_recycled_refuse(call);
    if (call->answered)
        return;
    call->found = ms_handle_recycle(call, &whole.key);
    if (!call->found) {
        ms_handle_release_begin(call);
        return;
    }
    whole.place = ms_recycled_place(whole.key.bytes);
    segment = serve_handles_segment_of(&whole);
    ms_ledger_segment_added(&segment);
    serve_handles_count(whole.key.device, PUT, whole.key.bytes);
    ms_quota_came(whole.key.device, whole.key.bytes); /* its block is no more */
    if (ms_recycled_put(&whole)) {
        serve(call);
        keep_bound(whole.key.gpu, whole.key.device);
    } else { /* the record has forgotten it, and the vendor gets it */
        ms_ledger_segment_removed(whole.place);
        serve_handles_count(whole.key.device, UNPUT, whole.key.bytes);
        ms_quota_went(whole.key.device, whole.key.bytes);
    }
}

void ms_recycled_release_end(struct ms_call *call, int status)
{
    if (call->answered && status != 0)
        ms_handle_release_refused(call);
    else if (!call->found && !call->answered)
        ms_handle_release_end(call, status);
}

void ms_recycled_map_begin(struct ms_call *call)
{
    ms_recycled_refuse(call);
    if (!call->answered)
        ms_handle_map_begin(call);
}

void ms_recycled_map_end(struct ms_call *call, int status)
{
    ms_handle_map_end(call, status);
}

void ms_recycled_share_end(struct ms_call *call, int status)
{
    if (status == 0)
        ms_handle_pin(call);
}

/* --- all of it at one moment, for the report --- */

bool ms_recycled_stop(unsigned timeout_ms)
{
    if (!ms_lock_within(&lock, timeout_ms))
        return false;
    if (ms_recycled_hold(timeout_ms))
        return true;
    ms_unlock(&lock);
    return false;
}

void ms_recycled_go(void)
{
    ms_recycled_let_go();
    ms_unlock(&lock);
}

struct waiting {
    uint64_t bytes, largest;
};

static void add_waiting(void *arg, const struct ms_recycled *whole)
{
    struct waiting *waiting = (struct waiting *)arg + whole->key.device;

    waiting->bytes += whole->key.bytes;
    waiting->largest = whole->key.bytes > waiting->largest ? whole->key.bytes : waiting->largest;
}

/* A thread may be between counting a handle and putting it where it waits: what waits is true. */
void ms_recycled_tell_figures(void)
{
    struct waiting *waiting = ms_aux_stack_take();
    _Static_assert(MS_DEVICES_MAX * sizeof(*waiting) <= MS_AUX_STACK_BUFFER_BYTES, "they lie in a buffer");

    if (!waiting)
        return;
    memset(waiting, 0, MS_DEVICES_MAX * sizeof(*waiting));
    ms_recycled_each(add_waiting, waiting);
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        struct ms_pool_figures record = devices[i].record;
        if (!record.served_frees && !record.misses && !waiting[i].bytes)
            continue;
        record.reserved_bytes = record.parts.cached = waiting[i].bytes;
        record.largest_free_bytes = waiting[i].largest;
        if (record.reserved_bytes > record.peak_reserved_bytes) {
            record.peak_reserved_bytes = record.reserved_bytes;
            record.peak_parts = record.parts;
        }
        ms_snapshot_put_pool(i, &record);
    }
    ms_aux_stack_give(waiting);
}

static void tell_piece(void *arg, const struct ms_recycled *whole)
{
    const struct ms_segment_record segment = serve_handles_segment_of(whole);
    const struct ms_piece_record piece = {
        .segment = &segment, .bytes = whole->key.bytes, .state = MS_PIECE_FREE};

    (void)arg;
    ms_snapshot_put_piece(&piece);
}

void ms_recycled_tell_pieces(void)
{
    ms_recycled_each(tell_piece, NULL);
}

static void whole_devices_reset(void)
{
    atomic_store_explicit(&rested, false, memory_order_relaxed);
    ms_lock_reset(&lock);
    memset(devices, 0, sizeof(devices));
}
MS_AT_FORK(MS_FORK_SERVICE, whole_devices_reset);
