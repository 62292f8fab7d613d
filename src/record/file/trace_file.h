/* trace_file.h - the trace's file and the ring of records that are not in it yet; private to trace*.c.
 *
 * Floor 2. A record has an offset from the first one on: trace_written and trace_end of the process's row say
 * which of them wait in the ring, and where they go in the file. So writing the same records twice does no
 * harm. No descriptor is kept, since a host may close any number and open a file of its own under it.
 *
 * What is in the file is whole at any moment. Behind the latest record stands MS_TRACE_R_END; what comes next
 * is written behind that byte, with an end of its own, and then the first byte takes its place. With
 * MEMSHIM_TRACE_MAX the records lie in MS_TRACE_PARTS places of one size, in turns: the n-th part lies where
 * the one MS_TRACE_PARTS before it was. Its first byte says that there is none until the part begins. */
#ifndef MS_RECORD_FILE_TRACE_FILE_H
#define MS_RECORD_FILE_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "record/file/process.h"
#include "record/file/trace_format.h"

enum {
    MS_TRACE_RING_BYTES = MS_TABLE_TRACE_ROWS,
    MS_TRACE_WRITE_BYTES = MS_TRACE_RING_BYTES / 4, /* somebody should write */
    MS_TRACE_HEAD_BYTES = 2048                      /* in a buffer of base/thread/aux_stack.h */
};

/** Makes the file, with its head, and notes it in the process's row. Returns 0 or an errno: EEXIST if there
 * is one. */
int ms_trace_file_create(const char *path);
/** Moves what waits into the file. Returns 0 or an errno; then the file ends with a whole record that was
 * written earlier. Under the writer's lock. */
int ms_trace_file_write(const char *path);
/** Puts a line of text, without its end, in the place that the head keeps for it. */
int ms_trace_file_summary(const char *path, const char *text);

/** For trace_complete.c: what this record's trace begins with, into MS_TRACE_HEAD_BYTES, the summary's line
 * last. Returns its bytes. */
size_t ms_trace_file_head(char *head);
/** Bytes at a place of a file. Returns 0 or an errno. */
int ms_trace_file_put(int fd, uint64_t offset, const char *bytes, size_t count);
/** [from, end) of the ring at its place of a file. Returns 0 or an errno. */
int ms_trace_file_ring(int fd, uint64_t from, uint64_t end);

#endif
