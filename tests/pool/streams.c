/* streams.c - see streams.h. malloc is allowed here. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "streams_types.h"

#define PAGE   ((uint64_t)2 << 20)
#define BEGIN  ((uint64_t)0x700000000000)
#define UNITS  ((uint64_t)4 << 20) /* of 512 bytes: 2 GiB of addresses */
#define BLOCKS 65536

static struct event *events;
struct model model;
uint64_t model_segments, model_keep;
static struct last *units;
static struct stream streams[MODEL_STREAMS]; /* 0 is the legacy one */
static struct {
    uint64_t address, bytes;
    uintptr_t pool; /* index */
    bool live;
} blocks[BLOCKS];
static uint64_t block_count, current_pool, next_address, next_id, next_context, open_captures;
static struct {
    bool live;
    int opportunistic, internal;
    cuuint64_t threshold, reserved, used;
    cuuint64_t unseen[MODEL_STREAMS]; /* freed there, and the host has not waited for the stream since */
} pools[MODEL_POOLS];                 /* 0 is the default one */
static __thread CUstreamCaptureMode mode;

static bool fails(void)
{
    model.on_call ? model.on_call() : (void)0;
    return ++model.all_calls == model.fail_at;
}
#define MAY_FAIL()                                                                                           \
    do {                                                                                                     \
        if (fails())                                                                                         \
            return (CUresult)model.fail_status;                                                              \
    } while (0)

static QUIET uint64_t handle_of(unsigned index)
{
    return index ? 0x10000 + index * 0x100 : 1;
}

static struct stream *find(uint64_t handle)
{
    unsigned index = handle <= 1 ? 0 : (unsigned)(handle - 0x10000) / 0x100;
    if (handle > 1 && (handle < 0x10000 || index >= MODEL_STREAMS))
        return NULL;
    if (!streams[index].live)
        model.stale_handles++;
    return streams[index].live ? &streams[index] : NULL;
}

static QUIET bool over(const struct last *last)
{
    return !last->id || streams[last->stream].id != last->id || streams[last->stream].done >= last->seq;
}

/* Whether what was done last comes before whatever the stream does next. */
static QUIET bool before(const struct last *last, const struct stream *s)
{
    const struct sight *sight = &s->sees[last->stream];
    return over(last) || last->id == s->id || (sight->id == last->id && sight->seq >= last->seq);
}

static QUIET void see(struct stream *s, unsigned i, struct sight sight)
{
    if (streams[i].id == sight.id && (s->sees[i].id != sight.id || s->sees[i].seq < sight.seq))
        s->sees[i] = sight;
}

/* --- the driver's functions ----------------------------------------------------------------------------- */

static CUresult get_current(CUcontext *p)
{
    *p = (CUcontext)next_context;
    return CUDA_SUCCESS;
}
static QUIET CUresult get_device(CUdevice *p)
{
    *p = 0;
    return CUDA_SUCCESS;
}
static QUIET CUresult total_mem(size_t *p, CUdevice device)
{
    (void)device;
    *p = model.total ? model.total : (size_t)8 << 30;
    return CUDA_SUCCESS;
}
static QUIET CUresult exchange(CUstreamCaptureMode *p)
{
    CUstreamCaptureMode old = mode;
    mode = *p;
    *p = old;
    return CUDA_SUCCESS;
}
static CUresult get_id(CUstream handle, unsigned long long *p)
{
    struct stream *s = find((uintptr_t)handle);
    MAY_FAIL();
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    *p = s->id;
    return CUDA_SUCCESS;
}
static CUresult get_ctx(CUstream handle, CUcontext *p)
{
    struct stream *s = find((uintptr_t)handle);
    MAY_FAIL();
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    *p = (CUcontext)s->context;
    return CUDA_SUCCESS;
}
static CUresult is_capturing(CUstream handle, CUstreamCaptureStatus *p)
{
    struct stream *s = find((uintptr_t)handle);
    *p = s && s->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (s == streams && open_captures)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
static bool all_over(uint64_t address, uint64_t bytes)
{
    uint64_t at = address;
    while (at < address + bytes && over(&units[(at - BEGIN) / 512]))
        at += 512;
    return at >= address + bytes;
}

/* One of that size that nobody is at any more, or a new one. */
static uint32_t block_for(uint64_t bytes)
{
    for (uint32_t i = 0; i < block_count; i++) {
        if (!blocks[i].live && blocks[i].bytes == bytes && all_over(blocks[i].address, bytes))
            return i;
    }
    if (block_count == BLOCKS || next_address + bytes + 2 * PAGE - BEGIN > UNITS * 512)
        abort();
    blocks[block_count].address = next_address + model.offset;
    blocks[block_count].bytes = bytes;
    next_address += (bytes + 2 * PAGE) / PAGE * PAGE;
    return block_count++;
}

/* Places in it are not told apart: what it has and does not use can serve any request. */
static void reserve(uintptr_t index, uint64_t bytes)
{
    cuuint64_t *reserved = &pools[index].reserved, missing;
    pools[index].used += bytes;
    missing = pools[index].used > *reserved ? pools[index].used - *reserved : 0;
    if (missing && missing < model.unit)
        missing = model.unit;
    *reserved += model.rounds ? (missing + model.unit - 1) / model.unit * model.unit : missing;
}

static CUresult alloc(CUdeviceptr *p, size_t bytes, CUmemoryPool pool, CUstream handle)
{
    struct stream *s = find((uintptr_t)handle);
    uintptr_t index = (uintptr_t)pool - 1;
    MAY_FAIL();
    if (!s || index >= MODEL_POOLS || !pools[index].live)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capturing)
        abort();
    if (model.used + bytes > model.capacity)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t i = block_for(bytes);
    blocks[i].live = true;
    blocks[i].pool = index;
    reserve(index, bytes);
    *p = blocks[i].address;
    model.used += bytes;
    model.allocs++;
    bool idle = s->done >= s->issued;
    model_used((uintptr_t)handle, *p, bytes); /* its own stream may have it; others not before this is done */
    if (idle)
        s->done = s->issued;
    if (model.meanwhile) {
        void (*meanwhile)(void) = model.meanwhile;
        model.meanwhile = NULL;
        meanwhile();
    }
    return CUDA_SUCCESS;
}
static CUresult give(CUdeviceptr p, const struct stream *s)
{
    for (uint32_t i = 0; i < block_count; i++) {
        if (!blocks[i].live || blocks[i].address != p)
            continue;
        blocks[i].live = false;
        model.used -= blocks[i].bytes;
        pools[blocks[i].pool].used -= blocks[i].bytes;
        if (s) {
            pools[blocks[i].pool].unseen[s - streams] += blocks[i].bytes;
            streams[s - streams].freed_seq = s->issued;
        }
        model.frees++;
        for (uint64_t at = p; at < p + blocks[i].bytes; at += 512) {
            const struct last *last = &units[(at - BEGIN) / 512];
            model.hazards += s ? !before(last, s) : !over(last);
        }
        return CUDA_SUCCESS;
    }
    model.unknown_frees++;
    return CUDA_ERROR_INVALID_VALUE;
}
static CUresult free_async(CUdeviceptr p, CUstream handle)
{
    struct stream *s = find((uintptr_t)handle);
    MAY_FAIL();
    return s ? give(p, s) : CUDA_ERROR_INVALID_HANDLE;
}
static CUresult free_now(CUdeviceptr p)
{
    MAY_FAIL();
    return give(p, NULL);
}
static CUresult attribute(CUmemoryPool pool, CUmemPool_attribute which, void *p)
{
    uintptr_t index = (uintptr_t)pool - 1;
    MAY_FAIL();
    if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(cuuint64_t *)p = pools[index].threshold;
    else if (which > CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && !model.unit)
        return CUDA_ERROR_NOT_SUPPORTED;
    else if (which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        *(cuuint64_t *)p = pools[index].reserved;
    else if (which == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *(cuuint64_t *)p = pools[index].used;
    else
        *(int *)p = which == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES ? pools[index].internal
                                                                               : pools[index].opportunistic;
    return CUDA_SUCCESS;
}
static CUresult trim(CUmemoryPool pool, size_t keep)
{
    uintptr_t index = (uintptr_t)pool - 1;
    cuuint64_t taken = pools[index].used, least;
    for (unsigned i = 0; i < MODEL_STREAMS; i++)
        taken += pools[index].unseen[i];
    least = taken > keep ? taken : keep;
    if (pools[index].reserved > least)
        pools[index].reserved = least;
    return CUDA_SUCCESS;
}
static CUresult get_pool(CUmemoryPool *p, CUdevice device)
{
    (void)device;
    MAY_FAIL();
    *p = (CUmemoryPool)(uintptr_t)(current_pool + 1);
    return CUDA_SUCCESS;
}
static CUresult get_default(CUmemoryPool *p, CUdevice device)
{
    (void)device;
    MAY_FAIL();
    *p = (CUmemoryPool)(uintptr_t)1;
    return CUDA_SUCCESS;
}
static CUresult event_create(CUevent *p, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    struct event *event = calloc(1, sizeof *event);
    event->context = next_context;
    event->next = events;
    event->link = &events;
    if (events)
        events->link = &event->next;
    events = event;
    *p = (CUevent)event;
    return CUDA_SUCCESS;
}
static CUresult event_destroy(CUevent handle)
{
    struct event *event = (struct event *)handle;

    *event->link = event->next;
    if (event->next)
        event->next->link = event->link;
    free(event);
    return CUDA_SUCCESS;
}
static CUresult event_record(CUevent handle, CUstream stream)
{
    struct event *event = (struct event *)handle;
    struct stream *s = find((uintptr_t)stream);
    MAY_FAIL();
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    model.wrong_context += event->context != s->context;
    model.destroyed_captures += s->capturing || (s == streams && open_captures);
    model.events++;
    event->stream = (unsigned)(s - streams);
    event->id = s->id;
    event->seq = s->issued;
    memcpy(event->sees, s->sees, sizeof event->sees);
    return CUDA_SUCCESS;
}
static CUresult wait_event(CUstream stream, CUevent handle, unsigned flags)
{
    const struct event *event = (const struct event *)handle;
    struct stream *s = find((uintptr_t)stream);
    MAY_FAIL();
    (void)flags;
    if (!s || event->stream == MODEL_STREAMS)
        return CUDA_ERROR_INVALID_HANDLE;
    model.destroyed_captures += s->capturing || (s == streams && open_captures);
    model.waits++;
    s->issued++; /* it gets no further before that is done */
    for (unsigned i = 0; i < MODEL_STREAMS; i++)
        see(s, i, event->sees[i]);
    see(s, event->stream, (struct sight){event->id, event->seq});
    return CUDA_SUCCESS;
}
static CUresult context_record(CUcontext context, CUevent handle)
{
    struct event *event = (struct event *)handle;
    MAY_FAIL();
    model.wrong_context += event->context != (uintptr_t)context;
    model.destroyed_captures += open_captures > 0;
    model.context_events++;
    event->stream = MODEL_STREAMS;
    for (unsigned i = 0; i < MODEL_STREAMS; i++) {
        event->all[i] = streams[i].issued;
        event->ids[i] = streams[i].id;
    }
    return CUDA_SUCCESS;
}
/* What was issued to a stream that was destroyed is done here, as soon as its place is taken by another. */
static CUresult event_query(CUevent handle)
{
    const struct event *event = (const struct event *)handle;
    MAY_FAIL();
    model.queries++;
    for (unsigned i = 0; i < MODEL_STREAMS; i++) {
        uint64_t seq = event->stream == i ? event->seq : event->stream == MODEL_STREAMS ? event->all[i] : 0;
        uint64_t id = event->stream == MODEL_STREAMS ? event->ids[i] : event->id;
        if (seq && streams[i].id == id && streams[i].done < seq)
            return CUDA_ERROR_NOT_READY;
    }
    return CUDA_SUCCESS;
}

/* Only what is over is ever waited for; what its stream had freed by then is the device's. */
static CUresult event_synchronize(CUevent handle)
{
    const struct event *event = (const struct event *)handle;
    MAY_FAIL();
    model.early_waits += event_query(handle) != CUDA_SUCCESS;
    model.host_waits++;
    if (event->stream < MODEL_STREAMS && streams[event->stream].id == event->id &&
        event->seq >= streams[event->stream].freed_seq) {
        for (unsigned i = 0; i < MODEL_POOLS; i++)
            pools[i].unseen[event->stream] = 0;
    }
    return CUDA_SUCCESS;
}

static const struct ms_gpu functions = {.vendor = &ms_gpu_cuda,
                                        .ctx_get_current = get_current,
                                        .ctx_get_device = get_device,
                                        .device_total_mem = total_mem,
                                        .exchange_capture_mode = exchange,
                                        .legacy = (CUstream)1,
                                        .legacy_is_named = true,
                                        .stream_get_id = get_id,
                                        .stream_get_ctx = get_ctx,
                                        .stream_is_capturing = is_capturing,
                                        .mem_alloc_from_pool_async = alloc,
                                        .mem_free_async = free_async,
                                        .mem_free = free_now,
                                        .mem_pool_get_attribute = attribute,
                                        .mem_pool_trim_to = trim,
                                        .device_get_mem_pool = get_pool,
                                        .device_get_default_mem_pool = get_default,
                                        .event_create = event_create,
                                        .event_destroy = event_destroy,
                                        .event_record = event_record,
                                        .event_query = event_query,
                                        .event_synchronize = event_synchronize,
                                        .stream_wait_event = wait_event,
                                        .ctx_record_event = context_record};
static struct ms_gpu gpu;

/* --- what a test does ----------------------------------------------------------------------------------- */

uint64_t model_stream(void)
{
    for (unsigned i = 1; i < MODEL_STREAMS; i++) {
        if (streams[i].live || streams[i].done < streams[i].issued)
            continue;
        streams[i] = (struct stream){.id = ++next_id, .context = next_context, .live = true};
        ms_stream_born(&gpu, next_context, handle_of(i));
        return handle_of(i);
    }
    return 0;
}

void model_destroy_stream(uint64_t handle)
{
    ms_pool_capture_enter(next_context);
    ms_stream_ending(next_context, handle);
    struct stream *s = find(handle);
    open_captures -= s->capturing;
    s->live = s->capturing = false;
    ms_pool_capture_leave(next_context, handle, false);
}

void model_issue(uint64_t handle)
{
    find(handle)->issued++;
}

/* With all that it saw, and what that had seen: an order holds through any number of streams. */
static void get_to(struct stream *s, uint64_t seq)
{
    bool further = s->done < seq;
    s->done = further ? seq : s->done;
    for (unsigned i = 0; further && i < MODEL_STREAMS; i++)
        get_to(&streams[i], streams[i].id == s->sees[i].id ? s->sees[i].seq : 0);
}

void model_finish(uint64_t handle)
{
    for (unsigned i = 0; i < MODEL_STREAMS; i++)
        if (handle == MODEL_ALL || i == (handle <= 1 ? 0 : (handle - 0x10000) / 0x100))
            get_to(&streams[i], streams[i].issued);
}

bool model_is_done(uint64_t handle)
{
    return find(handle)->done >= find(handle)->issued;
}

void model_capture(uint64_t handle, bool begin)
{
    ms_pool_capture_enter(next_context);
    find(handle)->capturing = begin;
    open_captures += begin ? 1 : (uint64_t)-1;
    ms_pool_capture_leave(next_context, handle, begin);
}

uint64_t model_pool(void)
{
    for (unsigned i = 1; i < MODEL_POOLS; i++) {
        if (pools[i].live)
            continue;
        pools[i].live = true;
        pools[i].opportunistic = pools[i].internal = 1;
        pools[i].threshold = pools[i].reserved = pools[i].used = 0;
        ms_mempool_made(&gpu, i + 1, 0, true, true);
        return i + 1;
    }
    return 0;
}

void model_destroy_pool(uint64_t pool)
{
    struct ms_mempool *ending = ms_mempool_ending(pool);
    pools[pool - 1].live = false;
    if (current_pool == pool - 1)
        current_pool = 0;
    ms_mempool_ended(ending, pool, true);
}

void model_set_current(uint64_t pool)
{
    current_pool = (unsigned)pool - 1;
    ms_mempool_current_changed();
}

void model_used(uint64_t handle, uint64_t address, uint64_t bytes)
{
    struct stream *s = find(handle);
    s->issued++;
    for (uint64_t at = address; at < address + bytes; at += 512)
        units[(at - BEGIN) / 512] = (struct last){s->id, s->issued, (uint8_t)(s - streams)};
}

void model_freed(uint64_t handle, uint64_t address, uint64_t bytes, uint64_t requested)
{
    struct stream *s = find(handle);
    for (uint64_t at = address; at < address + bytes; at += 512) {
        const struct last *last = &units[(at - BEGIN) / 512];
        see(s, last->stream, (struct sight){last->id, last->seq});
    }
    model_used(handle, address, requested);
}

void model_given(uint64_t handle, uint64_t address, uint64_t bytes)
{
    const struct stream *s = find(handle);
    for (uint64_t at = address; at < address + bytes; at += 512) {
        const struct last *last = &units[(at - BEGIN) / 512];
        model.hazards += !before(last, s);
    }
}

bool model_has(uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < block_count; i++)
        if (blocks[i].live && blocks[i].address <= address &&
            address + bytes <= blocks[i].address + blocks[i].bytes)
            return true;
    return false;
}

uint64_t model_waits_for(uint64_t handle, uint64_t other)
{
    const struct stream *o = find(other);
    const struct sight *sight = &find(handle)->sees[o - streams];
    return sight->id == o->id ? sight->seq : 0;
}

uint64_t model_issued(uint64_t handle)
{
    return find(handle)->issued;
}

void model_kill_context(void)
{
    uint64_t dead = next_context;
    next_context += 0x1000;
    for (unsigned i = 0; i < MODEL_STREAMS; i++)
        streams[i] = (struct stream){.done = 0};
    streams[0] = (struct stream){.id = ++next_id, .context = next_context, .live = true};
    ms_gpu_context_ended(dead);
    ms_stream_context_died(dead);
}

uint64_t model_reserved(uint64_t pool)
{
    return pools[pool - 1].reserved;
}

uint64_t model_live(void)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < block_count; i++)
        live += blocks[i].live;
    return live;
}

static uint64_t size_of(char option, uint64_t total_bytes)
{
    (void)total_bytes;
    return option == 'B' ? UINT64_MAX : option == 'K' ? model_keep : option == 'S' ? 16 << 20 : 0;
}

static void added(const struct ms_segment_record *segment)
{
    (void)segment;
    model_segments++;
}

static void removed(const struct ms_segment_record *segment)
{
    void (*on_leaving)(void) = model.on_leaving;

    (void)segment;
    model_segments--;
    model.on_leaving = NULL;
    if (on_leaving)
        on_leaving();
}

struct ms_pool_policy model_policy;
static const struct ms_pool_observer observer = {.segment_added = added, .segment_removed = removed};

struct ms_gpu *model_fresh(uint64_t capacity)
{
    gpu = functions;
    free(units); /* fresh pages: few are ever touched */
    units = calloc(UNITS, sizeof *units);
    memset(streams, 0, sizeof streams);
    memset(blocks, 0, sizeof blocks);
    memset(pools, 0, sizeof pools);
    model = (struct model){.capacity = capacity, .fail_status = CUDA_ERROR_OUT_OF_MEMORY};
    block_count = current_pool = 0;
    model_segments = open_captures = 0;
    next_address = BEGIN;
    next_context += 0x100000;
    model_keep = (uint64_t)256 << 20;
    pools[0].live = true;
    pools[0].opportunistic = pools[0].internal = 1;
    streams[0] = (struct stream){.id = ++next_id, .context = next_context, .live = true};
    model_policy = (struct ms_pool_policy){.align_bytes = 2 << 20, .oom_wait_ms = 20, .size_of = size_of};
    ms_at_fork_run(MS_FORK_POOL);
    while (events)
        event_destroy((CUevent)events);
    ms_pool_init(&model_policy, &observer);
    return &gpu;
}
