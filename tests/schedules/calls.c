/* calls.c - makes the calls of calls.h, and keeps what was handed out, freed and pinned.
 *
 * What is kept is of no task, and read and written without points: marked as meant, as all that is
 * MS_UNSYNCHRONIZED. */
#include <ctype.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/bias.h"
#include "calls.h"
#include "engine.h"
#include "fake.h"
#include "pool/stream/stream.h"
#include "recorded.h"

enum { PATIENCE = 20, BLOCKS = 8, SPANS = 512, OTHER_DEVICE = 1 };
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const uint64_t sizes[BLOCKS] = {512, 4 * KIB, 64 * KIB, MIB, 3 * MIB, 512, 20 * MIB, 5 * MIB};

enum kept { NOTHING, HELD, FREED, PINNED };

static struct span_of_memory {
    uint64_t address, bytes, work; /* FREED: what was issued before */
    struct fake_context *context;
    enum kept kept;
} spans[SPANS];
static unsigned span_count;

static const struct ms_gpu *gpu;
static struct fake_context *contexts[2];
static struct block {
    _Atomic uint64_t address; /* 0: nobody has it */
    _Atomic uint64_t seen;    /* ... also what it was, for who was told by nobody */
} blocks[BLOCKS];
static atomic_bool other_is_gone;
static bool forked;

struct caller {
    const char *text;
    struct fake_context *context;
    uint64_t pinned;
    int captures;
};

/* --- what is kept
 * ----------------------------------------------------------------------------------------- */

static bool overlaps(const struct span_of_memory *span, uint64_t address, uint64_t bytes)
{
    return address < span->address + span->bytes && span->address < address + bytes;
}

static MS_UNSYNCHRONIZED void keep(enum kept kept, uint64_t address, uint64_t bytes,
                                   struct fake_context *context)
{
    if (span_count == SPANS)
        engine_fail("more is taken than is kept");
    spans[span_count++] = (struct span_of_memory){address, bytes, context->issued, context, kept};
}

/* False if it was not kept so. */
static MS_UNSYNCHRONIZED bool forget(enum kept kept, uint64_t address)
{
    for (unsigned i = 0; i < span_count; i++) {
        if (spans[i].kept != kept || spans[i].address != address)
            continue;
        spans[i].kept = NOTHING;
        return true;
    }
    return false;
}

static MS_UNSYNCHRONIZED bool is_pinned(uint64_t address)
{
    for (unsigned i = 0; i < span_count; i++) {
        if (spans[i].kept == PINNED && spans[i].address == address)
            return true;
    }
    return false;
}

/* The pool has handed this out. Returns what the recorder is to know it by. */
static MS_UNSYNCHRONIZED uint32_t note_taken(uint64_t address, uint64_t bytes, struct fake_context *context)
{
    for (unsigned i = 0; i < span_count; i++) {
        const struct span_of_memory *span = &spans[i];
        if (span->context->dead || !overlaps(span, address, bytes))
            continue;
        if (span->kept == HELD)
            engine_fail("two have the memory at %#llx", (unsigned long long)address);
        if (span->kept == PINNED)
            engine_fail("memory at %#llx is pinned, and handed out again", (unsigned long long)address);
        if (span->kept == FREED && span->context->done < span->work)
            engine_fail("work is still at the memory at %#llx", (unsigned long long)address);
    }
    keep(HELD, address, bytes, context);
    return span_count;
}

static MS_UNSYNCHRONIZED uint32_t ticket_of(uint64_t address)
{
    for (unsigned i = 0; i < span_count; i++) {
        if (spans[i].kept == HELD && spans[i].address == address)
            return i + 1;
    }
    return 0;
}

static MS_UNSYNCHRONIZED struct fake_context *context_of(uint64_t address)
{
    for (unsigned i = 0; i < span_count; i++) {
        if (spans[i].kept == HELD && spans[i].address == address)
            return spans[i].context;
    }
    return contexts[0];
}

static MS_UNSYNCHRONIZED bool is_dead(const struct fake_context *context)
{
    return context->dead;
}

/* --- calls
 * ------------------------------------------------------------------------------------------------ */

static void wait_for_pending(const struct ms_pool_block *block)
{
    struct ms_pool_wait wait;
    if (!block->over || !ms_pool_wait_begin(block, &wait))
        return;
    for (unsigned i = 0; i < 3 && !ms_pool_wait_poll(&wait); i++)
        engine_point(__builtin_return_address(0));
}

static void look_at_freed(const struct ms_pool_block *block, unsigned which, uint32_t record_id)
{
    if (block->requested != sizes[which] || (block->record_id != record_id && !recorded_is_on()))
        engine_fail("a block of %llu bytes and ticket %u is freed as one of %llu and %u",
                    (unsigned long long)sizes[which], record_id, (unsigned long long)block->requested,
                    block->record_id);
}

/* The record is told before the pool is done with it: another may have it from then on. */
static void unrecord(const struct ms_pool_block *block, const struct fake_context *context)
{
    if (!recorded_unserve(block) && !is_dead(context))
        engine_fail("the record has no live block at %#llx", (unsigned long long)block->address);
}

static bool free_usually(unsigned which, uint64_t address, uint32_t record_id,
                         const struct fake_context *context, struct ms_pool_block *block)
{
    int status = 0;
    if (ms_pool_free_begin(address, MS_POOL_AT_HAND, block, &status) != MS_POOL_SERVED &&
        ms_pool_free_begin(address, MS_POOL_ANYHOW, block, &status) != MS_POOL_SERVED) {
        if (!is_dead(context))
            engine_fail("a live block cannot be freed");
        return false;
    }
    look_at_freed(block, which, record_id);
    unrecord(block, context);
    ms_pool_free_end(block);
    return true;
}

static void give_back(unsigned which, uint64_t address)
{
    struct ms_pool_block block;
    struct fake_context *context = context_of(address);
    uint32_t record_id = ticket_of(address);
    if (is_dead(context) || !forget(HELD, address))
        return;
    keep(FREED, address, sizes[which], context);
    if (recorded_free_hit(address)) {
        if (is_pinned(address))
            engine_fail("memory at %#llx is pinned, and goes where all does", (unsigned long long)address);
        return;
    }
    recorded_begin();
    bool freed = free_usually(which, address, record_id, context, &block);
    recorded_end();
    if (freed)
        wait_for_pending(&block);
}

/* The block is there for all; or freed, where another task has put one there meanwhile. */
static void hand_over(unsigned which, uint64_t address)
{
    uint64_t nobody = 0;
    if (!atomic_compare_exchange_strong(&blocks[which].address, &nobody, address))
        give_back(which, address);
}

/* 0: there is no memory. */
static uint64_t take_usually(struct fake_context *context, uint64_t bytes)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_AT_HAND, &block, &status) !=
            MS_POOL_SERVED &&
        ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        return 0;
    uint32_t number = note_taken(block.address, bytes, context);
    ms_pool_set_record_id(&block, recorded_is_on() ? recorded_serve(&block, bytes) : number);
    return block.address;
}

static void take(struct caller *caller, unsigned which)
{
    if (atomic_load(&blocks[which].address) || is_dead(caller->context))
        return;
    uint64_t address = recorded_hit((uintptr_t)caller->context, sizes[which], !hits_have_ready(sizes[which]));
    if (address) {
        note_taken(address, sizes[which], caller->context);
    } else {
        recorded_begin();
        address = take_usually(caller->context, sizes[which]);
        recorded_end();
        recorded_learn();
    }
    if (!address)
        return;
    atomic_store_explicit(&blocks[which].seen, address, memory_order_relaxed);
    hand_over(which, address);
}

/* As hooks do it for memory that the pool does not make: asked for again when room was made. */
static void take_otherwise(unsigned which)
{
    struct ms_room room = {0};
    CUdeviceptr address;
    while (gpu->mem_alloc(&address, sizes[which]) != CUDA_SUCCESS) {
        if (!ms_room_make(0, true, &room))
            engine_fail("memory of another kind is refused, for which there is room");
    }
}

static void give(unsigned which)
{
    uint64_t address = atomic_exchange(&blocks[which].address, 0);
    if (address)
        give_back(which, address);
}

/* The pool itself says who is the first. */
static void give_twice(unsigned which)
{
    struct ms_pool_block block;
    int status = 0;
    uint64_t address = atomic_load(&blocks[which].address);
    bool hit = address && recorded_free_hit(address);
    if (!address || (!hit && ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED))
        return;
    if (!forget(HELD, address))
        engine_fail("a block is freed twice");
    keep(FREED, address, sizes[which], contexts[0]);
    if (hit)
        return;
    recorded_begin();
    unrecord(&block, contexts[0]);
    ms_pool_free_end(&block);
    recorded_end();
}

static void pin(struct caller *caller, unsigned which)
{
    uint64_t address = atomic_exchange(&blocks[which].address, 0);
    if (!address)
        return;
    if (!caller->pinned && ms_pool_pin(address)) {
        caller->pinned = address;
        keep(PINNED, address, 1, caller->context);
    }
    hand_over(which, address);
}

static void unpin(struct caller *caller)
{
    if (!caller->pinned)
        return;
    forget(PINNED, caller->pinned);
    ms_pool_unpin(caller->pinned);
    caller->pinned = 0;
}

static bool was_asked_for(uint64_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (sizes[i] == bytes)
            return true;
    }
    return false;
}

static void look_up(unsigned which)
{
    struct ms_pool_block block;
    uint64_t address = 0;
    for (unsigned i = 0; i < PATIENCE && !address; i++)
        address = atomic_load_explicit(&blocks[which].seen, memory_order_relaxed);
    bool gone = atomic_load(&other_is_gone);
    if (!address || !ms_pool_find(address, &block))
        return;
    if (block.address > address)
        engine_fail("what is found begins behind what was asked for");
    if (!was_asked_for(block.requested))
        engine_fail("what is found has %llu bytes, for which nobody asked",
                    (unsigned long long)block.requested);
    if (gone && block.context == (uintptr_t)contexts[1])
        engine_fail("what is found was the memory of a context that is no more");
    ms_pool_owns(address);
}

/* Of all that was issued one thing more is done. */
static MS_UNSYNCHRONIZED void finish_one(struct fake_context *context)
{
    context->done += context->done < context->issued;
}

/* The driver's own, under its lock. */
static MS_UNSYNCHRONIZED void count_capture(struct fake_context *context, int change)
{
    context->captures += change;
}

static MS_UNSYNCHRONIZED int captures_in(const struct fake_context *context)
{
    return context->captures;
}

static void capture(struct caller *caller, int change)
{
    uintptr_t context = (uintptr_t)caller->context;
    if (is_dead(caller->context) || (change < 0 && !caller->captures))
        return;
    ms_pool_capture_enter(context);
    if (change > 0)
        ms_pool_capture_begins();
    caller->captures += change;
    count_capture(caller->context, change);
    ms_pool_capture_leave(context, (uintptr_t)caller, caller->captures > 0);
}

static void synchronize(struct caller *caller)
{
    uintptr_t context = (uintptr_t)caller->context;
    if (is_dead(caller->context) || captures_in(caller->context))
        return;
    uint64_t mark = ms_pool_sync_begin(context);
    fake_finish(caller->context);
    ms_pool_sync_end(context, mark, 0);
}

static void die(struct caller *caller)
{
    uintptr_t context = (uintptr_t)caller->context;
    if (is_dead(caller->context))
        return;
    ms_pool_context_ending(context);
    fake_kill(caller->context);
    atomic_store(&other_is_gone, caller->context == contexts[1]);
    ms_stream_context_died(context);
    ms_pool_context_ended(context, true);
    recorded_died(context);
}

struct pieces {
    uint64_t live, pending, pinned;
};

static void add_piece(void *arg, const struct ms_piece_record *piece)
{
    struct pieces *sum = arg;
    sum->live += piece->state == MS_PIECE_LIVE ? piece->requested : 0;
    sum->pending += piece->state == MS_PIECE_PENDING ? piece->bytes : 0;
    sum->pinned += piece->state == MS_PIECE_PINNED ? piece->bytes : 0;
}

void calls_stop(void)
{
    struct ms_pool_figures f;
    struct pieces sum = {0, 0, 0};
    if (!ms_pool_stop(1000))
        return;
    ms_pool_figures(0, &f);
    engine_point(__builtin_return_address(0));
    ms_pool_walk(add_piece, &sum);
    const struct ms_parts *p = &f.parts;
    uint64_t all = p->requested + p->rounding + p->pending + p->cached + p->stranded + p->pinned;
    if (sum.live != p->requested || sum.pending != p->pending || sum.pinned != p->pinned ||
        all != f.reserved_bytes)
        engine_fail("stopped, the figures have %llu live, %llu in limbo, %llu pinned; the pieces %llu, %llu, "
                    "%llu",
                    (unsigned long long)p->requested, (unsigned long long)p->pending,
                    (unsigned long long)p->pinned, (unsigned long long)sum.live,
                    (unsigned long long)sum.pending, (unsigned long long)sum.pinned);
    recorded_expect_live(sum.live);
    ms_pool_go();
}

/* The child has its parent's memory, whatever went on there, and begins with a driver of its own. */
static void fork_now(struct caller *caller)
{
    engine_end_others();
    forked = true;
    calls_prepare(64 * MIB, fake_vmm, "t0 t3 g0 i t1 g3 s x");
    caller->context = contexts[0];
    caller->pinned = 0;
    fake_set_current(contexts[0]);
}

static void call_more(struct caller *caller, char what, unsigned which)
{
    struct ms_pool_figures figures;
    switch (what) {
    case 'x':
        ms_pool_trim(0, 0);
        break;
    case 'a':
        take_otherwise(which);
        break;
    case 'm':
        ms_room_make(0, true, &(struct ms_room){0});
        break;
    case 'q':
        ms_pool_figures(0, &figures);
        ms_pool_reclaimable(0);
        break;
    case 'o':
        calls_stop();
        break;
    case 'b': /* so much, which nobody frees, that what is mapped by handle comes in long handles */
        take_usually(caller->context, 1024 * MIB);
        break;
    case 'r':
        ms_pool_peer((uintptr_t)caller->context, OTHER_DEVICE, true);
        break;
    case 'w':
        ms_pool_rested();
        break;
    case 'h':
        finish_one(caller->context);
        break;
    case 'G':
        ms_pool_graph_alive((uintptr_t)caller->context, 1);
        break;
    case 'F':
        fork_now(caller);
        break;
    case '2':
        caller->context = contexts[1];
        fake_set_current(caller->context);
        break;
    default:
        engine_fail("there is no call %c", what);
    }
}

static void call(struct caller *caller, char what, unsigned which)
{
    switch (what) {
    case 't':
        take(caller, which);
        break;
    case 'g':
        give(which);
        break;
    case 'd':
        give_twice(which);
        break;
    case 'p':
        pin(caller, which);
        break;
    case 'u':
        unpin(caller);
        break;
    case 'l':
        look_up(which);
        break;
    case 'i':
        fake_issue(caller->context);
        break;
    case 'f':
        fake_finish(caller->context);
        break;
    case 's':
        synchronize(caller);
        break;
    case 'c':
    case 'e':
        capture(caller, what == 'c' ? 1 : -1);
        break;
    case 'k':
        die(caller);
        break;
    default:
        call_more(caller, what, which);
    }
}

static void make_calls(void *text)
{
    struct caller caller = {text, contexts[0], 0, 0};
    fake_set_current(contexts[0]);
    while (*caller.text) {
        char what = *caller.text++;
        unsigned which = isdigit((unsigned char)*caller.text) ? (unsigned)(*caller.text++ - '0') % BLOCKS : 0;
        if (what != ' ')
            call(&caller, what, which);
    }
    while (caller.captures)
        capture(&caller, -1);
    unpin(&caller);
}

static void prepare(uint64_t capacity, bool vmm, const char *text)
{
    fake_vmm = vmm;
    gpu = fake_fresh(capacity);
    span_count = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        atomic_store(&blocks[i].address, 0);
    for (unsigned i = 0; i < 2; i++)
        contexts[i] = fake_context(0);
    make_calls((void *)(uintptr_t)text);
}

void calls_prepare(uint64_t capacity, bool vmm, const char *text)
{
    prepare(capacity, vmm, text);
    ms_bias_start();
}

/* Until thread cache and shard are its own, and of each size blocks have come and gone. */
static const char *const often = "t0 t1 t2 g0 g1 g2 t0 t1 t2 g0 g1 g2 t0 t1 t2 g0 g1 g2 "
                                 "t0 t1 t2 g0 g1 g2 t0 t1 t2 g0 g1 g2 t0 t1 t2 g0 g1 g2 s ";

void calls_prepare_hits(uint64_t capacity, const char *text)
{
    recorded_start();
    prepare(capacity, false, often);
    recorded_learn();
    uint64_t address = recorded_hit((uintptr_t)contexts[0], sizes[0], false);
    if (!address || !recorded_free_hit(address))
        abort();
    make_calls((void *)(uintptr_t)text);
}

void calls_task(const char *text)
{
    engine_task(make_calls, (void *)(uintptr_t)text);
}

void calls_new_thread(const char *text)
{
    engine_new_thread(make_calls, (void *)(uintptr_t)text);
}

/* What the pool knows of each block that is held, the record knows, and no others. */
static void check_record(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < span_count; i++) {
        const struct span_of_memory *span = &spans[i];
        struct ms_pool_block block;
        if (span->kept != HELD || span->context->dead)
            continue;
        count++;
        if (!ms_pool_find(span->address, &block) || block.address != span->address)
            engine_fail("the pool does not have the block at %#llx", (unsigned long long)span->address);
        else
            recorded_expect(block.record_id, span->address, span->bytes);
    }
    if (!contexts[0]->dead)
        recorded_expect_count(count);
}

void calls_check(void)
{
    const char *wrong = ms_pool_check();
    if (wrong)
        engine_fail("%s", wrong);
    if (fake.destroyed_captures)
        engine_fail("a capture was destroyed");
    if (fake.wrong_context + fake.unknown_frees + fake.vmm_errors)
        engine_fail("a call of the driver's was wrong: %llu contexts, %llu frees, %llu mappings",
                    (unsigned long long)fake.wrong_context, (unsigned long long)fake.unknown_frees,
                    (unsigned long long)fake.vmm_errors);
    if (recorded_is_on())
        check_record();
}
