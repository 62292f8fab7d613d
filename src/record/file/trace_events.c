/* trace_events.c - what happens, as records of the trace; see trace_events.h, trace_told.h.
 *
 * Floor 2. Lock: `lines` (MS_RANK_TRACE), inside that of a block's shard or of the phases. Recording is part
 * of a hit: one comparison (`easy_end`) says that the trace goes on, that there is room without a turn of the
 * ring, and that nothing is to be written or listed. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/thread/guard.h"
#include "record/file/trace_events.h"
#include "record/file/trace_told.h"

enum { WAIT_MS = 1000 };

atomic_bool ms_trace_on, ms_told_finished;

static struct ms_lock lines = MS_LOCK_INIT(MS_RANK_TRACE);
static _Atomic int stopped;

void ms_told_due(void)
{
    if (!ms_slow_path(MS_SLOW_PATH_TRACE))
        ms_slow_path_set(MS_SLOW_PATH_TRACE);
}

void ms_told_stop(int reason)
{
    int none = 0;
    atomic_compare_exchange_strong(&stopped, &none, reason);
    atomic_store_explicit(&ms_trace_on, false, memory_order_relaxed);
    ms_told.easy_end = 0;
    ms_told_due();
}

void ms_trace_events_stop(int reason)
{
    bool is_locked = ms_lock_within(&lines, WAIT_MS);
    ms_told_stop(reason);
    if (is_locked)
        ms_unlock(&lines);
}

int ms_trace_events_stopped(void)
{
    return atomic_load(&stopped);
}

/* --- events ---
 *
 * Each has two ways: the usual one, which is part of a hit, goes straight into the ring, where there is room
 * and nothing has to be introduced; the other does all that there is to do. */

static MS_INLINE unsigned char *easy_place(void)
{
    return ms_told.end + MS_TRACE_EVENT_BYTES <= ms_told.easy_end
               ? MS_ROWS(TRACE, unsigned char) + ms_told.end % MS_TRACE_RING_BYTES
               : NULL;
}

static MS_INLINE void easy_end(const unsigned char *record, const unsigned char *at)
{
    ms_told.end += (size_t)(at - record);
    atomic_store_explicit(&ms_told.process->trace_end, ms_told.end, memory_order_release);
}

static MS_INLINE void count_in(enum ms_layer layer, uint64_t bytes, uint32_t number)
{
    ms_told.row_ids[number] = ++ms_told.ids[layer];
    uint64_t live_bytes = ms_told.live_bytes[layer] += bytes;
    if (live_bytes > ms_told.peak_live_bytes[layer])
        ms_told.peak_live_bytes[layer] = live_bytes;
}

/* The other way, and lets the lock go. */
static MS_NOINLINE void put_alloc(uint32_t number, uint64_t now_ns)
{
    const struct ms_block_row *row = ms_block_row_at(number);
    unsigned kind = ms_block_row_kind(row);
    unsigned char record[MS_TRACE_EVENT_BYTES], *at = record;
    if (ms_kind_is_device(kind) && ms_told_on(UINT32_MAX)) {
        at = ms_told_thread(at, row->thread);
        struct ms_told_shape *shape = ms_told_shape(row, kind, &at);
        at = ms_told_op(at, MS_TRACE_R_ALLOC, now_ns);
        at = ms_told_place(at, shape, ms_told_has_address(row) ? row->key : 0);
        count_in(ms_told_layer(kind), row->requested, number);
        ms_told_put(record, (size_t)(at - record));
    }
    ms_unlock(&lines);
}

static MS_NOINLINE void put_alloc_waiting(uint32_t number, uint64_t now_ns)
{
    ms_lock(&lines);
    put_alloc(number, now_ns);
}

void ms_trace_put_alloc(uint32_t number, uint64_t now_ns)
{
    const struct ms_block_row *row = ms_block_row_at(number);
    struct ms_told_shape *shape = ms_told_shape_at(row->requested, row->stream, row->site);
    if (MS_UNLIKELY(!ms_lock_if_free(&lines))) {
        put_alloc_waiting(number, now_ns);
        return;
    }
    MS_KEEP(shape);
    unsigned char *record = easy_place(), *at;
    if (MS_UNLIKELY(!record || shape->site != row->site || shape->bytes != row->requested ||
                    shape->stream != row->stream || ms_told.thread != row->thread)) {
        put_alloc(number, now_ns);
        return;
    }
    at = ms_told_op(record, MS_TRACE_R_ALLOC, now_ns);
    at = ms_told_place(at, shape, row->key);
    count_in(shape->layer, shape->bytes, number);
    easy_end(record, at);
    ms_unlock(&lines);
}

static MS_INLINE unsigned char *put_free(unsigned char *at, uint32_t number, const struct ms_block_row *row,
                                         uint64_t now_ns)
{
    unsigned kind = ms_block_row_kind(row);
    enum ms_layer layer = ms_told_layer(kind);
    at = ms_told_op(at, MS_TRACE_R_FREE + layer, now_ns);
    _Static_assert(MS_TRACE_R_FREE + MS_LAYER_INNER == MS_TRACE_R_FREE_INNER, "one for each layer");
    at = ms_trace_put_number(at, ms_told.ids[layer] - ms_told.row_ids[number]);
    ms_told.row_ids[number] = 0;
    ms_told.live_bytes[layer] -= row->requested;
    ms_told.frees[layer]++;
    return at;
}

static MS_NOINLINE void put_free_somehow(uint32_t number, uint32_t thread, uint64_t now_ns)
{
    unsigned char record[MS_TRACE_EVENT_BYTES], *at = record;
    if (ms_told_on(number) && ms_told.row_ids[number]) {
        at = ms_told_thread(at, thread);
        at = put_free(at, number, ms_block_row_at(number), now_ns);
        ms_told_put(record, (size_t)(at - record));
    }
    ms_unlock(&lines);
}

static MS_NOINLINE void put_free_waiting(uint32_t number, uint32_t thread, uint64_t now_ns)
{
    ms_lock(&lines);
    put_free_somehow(number, thread, now_ns);
}

void ms_trace_put_free(uint32_t number, uint32_t thread, uint64_t now_ns)
{
    if (MS_UNLIKELY(!ms_lock_if_free(&lines))) {
        put_free_waiting(number, thread, now_ns);
        return;
    }
    unsigned char *record = easy_place();
    if (MS_UNLIKELY(!record || !ms_told.row_ids[number] || ms_told.thread != thread)) {
        put_free_somehow(number, thread, now_ns);
        return;
    }
    easy_end(record, put_free(record, number, ms_block_row_at(number), now_ns));
    ms_unlock(&lines);
}

void ms_trace_put_begin(const struct ms_trace_phase *phase, uint64_t id, bool is_nested, uint64_t now_ns)
{
    ms_lock(&lines);
    if (ms_told_on(UINT32_MAX) && ms_told.opens < MS_TOLD_OPENS) {
        struct ms_told_open *open = &ms_told.opened[ms_told.opens++];
        *open = (struct ms_told_open){
            id, phase->domain, phase->name, phase->row, ms_thread_id(), phase->source, is_nested, false};
        ms_told.phase_events++;
        ms_told_begin_open(open, now_ns);
    }
    ms_unlock(&lines);
}

void ms_trace_put_finish(uint64_t id, uint64_t now_ns)
{
    unsigned char record[MS_TRACE_EVENT_BYTES], *at = record;
    ms_lock(&lines);
    unsigned i = 0;
    while (i < ms_told.opens && ms_told.opened[i].id != id)
        i++;
    if (i < ms_told.opens && ms_told_on(UINT32_MAX)) {
        if (ms_told.opened[i].is_told) {
            at = ms_told_thread(at, ms_thread_id());
            ms_told.phase_events++;
            at = ms_told_op(at, MS_TRACE_R_FINISH, now_ns);
            at = ms_trace_put_number(at, id);
            ms_told_put(record, (size_t)(at - record));
        }
        memmove(&ms_told.opened[i], &ms_told.opened[i + 1],
                (ms_told.opens - i - 1) * sizeof ms_told.opened[0]);
        ms_told.opens--;
        ms_told.open -= ms_told.open > i;
    }
    ms_unlock(&lines);
}

void ms_trace_put_mark(const struct ms_trace_phase *phase, uint64_t now_ns)
{
    unsigned char record[MS_TRACE_RECORD_BYTES], *at = record;
    ms_lock(&lines);
    if (ms_told_on(UINT32_MAX) && ms_told_room(sizeof record)) {
        at = ms_told_phase(at, phase->row, phase->source, phase->domain, phase->name);
        at = ms_told_thread(at, ms_thread_id());
        ms_told.phase_events++;
        at = ms_told_op(at, MS_TRACE_R_MARK, now_ns);
        at = ms_trace_put_number(at, phase->row);
        ms_told_put(record, (size_t)(at - record));
    }
    ms_unlock(&lines);
}

/* --- the whole --- */

bool ms_trace_events_start(void)
{
    size_t bytes = (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ms_told.row_ids;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    ms_told.row_ids = memory;
    ms_told.process = ms_process();
    ms_lock(&lines);
    if (ms_told.process->trace_part_bytes)
        ms_told_begin_part();
    else
        ms_told.part_end = UINT64_MAX;
    ms_unlock(&lines);
    atomic_store(&ms_trace_on, true);
    return true;
}

/* The end may come in a signal handler, above whoever has the lock. */
bool ms_trace_events_finish(void)
{
    if (!ms_lock_within(&lines, WAIT_MS))
        return true;
    atomic_store(&ms_told_finished, true);
    ms_told.easy_end = 0;
    if (ms_told.is_listing && atomic_load_explicit(&ms_trace_on, memory_order_relaxed))
        ms_told_list(UINT32_MAX);
    bool is_done = !ms_told.is_listing || !atomic_load_explicit(&ms_trace_on, memory_order_relaxed);
    ms_unlock(&lines);
    return is_done;
}

bool ms_trace_events_summary(char *text, size_t bytes)
{
    if (!ms_lock_within(&lines, WAIT_MS))
        return false;
    if (atomic_load(&stopped)) /* what was counted may not be in the file */
        snprintf(text, bytes, "cut short");
    else
        snprintf(text, bytes, "allocs %llu frees %llu distinct_sizes %llu streams %llu peak_live_bytes %llu",
                 (unsigned long long)ms_told.ids[MS_LAYER_OUTER],
                 (unsigned long long)ms_told.frees[MS_LAYER_OUTER], (unsigned long long)ms_told.sizes,
                 (unsigned long long)ms_told.streams,
                 (unsigned long long)ms_told.peak_live_bytes[MS_LAYER_OUTER]);
    ms_unlock(&lines);
    return true;
}

void ms_trace_events_reset(void)
{
    atomic_store(&ms_trace_on, false);
    atomic_store(&stopped, 0);
    atomic_store(&ms_told_finished, false);
    if (ms_told.row_ids)
        munmap(ms_told.row_ids, (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ms_told.row_ids);
    ms_told.row_ids = NULL;
    memset(&ms_told, 0, sizeof ms_told);
    ms_lock_reset(&lines);
}
