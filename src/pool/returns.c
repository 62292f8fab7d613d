/* returns.c - what was freed in the order of a stream, until the device has it.
 *
 * The driver gives what cuMemFreeAsync has freed to nobody else before the host has waited for the stream
 * that freed it: an event that is over, and that was only asked, releases nothing. So each stream in which
 * memshim frees has a record, with an event that is recorded right behind the free. Once a query says that it
 * is over memshim waits for it, which takes no time then; for a stream of memshim's own, for the stream. A
 * program's stream is never waited for as a whole: it may have been given more work.
 *
 * One record for each stream: a later free records the event anew, and covers what came before. Lock: the
 * streams', under which streams are freed on, and the event is recorded, asked and waited for, so that it is
 * over when it is waited for. */
#include "config.h"

#include <sched.h>

#include "base/arena.h"
#include "base/clock.h"
#include "pool/flow.h"
#include "pool/returns.h"

enum { RECORDS = 32, RECORDS_MOST = 1024 };
struct record {
    struct ms_return_of of; /* gpu NULL: nobody's */
    CUevent event;          /* NULL: none yet, or not needed */
    uint64_t bytes;         /* 0: nothing is under way */
    struct record *next;
};

static struct record *records;
static uint32_t record_count;
static _Atomic uint64_t pending[MS_DEVICES_MAX];

/* --- records: lock held --------------------------------------------------------------------------------- */

static void forget(struct record *record)
{
    atomic_fetch_sub_explicit(&pending[record->of.device], record->bytes, memory_order_relaxed);
    record->bytes = 0;
    record->of.gpu = NULL;
    record->event = NULL;
}

/* One that nobody needs: without anything under way in it. */
static struct record *unused(void)
{
    struct record *idle = NULL;
    for (struct record *record = records; record; record = record->next) {
        if (!record->of.gpu)
            return record;
        if (!record->bytes)
            idle = record;
    }
    struct record *fresh = record_count < RECORDS_MOST ? ms_arena_alloc(RECORDS * sizeof(*fresh)) : NULL;
    for (int i = 0; fresh && i < RECORDS; i++) {
        fresh[i].next = records;
        records = &fresh[i];
    }
    record_count += fresh ? RECORDS : 0;
    if (fresh || !idle)
        return fresh ? records : NULL;
    if (idle->event && idle->of.gpu->event_destroy)
        idle->of.gpu->event_destroy(idle->event);
    forget(idle);
    return idle;
}

static struct record *record_of(const struct ms_return_of *of)
{
    struct record *record = records;
    while (record && !(record->of.gpu == of->gpu && record->of.context == of->context &&
                       record->of.stream_id == of->stream_id && record->of.ours == of->ours))
        record = record->next;
    if (!record && (record = unused()) != NULL)
        record->of = *of;
    return record;
}

static bool by_stream(const struct ms_return_of *of)
{
    return of->ours && of->gpu->stream_query && of->gpu->stream_synchronize;
}

void ms_returns_note(const struct ms_return_of *of, uint64_t bytes)
{
    const struct ms_gpu *gpu = of->gpu;
    struct record *record = bytes && gpu->event_synchronize && gpu->event_record ? record_of(of) : NULL;
    if (!record)
        return; /* then it is the device's when the program waits for the stream */
    record->of.stream = of->stream;
    if (!by_stream(of)) {
        if (!record->event && gpu->event_create(&record->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
            record->event = NULL;
        if (!record->event || gpu->event_record(record->event, of->stream) != CUDA_SUCCESS)
            return;
    }
    record->bytes += bytes;
    atomic_fetch_add_explicit(&pending[of->device], bytes, memory_order_relaxed);
}

/* --- the wait: lock held -------------------------------------------------------------------------------- */

static CUresult ask(const struct record *record)
{
    const struct ms_gpu *gpu = record->of.gpu;
    if (by_stream(&record->of))
        return gpu->stream_query(record->of.stream);
    return gpu->event_query(record->event);
}

/* It is over: this takes no time. */
static CUresult wait(const struct record *record)
{
    const struct ms_gpu *gpu = record->of.gpu;
    if (by_stream(&record->of))
        return gpu->stream_synchronize(record->of.stream);
    return gpu->event_synchronize(record->event);
}

/* A query of HIP's, in whatever mode, has broken captures of other threads. */
static bool may_ask(const struct ms_gpu *gpu)
{
    return ms_gpu_maker(gpu) == MS_MAKER_CUDA || !ms_captures_may_be_open();
}

static uint64_t settle(struct record *record)
{
    uint64_t bytes = record->bytes;
    struct ms_visit visit;
    if (!may_ask(record->of.gpu))
        return 0;
    ms_visit_begin(&visit, record->of.gpu, 0);
    CUresult status = ask(record);
    if (status == CUDA_SUCCESS)
        status = wait(record);
    ms_visit_end(&visit);
    if (status == CUDA_ERROR_NOT_READY)
        return 0;
    if (status != CUDA_SUCCESS) { /* its context has died, or is lost: nothing is known of it any more */
        forget(record);
        return 0;
    }
    atomic_fetch_sub_explicit(&pending[record->of.device], bytes, memory_order_relaxed);
    record->bytes = 0;
    return bytes;
}

/* --- the interface -------------------------------------------------------------------------------------- */

uint64_t ms_returns_pending(int device)
{
    return atomic_load_explicit(&pending[device], memory_order_relaxed);
}

uint64_t ms_returns_settle(int device)
{
    uint64_t settled = 0;
    if (MS_LIKELY(!ms_returns_pending(device)))
        return 0;
    ms_lock(&ms_streams_lock);
    for (struct record *record = records; record; record = record->next) {
        if (record->bytes && record->of.device == device)
            settled += settle(record);
    }
    ms_unlock(&ms_streams_lock);
    return settled;
}

static bool any_of_ours(int device)
{
    bool any = false;
    ms_lock(&ms_streams_lock);
    for (const struct record *record = records; record && !any; record = record->next)
        any = record->bytes && record->of.ours && record->of.device == device;
    ms_unlock(&ms_streams_lock);
    return any;
}

void ms_returns_await(int device, bool others, uint64_t deadline)
{
    uint64_t begin = ms_clock_ns(), now = begin;
    for (; ms_returns_pending(device); now = ms_clock_ns()) {
        ms_returns_settle(device);
        bool moment = others && now < begin + MS_RETURN_OTHERS_NS;
        if (now >= deadline || (!moment && !any_of_ours(device)))
            return;
        if (now < begin + MS_RETURN_YIELD_NS)
            sched_yield();
        else
            ms_clock_nap(MS_RETURN_NAP_NS);
    }
}

void ms_returns_context_died(uint64_t context)
{
    for (struct record *record = records; record; record = record->next) {
        if (record->of.gpu && record->of.context == context)
            forget(record);
    }
}

void ms_returns_reset(void)
{
    records = NULL;
    record_count = 0;
    for (int device = 0; device < MS_DEVICES_MAX; device++)
        atomic_store_explicit(&pending[device], 0, memory_order_relaxed);
}
