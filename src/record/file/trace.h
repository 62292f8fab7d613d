/* trace.h - MEMSHIM_TRACE: a record for each block that appears or goes, and for each phase.
 *
 * Floor 2. Records are made where the ledger changes, under the lock of the block's shard, so that an address
 * never appears twice (trace_events.c); they wait in a ring of fixed size, which is a table of the ledger,
 * and the threads that make them write them to the file with nothing locked but the right to do so. What a
 * killed process had not written is in its ledger. docs/user/trace.md is about the file. */
#ifndef MS_RECORD_FILE_TRACE_H
#define MS_RECORD_FILE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "record/live/ledger.h"

/** Events are recorded. The slow path's MS_SLOW_PATH_TRACE says that something is to be written or said. */
extern MS_HIDDEN atomic_bool ms_trace_on;

/** Once, before the ledger has its file, after ms_process_describe(): makes the trace's file, if one is
 * wanted. May write a line to standard error. */
void ms_trace_start(void);
/** Under the lock of the block's shard: what the row of that number says has come, or goes, by `thread`. */
void ms_trace_put_alloc(uint32_t row, uint64_t now_ns);
void ms_trace_put_free(uint32_t row, uint32_t thread, uint64_t now_ns);
/** Under the lock of the phases, by the calling thread. Texts stay where they are. */
struct ms_trace_phase {
    uint32_t row;
    uint8_t source; /* enum ms_phase_source */
    const char *domain, *name;
};
void ms_trace_put_begin(const struct ms_trace_phase *phase, uint64_t id, bool is_nested, uint64_t now_ns);
void ms_trace_put_finish(uint64_t id, uint64_t now_ns);
void ms_trace_put_mark(const struct ms_trace_phase *phase, uint64_t now_ns);
/** With nothing locked. */
void ms_trace_write(void);
/** The process ends: everything is written, and from now on each event at once. */
void ms_trace_finish(void);

/** In a reader of a dead process's ledger, which must be this user's: a file with what it had not
 * written yet as well takes the place of its trace (trace_complete.c). Returns 0, also when there is nothing
 * to do, or with one line in `error` -1, or 1 where only room is missing. */
int ms_trace_complete(char *error, size_t error_bytes);

static inline bool ms_trace_wanted(void)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_trace_on, memory_order_relaxed));
}

static inline void ms_trace_write_due(void)
{
    if (ms_slow_path(MS_SLOW_PATH_TRACE))
        ms_trace_write();
}

#endif
