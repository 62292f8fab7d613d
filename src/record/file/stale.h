/* stale.h - ledgers that nobody needs any more: what killed processes of this user's left, long ago or too
 * much of it.
 *
 * Floor 2. Called when a process makes its own ledger, and by the command; one caller at a time. What another
 * user left, what another version made, and what may belong to a process that lives (in another namespace, or
 * where /proc does not tell) stays. Bare system calls, no allocation. */
#ifndef MS_RECORD_FILE_STALE_H
#define MS_RECORD_FILE_STALE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/file/journal.h"
#include "record/file/process.h"

/** A ledger of a process that has ended, or the copies that a job's processes left (job_copies.h). */
struct ms_stale {
    char name[MS_JOURNAL_NAME_BYTES];
    int32_t pid; /* 0: a job's */
    uint64_t bytes;
    uint64_t age_ns; /* since it was written to */
    bool goes;
};

/** Looks through a directory, given by a descriptor of any kind. Those go that are older than
 * MEMSHIM_DIR_KEEP, and the oldest of the others as long as they take more than a tenth of the file system
 * together; what `memshim run` will read itself stays for a day. They are removed unless `dry`. `visit` (may
 * be NULL) is called with each, the oldest first. */
void ms_stale_clean(int directory_fd, bool dry, void (*visit)(void *arg, const struct ms_stale *stale),
                    void *arg);

/** True if a process has certainly ended, by what its ledger says of it. */
bool ms_stale_has_ended(const struct ms_process *process);

typedef void (*ms_stale_name_t)(void *arg, int directory_fd, const char *name);
/** Calls `visit` with each name in a directory, given by a descriptor that can be read; 16,384 at most.
 * `buffer` is the caller's, aligned to 8, of 4 KiB at least. */
void ms_stale_names(int directory_fd, void *buffer, size_t bytes, ms_stale_name_t visit, void *arg);

#endif
