/* test_ordered.c - MEMSHIM_FREE=ordered over a driver whose streams run one step at a time, when the test says so.
 *
 * Every work is of a block and of one owner of it. Whatever order the streams run in, work of a block's former owner that runs after work
 * of a later one is a hazard. And nobody may be made to wait for more than a free of the vendor's would: a wait for
 * an event that stands behind work which was submitted after the latest free is counted as greed. One thread. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"
#include "pool/pool.h"
#include "tap.h"

#define KIB      ((uint64_t)1 << 10)
#define MIB      ((uint64_t)1 << 20)
#define CONTEXT  0xc0de00u
#define LEGACY   1u
enum { STREAMS = 5, STEPS = 1 << 14, BLOCKS = 48, EVENTS = 4096, CELLS = 1 << 18 };

/* --- the driver --- */

enum kind { WORK, WAIT };
struct step {
    enum kind kind;
    uint64_t address, owner; /* of work */
    uint32_t places[STREAMS]; /* what a wait waits for: so many steps of each stream */
};
struct stream {
    uint64_t id;
    struct step steps[STEPS];
    uint32_t submitted, ran, at_free; /* at_free: how many when something was freed last */
    bool gone, capturing;
};
struct event {
    uint32_t places[STREAMS];
};

static struct stream *streams; /* 0 is the legacy one */
static struct event events[EVENTS];
static uint32_t event_count;
static uint64_t next_address, next_id, calls, fail_at, hazards, greed, waits, synced;
static struct {
    uint64_t address, owner;
} cells[CELLS]; /* who ran last at an address */

static struct stream *stream_at(CUstream handle)
{
    uint64_t value = (uintptr_t)handle;
    unsigned index = value <= LEGACY ? 0 : (unsigned)(value >> 8) - 0x100;
    return &streams[index < STREAMS ? index : 0];
}

static uint64_t handle_of(unsigned index)
{
    return index ? (uint64_t)(0x100 + index) << 8 : LEGACY;
}

static bool fails(void)
{
    return ++calls == fail_at;
}

static uint64_t *last_owner(uint64_t address)
{
    unsigned i = (unsigned)(address >> 9) % CELLS;
    for (unsigned left = CELLS; cells[i].address && cells[i].address != address; i = (i + 1) % CELLS)
        if (--left == 0)
            bail("more addresses than the test has room for");
    cells[i].address = address;
    return &cells[i].owner;
}

static bool reached(const uint32_t *places)
{
    for (unsigned i = 0; i < STREAMS; i++)
        if (streams[i].ran < places[i])
            return false;
    return true;
}

/* One step of one stream, if nothing holds it. */
static bool run_step(unsigned index)
{
    struct stream *s = &streams[index];
    if (s->ran == s->submitted)
        return false;
    const struct step *step = &s->steps[s->ran % STEPS];
    if (step->kind == WAIT && !reached(step->places))
        return false;
    if (step->kind == WORK) {
        uint64_t *owner = last_owner(step->address);
        hazards += *owner > step->owner;
        *owner = step->owner;
    }
    s->ran++;
    return true;
}

static void run_all(void)
{
    bool any = true;
    while (any) {
        any = false;
        for (unsigned i = 0; i < STREAMS; i++)
            any |= run_step(i);
    }
}

static CUresult get_current(CUcontext *p)
{
    *p = (CUcontext)(uintptr_t)CONTEXT;
    return CUDA_SUCCESS;
}
static CUresult total_mem(size_t *p, CUdevice device)
{
    (void)device;
    *p = (size_t)8 << 30;
    return CUDA_SUCCESS;
}
static CUresult mem_alloc(CUdeviceptr *p, size_t bytes)
{
    *p = next_address;
    next_address += (bytes + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
    return CUDA_SUCCESS;
}
static CUresult mem_free(CUdeviceptr p)
{
    (void)p;
    run_all();
    return CUDA_SUCCESS;
}
static CUresult event_create(CUevent *p, unsigned int flags)
{
    (void)flags;
    if (fails() || event_count == EVENTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (CUevent)&events[event_count++];
    return CUDA_SUCCESS;
}
static CUresult event_destroy(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}
static CUresult event_record(CUevent event, CUstream handle)
{
    struct stream *s = stream_at(handle);
    struct event *e = (struct event *)event;
    if (fails() || s->gone)
        return CUDA_ERROR_INVALID_HANDLE;
    memset(e, 0, sizeof(*e));
    e->places[s - streams] = s->submitted;
    return CUDA_SUCCESS;
}
static CUresult ctx_record_event(CUcontext context, CUevent event)
{
    struct event *e = (struct event *)event;
    (void)context;
    if (fails())
        return CUDA_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; i < STREAMS; i++)
        e->places[i] = streams[i].submitted;
    return CUDA_SUCCESS;
}
static CUresult event_query(CUevent event)
{
    return reached(((const struct event *)event)->places) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
static void push(struct stream *s, struct step step)
{
    if (s->submitted - s->ran == STEPS)
        run_all();
    s->steps[s->submitted++ % STEPS] = step;
}
static CUresult stream_wait_event(CUstream handle, CUevent event, unsigned int flags)
{
    const struct event *e = (const struct event *)event;
    struct step step = {.kind = WAIT};
    (void)flags;
    if (fails())
        return CUDA_ERROR_INVALID_HANDLE;
    memcpy(step.places, e->places, sizeof(step.places));
    for (unsigned i = 0; i < STREAMS; i++)
        greed += e->places[i] > streams[i].at_free;
    push(stream_at(handle), step);
    waits++;
    return CUDA_SUCCESS;
}
static bool nameless;
static unsigned long long own_id; /* of the running thread's own stream */
static CUresult stream_get_id(CUstream handle, unsigned long long *p)
{
    if (nameless)
        return CUDA_ERROR_UNKNOWN;
    *p = handle == CU_STREAM_PER_THREAD ? own_id : stream_at(handle)->id;
    return CUDA_SUCCESS;
}
static CUresult stream_is_capturing(CUstream handle, CUstreamCaptureStatus *p)
{
    *p = stream_at(handle)->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
static CUresult stream_synchronize(CUstream handle)
{
    (void)handle;
    run_all();
    synced++;
    return CUDA_SUCCESS;
}
static CUresult synchronize(void)
{
    run_all();
    synced++;
    return CUDA_SUCCESS;
}

static const struct ms_gpu gpu = {.vendor = &ms_gpu_cuda, .ctx_get_current = get_current, .device_total_mem = total_mem,
                                  .mem_alloc = mem_alloc, .mem_free = mem_free, .event_create = event_create,
                                  .event_destroy = event_destroy, .event_record = event_record, .event_query = event_query,
                                  .ctx_record_event = ctx_record_event, .stream_wait_event = stream_wait_event,
                                  .stream_get_id = stream_get_id, .stream_is_capturing = stream_is_capturing,
                                  .stream_synchronize = stream_synchronize, .ctx_synchronize = synchronize};

/* --- the program --- */

static uint64_t size_of(char option, uint64_t total_bytes)
{
    (void)total_bytes;
    return option == 'L' ? UINT64_MAX : option == 'K' ? 256 * MIB : option == 'P' ? 0 : 16 * MIB;
}
static struct ms_pool_policy policy = {.free_rule = MS_POOL_ORDERED, .size_of = size_of};
static char last_note[200];
static void note(const char *line)
{
    snprintf(last_note, sizeof(last_note), "%s", line);
}
static const struct ms_pool_observer observer = {.note = note};

struct block {
    uint64_t address, bytes, owner;
};
static uint64_t owners;
static struct ms_pool_ordered_figures before;

static struct ms_pool_ordered_figures figures(void)
{
    struct ms_pool_ordered_figures f;
    ms_pool_ordered_figures(&f);
    return (struct ms_pool_ordered_figures){f.at_once - before.at_once, f.marks - before.marks, f.waits - before.waits,
                                            f.host_waits - before.host_waits};
}

static void fresh(void)
{
    static bool initialised;
    free(streams);
    streams = calloc(STREAMS, sizeof(*streams));
    for (unsigned i = 0; i < STREAMS; i++)
        streams[i].id = ++next_id;
    memset(cells, 0, sizeof(cells));
    next_address = (uint64_t)1 << 40;
    event_count = 0;
    calls = fail_at = hazards = greed = waits = synced = 0;
    last_note[0] = 0;
    if (!initialised)
        ms_pool_init(&policy, &observer);
    else
        ms_pool_reset();
    initialised = true;
    ms_pool_ordered_figures(&before);
}

static struct block take(uint64_t bytes)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_alloc(&gpu, CONTEXT, 0, bytes, &block, &status) != MS_POOL_SERVED)
        return (struct block){0};
    return (struct block){block.address, bytes, ++owners};
}

static void give(const struct block *b)
{
    struct ms_pool_block block;
    int status = 0;
    for (unsigned i = 0; i < STREAMS; i++)
        streams[i].at_free = streams[i].submitted;
    if (ms_pool_free_begin(b->address, &block, &status) == MS_POOL_SERVED)
        ms_pool_free_end(&block);
}

/* As the hooks do it. */
static void submit(unsigned index, const struct block *b)
{
    struct ms_pool_stream *s = ms_pool_stream_find(&gpu, CONTEXT, handle_of(index));
    if (!s)
        ms_pool_submit_stranger(CONTEXT, handle_of(index));
    bool begun = s && (ms_pool_submit_is_plain(s) || ms_pool_submit_begin(&gpu, s));
    if (!streams[index].capturing)
        push(&streams[index], (struct step){WORK, b->address, b->owner, {0}});
    if (begun)
        ms_pool_submit_end(s);
}

static void destroy(unsigned index)
{
    ms_pool_ordered_stream_dies(CONTEXT, handle_of(index));
    while (streams[index].ran < streams[index].submitted) /* whoever has the handle next begins anew; the work goes on */
        run_all();
    streams[index].id = ++next_id;
}

static void sync_context(void)
{
    uint64_t mark = ms_pool_sync_begin(CONTEXT);
    run_all();
    ms_pool_sync_end(CONTEXT, mark, 0);
}

/* --- what must be --- */

static void one_after_the_other(void)
{
    struct block a = {0}, b;
    fresh();
    a = take(3 * MIB);
    submit(1, &a);
    give(&a);
    b = take(3 * MIB);
    ok(b.address == a.address, "a block of the one stream that has work comes again at once");
    is_u64(figures().marks, 0, "no event so far");
    submit(1, &b);
    is_u64(figures().marks, 1, "one before the stream is given more");
    submit(1, &b);
    is_u64(figures().marks, 1, "and no other");
    submit(2, &b);
    is_u64(waits, 1, "a stream that joins waits");
    submit(2, &b);
    is_u64(waits, 1, "once");
    is_u64(greed, 0, "for what was submitted before the free");
    give(&b);
    b = take(3 * MIB);
    ok(b.address != a.address, "while two streams have work, nothing comes again at once");
    run_all();
    is_u64(hazards, 0, "no hazard");
    sync_context();
    a = take(700 * KIB);
    submit(2, &a);
    give(&a);
    b = take(700 * KIB);
    ok(b.address == a.address, "after the program has waited, one stream has the work again");
    run_all();
}

static void a_wait_for_one_stream(void)
{
    struct block a, b;
    fresh();
    a = take(100 * KIB);
    submit(1, &a);
    submit(2, &a);
    struct ms_pool_stream *s = ms_pool_stream_find(&gpu, CONTEXT, handle_of(1));
    uint64_t epoch = ms_pool_stream_wait_begin(s);
    run_all();
    ms_pool_stream_wait_end(s, epoch);
    submit(2, &a);
    give(&a);
    b = take(100 * KIB);
    ok(b.address == a.address, "a stream that the program waited for has no work any more");
    submit(1, &b);
    is_u64(waits, 1, "and waits when it is given some");
    run_all();
    is_u64(hazards, 0, "no hazard");
}

static void captures_shut(void)
{
    struct block a, b;
    fresh();
    a = take(100 * KIB);
    submit(1, &a);
    give(&a);
    ms_pool_ordered_shut(CONTEXT, 1);
    is_u64(figures().marks, 1, "the event is recorded before a capture begins");
    streams[3].capturing = true;
    b = take(100 * KIB);
    submit(3, &b);
    is_u64(waits, 0, "a stream that captures is left alone");
    submit(1, &b);
    give(&b);
    a = take(100 * KIB);
    ok(a.address != b.address, "while a capture is open, nothing comes again at once");
    streams[3].capturing = false;
    ms_pool_ordered_shut(CONTEXT, -1);
    run_all();
    is_u64(hazards, 0, "no hazard");
}

/* A stream that the driver does not tell apart: what was given at once is waited for, and nothing more is given so. */
static void a_stranger_comes(void)
{
    struct block a, b;
    fresh();
    a = take(3 * MIB);
    submit(1, &a);
    give(&a);
    b = take(3 * MIB);
    nameless = true;
    submit(2, &b);
    nameless = false;
    ok(b.address == a.address && waits == 1, "a stream without a name waits");
    give(&b);
    a = take(3 * MIB);
    ok(a.address != b.address && strstr(last_note, "goes on as fence"), "and is the last for which anything came at once");
    run_all();
    is_u64(hazards, 0, "no hazard");
}

/* With the driver refusing the n-th event or wait. */
static void refused(void)
{
    uint64_t most = 0, wrong = 0, by_host = 0;
    for (uint64_t n = 1; n < 8; n++) {
        struct block a, b;
        fresh();
        fail_at = n;
        a = take(3 * MIB);
        submit(1, &a);
        give(&a);
        b = take(3 * MIB);
        submit(2, &b);
        run_all();
        wrong += hazards;
        by_host += synced > 0;
        most = calls;
    }
    ok(most >= 3, "%llu calls that can be refused", (unsigned long long)most);
    is_u64(wrong, 0, "whichever is refused, there is no hazard");
    ok(by_host >= 3, "the host waits instead (%llu times)", (unsigned long long)by_host);
    ok(strstr(last_note, "goes on as fence") || by_host, "and a line says so: %s", last_note);
}

static uint64_t random_state;
static uint32_t pick(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % below;
}

static void step_at_random(struct block *blocks, unsigned *alone)
{
    struct block *b = &blocks[pick(BLOCKS)];
    uint32_t what = pick(1000);
    unsigned index = pick(60) ? *alone : pick(STREAMS);
    if (what < 2) {
        sync_context();
    } else if (what < 6) {
        *alone = pick(STREAMS);
    } else if (what < 8 && index) {
        destroy(index);
    } else if (what < 12) {
        struct ms_pool_stream *s = ms_pool_stream_find(&gpu, CONTEXT, handle_of(index));
        uint64_t epoch = ms_pool_stream_wait_begin(s);
        while (streams[index].ran < streams[index].submitted)
            run_all();
        ms_pool_stream_wait_end(s, epoch);
    } else if (what < 400) {
        run_step(pick(STREAMS));
    } else if (!b->address) {
        *b = take(pick(3) ? 4 * KIB : pick(2) ? 300 * KIB : 3 * MIB);
    } else if (what < 750) {
        submit(index, b);
    } else {
        give(b);
        b->address = 0;
    }
}

static void at_random(void)
{
    static struct block blocks[BLOCKS];
    uint64_t rounds = getenv("TEST_ROUNDS") ? strtoull(getenv("TEST_ROUNDS"), NULL, 0) : 300000;
    unsigned alone = 1;
    fresh();
    memset(blocks, 0, sizeof(blocks));
    random_state = 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < rounds && !hazards; i++)
        step_at_random(blocks, &alone);
    run_all();
    struct ms_pool_ordered_figures f = figures();
    is_u64(hazards, 0, "at random: no hazard in %llu steps", (unsigned long long)rounds);
    is_u64(greed, 0, "at random: nobody waits for more than the free would have");
    ok(f.at_once > rounds / 50 && f.marks > 1000 && f.waits > 100 && f.host_waits == 0,
       "at random: %llu blocks at once, %llu events, %llu waits on the device", (unsigned long long)f.at_once,
       (unsigned long long)f.marks, (unsigned long long)f.waits);
    const char *wrong = ms_pool_check();
    ok(!wrong, "every invariant holds%s%s", wrong ? ": " : "", wrong ? wrong : "");
}

static void without_order(void)
{
    static struct block blocks[BLOCKS];
    unsigned alone = 1;
    fresh();
    policy.free_rule = MS_POOL_IMMEDIATE;
    memset(blocks, 0, sizeof(blocks));
    random_state = 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < 200000 && !hazards; i++)
        step_at_random(blocks, &alone);
    ok(hazards > 0, "without any order the same steps are a hazard");
    policy.free_rule = MS_POOL_ORDERED;
}

static void *meet_own(void *unused)
{
    return ms_pool_stream_find(&gpu, CONTEXT, (uintptr_t)CU_STREAM_PER_THREAD) ? &own_id : unused;
}

/* Nobody tells of the end of a thread. */
static void threads_come_and_go(void)
{
    int told_apart = 0;
    fresh();
    struct block b = take(4096);
    for (int i = 0; i < 600; i++) {
        pthread_t thread;
        void *met = NULL;
        own_id = ++next_id;
        if (pthread_create(&thread, NULL, meet_own, NULL) == 0)
            pthread_join(thread, &met);
        told_apart += met != NULL;
    }
    is_int(told_apart, 600, "600 threads' own streams, one after another, are told apart");
    give(&b);
}

int main(void)
{
    plan(0);
    one_after_the_other();
    a_wait_for_one_stream();
    captures_shut();
    at_random();
    without_order();
    threads_come_and_go();
    a_stranger_comes();
    refused(); /* last: what is refused ends the policy for the process */
    return done();
}
