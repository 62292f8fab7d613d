/* trace.h - MEMSHIM_TRACE: one line for each block that appears or goes.
 *
 * Floor 2. Lines are made where the ledger changes, under the block's stripe, so that an address never
 * appears twice; they wait in a ring of fixed size, which is a table of the ledger, and the threads that make
 * them write them to the file with nothing locked but the right to do so. What a killed process had not
 * written is in its ledger. docs/user/trace.md is about the file. */
#ifndef MS_RECORD_FILE_TRACE_H
#define MS_RECORD_FILE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "record/live/ledger.h"

/** Lines are made. */
extern MS_HIDDEN atomic_bool ms_trace_on;
/** Something is to be written or said. */
extern MS_HIDDEN atomic_bool ms_trace_due;

/** Once, before the ledger has its file, after ms_process_describe(): makes the trace's file, if one is
 * wanted. May write a line to standard error. */
void ms_trace_start(void);
/** Under the block's stripe; `row` is its place in the table of blocks. */
void ms_trace_put_alloc(uint32_t row, const struct ms_block *block);
void ms_trace_put_free(uint32_t row, const struct ms_block *block);
/** With nothing locked. */
void ms_trace_write(void);
/** The process ends: everything is written, and from now on each line at once. */
void ms_trace_finish(void);

/** In a reader of a dead process's ledger, which must be this user's: a file with the lines that it had not
 * written yet as well takes the place of its trace (trace_complete.c). Returns 0, also when there is nothing
 * to do, or with one line in `error` -1, or 1 where only room is missing. */
int ms_trace_complete(char *error, size_t error_bytes);

static inline void ms_trace_alloc(uint32_t row, const struct ms_block *block)
{
    if (MS_UNLIKELY(atomic_load_explicit(&ms_trace_on, memory_order_relaxed)))
        ms_trace_put_alloc(row, block);
}

static inline void ms_trace_free(uint32_t row, const struct ms_block *block)
{
    if (MS_UNLIKELY(atomic_load_explicit(&ms_trace_on, memory_order_relaxed)))
        ms_trace_put_free(row, block);
}

static inline void ms_trace_write_due(void)
{
    if (MS_UNLIKELY(atomic_load_explicit(&ms_trace_due, memory_order_relaxed)))
        ms_trace_write();
}

#endif
