/* fake.c - see fake.h. One lock over everything, which all have at once who only look; malloc is allowed
 * here. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quota/quota.h"
#include "base/clock.h"
#include "fake.h"

#define PAGE (2u << 20)
/* Of nothing but the thread's own, or what never changes: nothing that tests/schedules counts as a call. */
#define QUIET __attribute__((no_instrument_function))

struct block {
    uint64_t address, bytes;
    struct fake_context *context;
    bool live;
};

struct event {
    struct fake_context *context;
    uint64_t target;
    bool taken_in, is_of_frees;
    struct event *next;
};
static struct event *events; /* all that were ever made: contexts take theirs with them */

struct fake fake;
struct fake_sizes fake_sizes;
uint64_t fake_segments, fake_notes;
bool fake_vmm;
char fake_last_note[256];
void (*fake_on_query)(void), (*fake_on_return)(void);

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct block *blocks;
static uint64_t block_count, block_room, next_address;
static uint64_t *by_page; /* block index + 1 of the page that it begins in */
#define PAGES (1u << 20)
static __thread struct fake_context *current;
static __thread CUstreamCaptureMode thread_mode;

void fake_lock(void)
{
    pthread_rwlock_wrlock(&lock);
}

void fake_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

/* For calls that change nothing, so that they come in any order; but where looking moves work. */
static QUIET void lock_to_look(void)
{
    if (fake.moves)
        pthread_rwlock_wrlock(&lock);
    else
        pthread_rwlock_rdlock(&lock);
}

QUIET bool fake_count(enum fake_call call)
{
    __atomic_fetch_add(&fake.calls[call], 1, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&fake.all_calls, 1, __ATOMIC_RELAXED) != fake.fail_at)
        return false;
    fake.failed_call = call;
    return true;
}

static QUIET CUresult get_current(CUcontext *context_p)
{
    *context_p = (CUcontext)current;
    return CUDA_SUCCESS;
}

static __thread struct fake_context *stack[8];
static __thread int depth;

static QUIET CUresult push(CUcontext context)
{
    if (depth == 8)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = current;
    current = (struct fake_context *)context;
    return CUDA_SUCCESS;
}

static QUIET CUresult pop(CUcontext *context_p)
{
    *context_p = (CUcontext)current;
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    current = stack[--depth];
    return CUDA_SUCCESS;
}

static QUIET CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

/* Lock held. Calls of the program's own do not come here. */
static QUIET void note_mode(void)
{
    if (thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        __atomic_fetch_add(&fake.loud_calls, 1, __ATOMIC_RELAXED);
}

static struct block *reuse(uint64_t bytes)
{
    static uint64_t hand;
    for (uint64_t i = 0; i < block_count && i < 64; i++) {
        struct block *b = &blocks[hand++ % block_count];
        if (!b->live && b->bytes == bytes)
            return b;
    }
    return NULL;
}

static CUresult mem_alloc(CUdeviceptr *address_p, size_t bytes)
{
    pthread_rwlock_wrlock(&lock);
    note_mode();
    CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
    struct fake_context *context = current;
    uint64_t charged = (bytes + PAGE - 1) / PAGE * PAGE;
    if (fake_count(FAKE_ALLOC)) {
        status = (CUresult)fake.fail_status;
    } else if (!context || context->dead) {
        status = CUDA_ERROR_INVALID_CONTEXT;
        fake.wrong_context++;
    } else if (!bytes) {
        status = CUDA_ERROR_INVALID_VALUE;
    } else if (fake.used[context->device] + fake.leaving[context->device] + charged <= fake.capacity) {
        struct block *b = reuse(charged);
        if (!b) {
            if (block_count == block_room) {
                block_room = block_room ? block_room * 2 : 1024;
                blocks = realloc(blocks, block_room * sizeof(*blocks));
            }
            b = &blocks[block_count++];
            *b = (struct block){.address = next_address + (fake.small_align ? 512 : 0), .bytes = charged};
            next_address += charged + PAGE;
        }
        b->live = true;
        fake.small_allocs += bytes < PAGE;
        b->context = context;
        by_page[b->address / PAGE % PAGES] = (uint64_t)(b - blocks) + 1;
        fake.used[context->device] += charged;
        context->live++;
        *address_p = b->address;
        status = CUDA_SUCCESS;
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

static QUIET CUresult address_range(CUdeviceptr *base_p, size_t *bytes_p, CUdeviceptr address)
{
    lock_to_look();
    uint64_t index = by_page[address / PAGE % PAGES];
    const struct block *b = index ? &blocks[index - 1] : NULL;
    CUresult status =
        b && b->live && address - b->address < b->bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (fake_count(FAKE_RANGE))
        status = (CUresult)fake.fail_status;
    if (status == CUDA_SUCCESS) {
        *base_p = b->address;
        *bytes_p = fake.other_range ? 512 : b->bytes;
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

static CUresult mem_free(CUdeviceptr address)
{
    if (address == 0x1000) /* whether a free is permitted */
        return CUDA_ERROR_INVALID_VALUE;
    pthread_rwlock_wrlock(&lock);
    note_mode();
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    uint64_t index = by_page[address / PAGE % PAGES];
    struct block *b = index ? &blocks[index - 1] : NULL;
    if (fake_count(FAKE_FREE)) {
        status = (CUresult)fake.fail_status;
    } else if (!b || !b->live || b->address != address) {
        fake.unknown_frees++;
    } else {
        fake.blocking_frees += b->context->done < b->context->issued;
        b->context->done = b->context->issued;
        fake.used[b->context->device] -= b->bytes;
        b->context->live--;
        b->live = false;
        status = CUDA_SUCCESS;
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

/* Like the driver's: nobody waits, and the memory is for others when the host has waited for the stream. */
static CUresult mem_free_async(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    pthread_rwlock_wrlock(&lock);
    uint64_t blocking = fake.blocking_frees, used = fake.used[current->device];
    pthread_rwlock_unlock(&lock);
    CUresult status = mem_free(address);
    pthread_rwlock_wrlock(&lock);
    fake.leaving[current->device] += used - fake.used[current->device];
    fake.blocking_frees = blocking;
    pthread_rwlock_unlock(&lock);
    if (fake_on_return)
        fake_on_return();
    return status;
}

static CUresult stream_create(CUstream *stream_p, unsigned int flags)
{
    (void)flags;
    *stream_p = (CUstream)((uintptr_t)current + 1);
    return CUDA_SUCCESS;
}

/* The one stream there is in each context, in which nothing but frees lies. */
static bool is_of_frees(CUstream stream)
{
    return (uintptr_t)stream > 2 && (uintptr_t)stream % 2;
}

static CUresult stream_query(CUstream stream)
{
    return is_of_frees(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult event_synchronize(CUevent event)
{
    if (!((const struct event *)event)->is_of_frees)
        return CUDA_ERROR_NOT_SUPPORTED; /* nobody waits for an event of a context */
    pthread_rwlock_wrlock(&lock);
    memset(fake.leaving, 0, sizeof fake.leaving);
    pthread_rwlock_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event_p, unsigned int flags)
{
    (void)flags;
    pthread_rwlock_wrlock(&lock);
    note_mode();
    bool fails = fake_count(FAKE_EVENT_CREATE);
    pthread_rwlock_unlock(&lock);
    if (fails)
        return (CUresult)fake.fail_status;
    struct event *e = calloc(1, sizeof(*e));
    e->context = current;
    pthread_rwlock_wrlock(&lock);
    e->next = events;
    events = e;
    pthread_rwlock_unlock(&lock);
    *event_p = (CUevent)e;
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

static CUresult ctx_record(CUcontext context, CUevent event)
{
    struct event *e = (struct event *)event;
    struct fake_context *c = (struct fake_context *)context;
    pthread_rwlock_wrlock(&lock);
    note_mode();
    CUresult status = CUDA_SUCCESS;
    if (fake_count(FAKE_CTX_RECORD)) {
        status = (CUresult)fake.fail_status;
    } else if (c->captures) {
        fake.destroyed_captures++;
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (e->context != c) {
        fake.wrong_context++;
        status = CUDA_ERROR_INVALID_HANDLE;
    } else {
        e->target = c->issued;
        e->is_of_frees = false;
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

static CUresult record(CUevent event, CUstream stream)
{
    struct event *e = (struct event *)event;
    pthread_rwlock_wrlock(&lock);
    note_mode();
    bool fails = fake_count(FAKE_RECORD);
    e->is_of_frees = is_of_frees(stream);
    e->target = e->is_of_frees ? 0 : e->context->issued;
    e->taken_in = fake.takes_in && (uintptr_t)stream == fake.takes_in;
    pthread_rwlock_unlock(&lock);
    return fails ? (CUresult)fake.fail_status : CUDA_SUCCESS;
}

static QUIET CUresult query(CUevent event)
{
    const struct event *e = (const struct event *)event;
    if (fake_on_query)
        fake_on_query();
    lock_to_look();
    note_mode();
    if (fake.moves && e->context->done < e->target && ++fake.looks % 3 == 0)
        e->context->done = e->context->issued;
    CUresult status = fake_count(FAKE_QUERY)          ? (CUresult)fake.fail_status
                      : e->taken_in                   ? CUDA_ERROR_CAPTURED_EVENT
                      : e->context->done >= e->target ? CUDA_SUCCESS
                                                      : CUDA_ERROR_NOT_READY;
    pthread_rwlock_unlock(&lock);
    return status;
}

static QUIET CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status_p)
{
    lock_to_look();
    bool captures = fake.capturing && (uintptr_t)stream == fake.capturing;
    pthread_rwlock_unlock(&lock);
    *status_p = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
    pthread_rwlock_wrlock(&lock);
    note_mode();
    bool fails = fake_count(FAKE_SYNC);
    fake.destroyed_captures += current->captures > 0;
    if (!fails && !current->captures)
        current->done = current->issued;
    pthread_rwlock_unlock(&lock);
    return fails ? (CUresult)fake.fail_status : CUDA_SUCCESS;
}

static QUIET CUresult device_get(CUdevice *device_p, int ordinal)
{
    *device_p = ordinal;
    return CUDA_SUCCESS;
}

static QUIET CUresult total(size_t *bytes_p, CUdevice device)
{
    (void)device;
    *bytes_p = fake.total_bytes;
    return CUDA_SUCCESS;
}

static QUIET CUresult get_info(size_t *free_p, size_t *total_p)
{
    fake_lock();
    uint64_t taken = fake.used[current->device] + fake.leaving[current->device] + fake.others;
    fake_unlock();
    *total_p = fake.total_bytes;
    *free_p = fake.total_bytes > taken ? fake.total_bytes - taken : 0;
    return CUDA_SUCCESS;
}

const struct ms_gpu *fake_start(uint64_t capacity, bool context_events)
{
    static struct ms_gpu with, without;
    with = (struct ms_gpu){.vendor = &ms_gpu_cuda,
                           .legacy = (CUstream)1,
                           .legacy_is_named = true,
                           .ctx_get_current = get_current,
                           .device_get = device_get,
                           .device_total_mem = total,
                           .address_range = address_range,
                           .mem_alloc = mem_alloc,
                           .mem_free = mem_free,
                           .mem_free_async = mem_free_async,
                           .mem_get_info = get_info,
                           .stream_create = stream_create,
                           .event_create = event_create,
                           .event_destroy = event_destroy,
                           .event_query = query,
                           .event_synchronize = event_synchronize,
                           .stream_query = stream_query,
                           .event_record = record,
                           .ctx_record_event = ctx_record,
                           .stream_is_capturing = is_capturing,
                           .ctx_push = push,
                           .ctx_pop = pop,
                           .ctx_synchronize = synchronize,
                           .exchange_capture_mode = exchange_mode};
    memset(&fake, 0, sizeof(fake));
    fake_vmm_start(&with);
    without = with;
    without.ctx_record_event = NULL;
    fake.capacity = fake.total_bytes = capacity;
    free(by_page);
    by_page = calloc(PAGES, sizeof(*by_page));
    free(blocks);
    blocks = NULL;
    block_count = block_room = 0;
    next_address = (uint64_t)1 << 40;
    return context_events ? &with : &without;
}

static struct fake_context *contexts;

bool fake_is_busy(void)
{
    return current && current->done < current->issued;
}

struct fake_context *fake_context(int device)
{
    struct fake_context *context = calloc(1, sizeof(*context));
    pthread_rwlock_wrlock(&lock);
    context->next = contexts;
    contexts = context;
    pthread_rwlock_unlock(&lock);
    context->device = device;
    return context;
}

void fake_set_current(struct fake_context *context)
{
    current = context;
}

void fake_issue(struct fake_context *context)
{
    pthread_rwlock_wrlock(&lock);
    context->issued++;
    pthread_rwlock_unlock(&lock);
}

void fake_finish(struct fake_context *context)
{
    pthread_rwlock_wrlock(&lock);
    context->done = context->issued;
    pthread_rwlock_unlock(&lock);
}

void fake_kill(struct fake_context *context)
{
    pthread_rwlock_wrlock(&lock);
    context->dead = true;
    for (uint64_t i = 0; i < block_count; i++) {
        if (blocks[i].live && blocks[i].context == context) {
            fake.used[context->device] -= blocks[i].bytes;
            blocks[i].live = false;
        }
    }
    context->live = 0;
    pthread_rwlock_unlock(&lock);
}

uint64_t fake_live(void)
{
    uint64_t live = 0;
    pthread_rwlock_wrlock(&lock);
    for (uint64_t i = 0; i < block_count; i++)
        live += blocks[i].live;
    pthread_rwlock_unlock(&lock);
    return live;
}

static QUIET void learn_limit(const struct ms_gpu *asked, int device)
{
    (void)asked;
    ms_quota_allow(device, fake_sizes.limit);
}

static QUIET uint64_t size_of(char option, uint64_t total_bytes)
{
    (void)total_bytes;
    switch (option) {
    case 'P':
        return fake_sizes.prealloc;
    case 'K':
        return fake_sizes.keep;
    case 'B':
        return fake_sizes.pending ? fake_sizes.pending : UINT64_MAX;
    default:
        return fake_sizes.single_min;
    }
}

static void segment_added(const struct ms_segment_record *segment)
{
    (void)segment;
    __atomic_add_fetch(&fake_segments, 1, __ATOMIC_RELAXED);
}

static void segment_removed(const struct ms_segment_record *segment)
{
    (void)segment;
    __atomic_sub_fetch(&fake_segments, 1, __ATOMIC_RELAXED);
}

static void note(const char *line)
{
    pthread_rwlock_wrlock(&lock);
    fake_notes++;
    snprintf(fake_last_note, sizeof(fake_last_note), "%s", line);
    pthread_rwlock_unlock(&lock);
}

struct ms_pool_policy fake_policy;
static const struct ms_pool_observer observer = {
    .segment_added = segment_added, .segment_removed = segment_removed, .note = note};

const struct ms_gpu *fake_fresh(uint64_t capacity)
{
    const struct ms_gpu *gpu = fake_start(capacity, true);
    fake_sizes = (struct fake_sizes){.limit = UINT64_MAX, .keep = 256u << 20, .single_min = 16u << 20};
    fake_policy = (struct ms_pool_policy){.align_bytes = 2 << 20,
                                          .free_rule = MS_POOL_FENCE,
                                          .oom_wait_ms = 50,
                                          .learn_limit = learn_limit,
                                          .size_of = size_of,
                                          .vmm = fake_vmm};
    fake_segments = fake_notes = 0;
    current = NULL;
    depth = 0;
    thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    ms_at_fork_run(MS_FORK_POOL);
    ms_pool_init(&fake_policy, &observer);
    return gpu;
}
