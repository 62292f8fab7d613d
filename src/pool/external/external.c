/* external.c - see external.h.
 *
 * Owns a table of records that is filled once and searched from its beginning: a program has few such
 * buffers, and each costs the vendor a thousand times what the search does. One lock, taken with none of the
 * pool's held or to be taken inside. */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "pool/api/internal.h"
#include "pool/external/external.h"
#include "pool/stream/driver_frees.h"

enum { RECORDS = 2048 };

enum state { NONE, MAKING, LIVE, DYING, HELD, PENDING, IDLE, LEAVING };

struct record {
    uint64_t address, bytes, requested, context, epoch;
    const struct ms_external_source *source;
    int device;
    enum state state;
    uint32_t record_id, holds;
    bool spent;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_PINS);
static struct record *records;
static struct ms_pool_figures counts[MS_DEVICES_MAX]; /* what was done, since the beginning */
_Atomic uint32_t ms_external_count;                   /* records in use are below */

static bool is_device(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX;
}

/* Lock held. */
static struct record *external_find(uint64_t address)
{
    for (uint32_t i = 0; i < ms_external_count; i++) {
        struct record *r = &records[i];
        if (r->state > MAKING && address - r->address < r->bytes)
            return r;
    }
    return NULL;
}

static struct record *external_unused(void)
{
    uint32_t count = ms_external_count;
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].state == NONE)
            return &records[i];
    }
    if (!records && !(records = ms_arena_alloc(RECORDS * sizeof(*records))))
        return NULL;
    if (count == RECORDS)
        return NULL;
    ms_external_count = count + 1;
    return &records[count];
}

static void external_describe(const struct record *r, struct ms_external_block *b)
{
    *b = (struct ms_external_block){.address = r->address,
                                    .requested = r->requested,
                                    .granted = r->bytes,
                                    .device = r->device,
                                    .record_id = r->record_id,
                                    .live = r->state == LIVE,
                                    .own = (uint32_t)(r - records)};
}

static void activate(struct record *r, const struct ms_external_request *request, struct ms_external_block *b)
{
    r->state = LIVE;
    r->requested = request->requested;
    r->context = request->context;
    r->record_id = 0;
    counts[r->device].served_allocs++;
    external_describe(r, b);
}

static bool external_fits(const struct record *r, const struct ms_external_request *request)
{
    return r->source == request->source && r->device == request->device && r->bytes == request->granted &&
           !r->spent;
}

static struct record *external_choose(const struct ms_external_request *request, enum state state)
{
    for (uint32_t i = 0; i < ms_external_count; i++) {
        if (records[i].state == state && external_fits(&records[i], request))
            return &records[i];
    }
    return NULL;
}

static void external_notify(const struct record *r, bool added)
{
    const struct ms_segment_record segment = {.address = r->address,
                                              .bytes = r->bytes,
                                              .context = r->context,
                                              .device = (int16_t)r->device,
                                              .tier = MS_TIER_DEDICATED};
    ms_figures_tell(&segment, added);
}

/* Buffers that a fence has seen by now are idle. No lock held. */
static void external_settle(int device)
{
    for (uint32_t i = 0; i < atomic_load(&ms_external_count); i++) {
        ms_lock(&lock);
        struct record seen = records[i];
        ms_unlock(&lock);
        if (seen.state != PENDING || seen.device != device ||
            !ms_pool_epoch_done(seen.context, seen.epoch, false))
            continue;
        ms_lock(&lock);
        if (records[i].state == PENDING && records[i].epoch == seen.epoch &&
            records[i].context == seen.context)
            records[i].state = IDLE;
        ms_unlock(&lock);
    }
}

static bool external_take(const struct ms_external_request *request, struct ms_external_block *block_p)
{
    ms_lock(&lock);
    struct record *r = external_choose(request, IDLE);
    if (r) {
        activate(r, request, block_p);
        counts[r->device].hits[MS_TIER_DEDICATED]++;
    }
    ms_unlock(&lock);
    return r != NULL;
}

/* Waits for no longer than a small part of what the vendor takes to make one. */
static bool wait_a_moment(const struct ms_external_request *request)
{
    uint64_t begin = ms_clock_ns();
    ms_lock(&lock);
    const struct record *r = external_choose(request, PENDING);
    uint64_t context = r ? r->context : 0, epoch = r ? r->epoch : 0;
    ms_unlock(&lock);
    bool done = r && ms_pool_epoch_done(context, epoch, true);
    while (r && !done && ms_clock_ns() - begin < MS_EXTERNAL_LOOK_NS)
        done = ms_pool_epoch_done(context, epoch, false);
    return done;
}

bool ms_external_take(const struct ms_external_request *request, struct ms_external_block *block_p)
{
    if (!ms_external_any() || !is_device(request->device))
        return false;
    if (external_take(request, block_p))
        return true;
    if (!wait_a_moment(request))
        return false;
    external_settle(request->device);
    return external_take(request, block_p);
}

static bool charge(const struct ms_external_request *request)
{
    if (ms_policy->learn_limit)
        ms_policy->learn_limit(request->gpu, request->device);
    return ms_device_charge(request->device, request->granted, 0);
}

/* A record, the room under the limit, and the library's buffer. */
static struct record *external_make(const struct ms_external_request *request, int *status_p)
{
    *status_p = MS_EXTERNAL_LIMIT;
    if (!charge(request))
        return NULL;
    ms_lock(&lock);
    struct record *r = external_unused();
    if (r)
        *r = (struct record){
            .state = MAKING, .bytes = request->granted, .source = request->source, .device = request->device};
    ms_unlock(&lock);
    uint64_t address = 0;
    *status_p = r ? request->source->make(request->requested, &address) : CUDA_ERROR_OUT_OF_MEMORY;
    bool made = *status_p == 0 && address != 0;
    uint64_t bytes = made ? ms_gpu_size_of(request->gpu, address) : 0;
    ms_lock(&lock);
    if (made) {
        r->address = address;
        r->bytes = bytes ? bytes : request->requested;
    } else if (r) {
        r->state = NONE;
    }
    ms_unlock(&lock);
    /* The charge was for the bytes that were expected; the bytes that there are count. */
    ms_device_settle(request->device, request->granted, made ? r->bytes : 0);
    return made ? r : NULL;
}

bool ms_external_make(const struct ms_external_request *request, struct ms_external_block *block_p,
                      int *status_p)
{
    if (!is_device(request->device) || !ms_policy) {
        *status_p = CUDA_ERROR_INVALID_DEVICE;
        return false;
    }
    struct ms_gpu_description about;
    ms_keep_before_followed(request->device, request->granted);
    struct ms_room room = {.ended = ms_driver_frees_ended(request->device)};
    ms_device_grows(request->device, true);
    struct record *r = external_make(request, status_p);
    ms_gpu_describe(request->gpu, request->device, &about);
    /* A request that the device could never hold is no reason to give anything back. */
    while (!r && request->granted <= about.total_bytes && ms_room_make(request->device, true, &room))
        r = external_make(request, status_p);
    if (!r) {
        ms_device_grows(request->device, false);
        return false;
    }
    struct ms_pool_figures *c = &counts[request->device];
    ms_lock(&lock);
    c->misses++;
    c->vendor_allocs++;
    activate(r, request, block_p);
    struct record told = *r;
    ms_unlock(&lock);
    ms_device_grows(request->device, false);
    external_notify(&told, true);
    ms_figures_changed_on(request->device);
    return true;
}

void ms_external_set_record_id(const struct ms_external_block *block, uint32_t record_id)
{
    ms_lock(&lock);
    records[block->own].record_id = record_id;
    ms_unlock(&lock);
}

enum ms_pool_verdict ms_external_free_begin(uint64_t address, struct ms_external_block *block_p)
{
    enum ms_pool_verdict verdict = MS_POOL_PASSED;
    if (!ms_external_any())
        return verdict;
    ms_lock(&lock);
    struct record *r = external_find(address);
    if (r) {
        external_describe(r, block_p);
        verdict = r->state == LIVE && r->address == address ? MS_POOL_SERVED : MS_POOL_REFUSED;
        if (verdict == MS_POOL_SERVED)
            r->state = DYING;
    }
    ms_unlock(&lock);
    return verdict;
}

/* No lock held. The one who calls has the record in a state that nobody else touches. */
static void external_unmake(struct record *r)
{
    struct record gone = *r;
    int status = r->source->unmake(r->address);
    external_notify(&gone, false);
    ms_device_refund(gone.device, gone.bytes);
    ms_lock(&lock);
    counts[gone.device].vendor_frees++;
    r->state = NONE;
    ms_unlock(&lock);
    if (status != 0)
        ms_pool_note("pool: the library did not take back a buffer of its own; its memory stays with it");
}

/* Whoever frees may be at another device than the buffer's: the epoch is one of that context, on its own. */
static int external_device_of(const struct ms_gpu *gpu, uint64_t context, int otherwise)
{
    uint64_t current = 0;
    int device = gpu ? ms_gpu_current(gpu, &current) : otherwise;
    return device >= 0 && current == context ? device : otherwise;
}

/* A spent buffer waits for its fence as all others do, and then leaves with the next trim. */
void ms_external_free_end(const struct ms_external_block *block, const struct ms_gpu *gpu, uint64_t context)
{
    bool at_once = ms_policy->free_rule == MS_POOL_IMMEDIATE;
    uint64_t epoch =
        at_once ? 0 : ms_pool_epoch(gpu, context, external_device_of(gpu, context, block->device));
    struct record *r = &records[block->own];
    ms_lock(&lock);
    r->epoch = epoch;
    r->context = context;
    r->state = r->holds ? HELD : PENDING;
    if (at_once && r->state == PENDING)
        r->state = IDLE;
    counts[r->device].served_frees++;
    bool leaves = r->spent && r->state == IDLE;
    ms_unlock(&lock);
    if (leaves)
        ms_external_trim(block->device, UINT64_MAX);
}

bool ms_external_forget(uint64_t address, struct ms_external_block *block_p)
{
    if (!ms_external_any())
        return false;
    ms_lock(&lock);
    struct record *r = external_find(address);
    bool live = r && r->state == LIVE && r->address == address;
    struct record gone = {0};
    if (live) {
        external_describe(r, block_p);
        gone = *r;
        r->state = NONE;
        counts[r->device].served_frees++;
    }
    ms_unlock(&lock);
    if (live) {
        external_notify(&gone, false);
        ms_device_refund(gone.device, gone.bytes);
    }
    return live;
}

bool ms_external_find(uint64_t address, struct ms_external_block *block_p)
{
    if (!ms_external_any())
        return false;
    ms_lock(&lock);
    const struct record *r = external_find(address);
    if (r)
        external_describe(r, block_p);
    ms_unlock(&lock);
    return r != NULL;
}

bool ms_external_hold(uint64_t address)
{
    if (!ms_external_any())
        return false;
    ms_lock(&lock);
    struct record *r = external_find(address);
    bool live = r && r->state == LIVE;
    r = live ? r : NULL;
    if (r)
        r->holds++;
    ms_unlock(&lock);
    return live;
}

void ms_external_release(uint64_t address)
{
    ms_lock(&lock);
    struct record *r = ms_external_any() ? external_find(address) : NULL;
    if (r && r->holds && --r->holds == 0 && r->state == HELD)
        r->state = PENDING;
    ms_unlock(&lock);
}

void ms_external_spend(uint64_t address)
{
    ms_lock(&lock);
    struct record *r = ms_external_any() ? external_find(address) : NULL;
    if (r)
        r->spent = true;
    ms_unlock(&lock);
}

/* One that is idle: a spent one, or if `any` may go the largest. It is the caller's then. Lock held. */
static struct record *victim(int device, bool any)
{
    struct record *best = NULL;
    for (uint32_t i = 0; i < ms_external_count; i++) {
        struct record *r = &records[i];
        if (r->state != IDLE || r->device != device)
            continue;
        if (r->spent) {
            best = r;
            break;
        }
        if (any && (!best || r->bytes > best->bytes))
            best = r;
    }
    if (best) {
        best->state = LEAVING;
        ms_driver_frees_begin(device);
    }
    return best;
}

static uint64_t idle_bytes(int device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ms_external_count; i++) {
        if (records[i].state == IDLE && records[i].device == device)
            bytes += records[i].bytes;
    }
    return bytes;
}

static uint64_t external_give_back(int device, uint64_t keep_bytes)
{
    uint64_t given = 0;
    for (;;) {
        ms_lock(&lock);
        struct record *r = victim(device, idle_bytes(device) > keep_bytes);
        ms_unlock(&lock);
        if (!r)
            break;
        given += r->bytes;
        external_unmake(r);
        ms_driver_frees_end(device);
    }
    if (given) {
        ms_lock(&lock);
        counts[device].trims++;
        ms_unlock(&lock);
        ms_figures_changed_on(device);
    }
    return given;
}

/* Every context's fence is closed and looked at once: what is still in use stays. */
uint64_t ms_external_trim(int device, uint64_t keep_bytes)
{
    if (!ms_external_any() || !is_device(device))
        return 0;
    for (uint32_t i = 0; i < atomic_load(&ms_external_count); i++) {
        ms_lock(&lock);
        struct record seen = records[i];
        ms_unlock(&lock);
        if (seen.state == PENDING && seen.device == device)
            ms_pool_epoch_done(seen.context, seen.epoch, true);
    }
    external_settle(device);
    return external_give_back(device, keep_bytes);
}

uint64_t ms_external_idle_bytes(int device)
{
    if (!ms_external_any() || !is_device(device))
        return 0;
    external_settle(device);
    ms_lock(&lock);
    uint64_t bytes = idle_bytes(device);
    ms_unlock(&lock);
    return bytes;
}

static void add_record(const struct record *r, struct ms_pool_figures *sum)
{
    sum->reserved_bytes += r->bytes;
    switch (r->state) {
    case LIVE:
    case DYING:
        sum->parts.requested += r->requested;
        sum->parts.rounding += r->bytes - r->requested;
        break;
    case HELD:
        sum->parts.pinned += r->bytes;
        break;
    case PENDING:
        sum->parts.pending += r->bytes;
        break;
    default:
        sum->parts.cached += r->bytes;
        if (r->bytes > sum->largest_free_bytes)
            sum->largest_free_bytes = r->bytes;
    }
}

bool ms_external_lock_within(unsigned timeout_ms)
{
    return ms_lock_within(&lock, timeout_ms);
}

void ms_external_unlock(void)
{
    ms_unlock(&lock);
}

void ms_external_add_figures(int device, struct ms_pool_figures *sum)
{
    if (!ms_external_any() || !is_device(device))
        return;
    ms_lock_to_look(&lock);
    for (uint32_t i = 0; i < ms_external_count; i++) {
        if (records[i].state > MAKING && records[i].device == device)
            add_record(&records[i], sum);
    }
    ms_figure_add(&ms_figure_pool, sum, &counts[device]);
    ms_unlock_after_look(&lock);
}

static void walk_record(const struct record *r, void (*hear)(void *arg, const struct ms_piece_record *piece),
                        void *arg)
{
    static const uint8_t states[] = {
        [LIVE] = MS_PIECE_LIVE,       [DYING] = MS_PIECE_LIVE, [HELD] = MS_PIECE_PINNED,
        [PENDING] = MS_PIECE_PENDING, [IDLE] = MS_PIECE_FREE,  [LEAVING] = MS_PIECE_FREE};
    const struct ms_segment_record segment = {.address = r->address,
                                              .bytes = r->bytes,
                                              .context = r->context,
                                              .device = (int16_t)r->device,
                                              .tier = MS_TIER_DEDICATED,
                                              .pinned = r->holds > 0};
    struct ms_piece_record piece = {.segment = &segment, .bytes = r->bytes, .state = states[r->state]};
    if (piece.state == MS_PIECE_LIVE) {
        piece.requested = r->requested;
        piece.record_id = r->record_id;
    }
    hear(arg, &piece);
}

void ms_external_walk(void (*hear)(void *arg, const struct ms_piece_record *piece), void *arg)
{
    if (!ms_external_any())
        return;
    ms_lock_to_look(&lock);
    for (uint32_t i = 0; i < ms_external_count; i++) {
        if (records[i].state > MAKING)
            walk_record(&records[i], hear, arg);
    }
    ms_unlock_after_look(&lock);
}

static void foreign_reset(void)
{
    ms_lock_reset(&lock);
    records = NULL;
    ms_external_count = 0;
    memset(counts, 0, sizeof(counts));
}
MS_AT_FORK(MS_FORK_POOL, foreign_reset);
