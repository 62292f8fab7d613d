/* kept.h - what replays of a search have shown, kept until it is over.
 *
 * Floor 5. A file of text lines in $XDG_CACHE_HOME/memshim (~/.cache/memshim), one a replay, written as each
 * is done. A line that is cut or that is of another library counts as none. */
#ifndef MS_CLI_TUNE_KEPT_H
#define MS_CLI_TUNE_KEPT_H

#include "cli/tune/replay_run.h"

struct ms_kept {
    char *path; /* NULL: nothing can be kept */
    struct ms_kept_row *rows;
    size_t count, room;
    uint64_t seed; /* of the library that is replayed */
};

/** `key` says which traces; what is found is used. */
void ms_kept_open(struct ms_kept *kept, uint64_t key);
/** True if this replay was done before; `content` says of which trace. */
bool ms_kept_find(const struct ms_kept *kept, const struct ms_replay_order *order, uint64_t content,
                  struct ms_replay_result *result);
void ms_kept_add(struct ms_kept *kept, const struct ms_replay_order *order, uint64_t content,
                 const struct ms_replay_result *result);
/** Lets go of it; `over`: the file goes, too. */
void ms_kept_close(struct ms_kept *kept, bool over);

#define MS_KEPT_BASIS UINT64_C(0xcbf29ce484222325)
/** A number of some bytes, begun with another. */
uint64_t ms_kept_hash(uint64_t begun, const void *data, size_t bytes);

#endif
