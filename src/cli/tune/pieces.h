/* pieces.h - which blocks of a trace an allocator of the program's own has made pieces of.
 *
 * Floor 5. */
#ifndef MS_CLI_TUNE_PIECES_H
#define MS_CLI_TUNE_PIECES_H

#include "cli/tune/course.h"

struct ms_pieces {
    bool *holds; /* by the block's allocation, from 0: a piece lay in it, or may have */
    size_t count;
};

/** 0; 1 where there are no pieces, or some lie in no block and none can be in mapped memory; or -1 with one
 * line in `error`. Whatever comes back, ms_pieces_close() is due. */
int ms_pieces_find(const char *path, struct ms_pieces *pieces, char *error, size_t error_bytes);
/** The most that was live at a time of the blocks in which no piece ever lay; `blocks`: the course of the
 * trace's blocks. 0 without memory. */
uint64_t ms_pieces_beside(const struct ms_pieces *pieces, const struct ms_course *blocks);
void ms_pieces_close(struct ms_pieces *pieces);

#endif
