/* trace_parts.c - room for the next record: in the ring, and in the part, of which the oldest fall out of a
 * file that has a limit; see trace_told.h.
 *
 * Floor 2. A row of the table of blocks stays as it is while it has an id, since whoever changes it records
 * the free first. So what is live as a part begins can be listed while others go on: some rows with each
 * event, and one that goes before its turn is told of right then. */
#include "record/file/trace_events.h"
#include "record/file/trace_told.h"

enum {
    ROWS_AT_ONCE = 32, /* of the list, with an event */
    LIST_BYTES = (ROWS_AT_ONCE + 3) * MS_TRACE_EVENT_BYTES + MS_TRACE_RECORD_BYTES
};

bool ms_told_room(size_t bytes)
{
    static const unsigned char nothing[MS_TRACE_RECORD_BYTES];
    if (ms_told.end + bytes > ms_told.part_end && ms_told.is_listing) {
        ms_told_stop(MS_TRACE_TOO_FULL);
        return false;
    }
    bool begins = ms_told.end + bytes > ms_told.part_end;
    uint64_t written = atomic_load_explicit(&ms_told.process->trace_written, memory_order_acquire);
    if (ms_told.end + bytes + begins * 2 * MS_TRACE_RECORD_BYTES > written + MS_TRACE_RING_BYTES) {
        ms_told_stop(MS_TRACE_TOO_SLOW);
        return false;
    }
    if (begins) {
        ms_told_put(nothing, ms_told.part_end - ms_told.end); /* MS_TRACE_R_END */
        ms_told_begin_part();
    }
    bool is_due = ms_told.end + bytes >= written + MS_TRACE_WRITE_BYTES ||
                  atomic_load_explicit(&ms_told_finished, memory_order_relaxed);
    if (is_due)
        ms_told_due();
    uint64_t turn = ms_told.end - ms_told.end % MS_TRACE_RING_BYTES + MS_TRACE_RING_BYTES;
    uint64_t until = turn < ms_told.part_end ? turn : ms_told.part_end;
    if (until > written + MS_TRACE_WRITE_BYTES)
        until = written + MS_TRACE_WRITE_BYTES;
    ms_told.easy_end = is_due || ms_told.is_listing ? 0 : until;
    return true;
}

static void list_row(uint32_t number)
{
    unsigned char record[MS_TRACE_EVENT_BYTES], *at = record;
    const struct ms_block_row *row = ms_block_row_at(number);
    unsigned kind = ms_block_row_kind(row);
    uint64_t before = ms_told.part_ids[ms_told_layer(kind)];
    if (!ms_told.row_ids[number] || ms_told.row_ids[number] > before)
        return;
    struct ms_told_shape *shape = ms_told_shape(row, kind, &at);
    *at++ = MS_TRACE_R_LIVE;
    at = ms_trace_put_number(at, before - ms_told.row_ids[number]);
    at = ms_told_place(at, shape, ms_told_has_address(row) ? row->key : 0);
    ms_told_put(record, (size_t)(at - record));
}

void ms_told_begin_open(struct ms_told_open *open, uint64_t now_ns)
{
    unsigned char record[MS_TRACE_RECORD_BYTES], *at = record;
    if (!ms_told_room(sizeof record))
        return;
    open->is_told = true;
    at = ms_told_phase(at, open->phase, open->source, open->domain, open->name);
    at = ms_told_thread(at, open->thread);
    at = ms_told_op(at, MS_TRACE_R_BEGIN, now_ns);
    at = ms_trace_put_number(at, open->phase);
    at = ms_trace_put_number(at, open->is_nested);
    at = ms_trace_put_number(at, open->id);
    ms_told_put(record, (size_t)(at - record));
}

/* Some more of what was there as the part began, in LIST_BYTES at most. */
static void list_more(void)
{
    const unsigned char listed = MS_TRACE_R_LISTED;
    if (ms_told.open < ms_told.opens) {
        if (!ms_told.opened[ms_told.open].is_told) {
            ms_told_begin_open(&ms_told.opened[ms_told.open], 0);
        }
        ms_told.open++;
        return;
    }
    for (unsigned rows = ROWS_AT_ONCE; rows && ms_told.rows < ms_told.rows_end; rows--)
        list_row(ms_told.rows++);
    if (ms_told.rows < ms_told.rows_end)
        return;
    ms_told.is_listing = false;
    ms_told_put(&listed, 1);
}

void ms_told_begin_part(void)
{
    unsigned char record[MS_TRACE_EVENT_BYTES], *at = record;
    memset(ms_told.shape, 0, sizeof ms_told.shape);
    memset(ms_told.phase_told, 0, sizeof ms_told.phase_told);
    for (unsigned i = 0; i < MS_TOLD_STREAMS; i++)
        ms_told.stream[i].is_told = false;
    for (unsigned i = 0; i < ms_told.opens; i++)
        ms_told.opened[i].is_told = false;
    ms_told.shapes = ms_told.thread = ms_told.rows = ms_told.open = 0;
    ms_told.rows_end = (uint32_t)ms_table_rows(MS_TABLE_BLOCKS);
    memcpy(ms_told.part_ids, ms_told.ids, sizeof ms_told.part_ids);
    ms_told.is_listing = ms_told.parts != 0;
    ms_told.part_end += ms_told.process->trace_part_bytes;
    *at++ = MS_TRACE_R_PART;
    at = ms_trace_put_number(at, ms_told.parts++);
    at = ms_trace_put_number(at, ms_told.last_ticks);
    at = ms_trace_put_number(at, ms_told.ids[MS_LAYER_OUTER]);
    at = ms_trace_put_number(at, ms_told.ids[MS_LAYER_INNER]);
    at = ms_trace_put_number(at, ms_told.ids[MS_LAYER_OUTER] + ms_told.ids[MS_LAYER_INNER] +
                                     ms_told.frees[MS_LAYER_OUTER] + ms_told.frees[MS_LAYER_INNER] +
                                     ms_told.phase_events);
    ms_told_put(record, (size_t)(at - record));
}

/* A block that goes before it was listed is told of right then; UINT32_MAX: none does. */
bool ms_told_list(uint32_t goes)
{
    if (!ms_told_room(LIST_BYTES))
        return false;
    list_more();
    if (ms_told.is_listing && goes != UINT32_MAX && goes >= ms_told.rows)
        list_row(goes);
    return true;
}

/* Before an event: true if it is to be recorded, and a record of it has room. */
bool ms_told_on(uint32_t goes)
{
    if (!atomic_load_explicit(&ms_trace_on, memory_order_relaxed) || !ms_told_room(MS_TRACE_EVENT_BYTES))
        return false;
    return !ms_told.is_listing || ms_told_list(goes);
}
