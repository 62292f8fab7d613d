/* process.h - which process this is, how it ended, and what is counted for it as a whole.
 *
 * Floor 2. One row of the record and a table of text, both in the file, so that a report can be written
 * without the process. */
#ifndef MS_RECORD_FILE_PROCESS_H
#define MS_RECORD_FILE_PROCESS_H

#include "record/live/internal.h"

/** How a process ended. MS_END_NONE: it did not say so; it runs, or was killed. */
enum ms_end_reason {
    MS_END_NONE,
    MS_END_EXIT,
    MS_END_SIGNAL,
    MS_END_EXEC,
    MS_END_OOM,
    MS_END_KILLED,
    MS_END_RUNNING,
    MS_END_COUNT
};

/** Memory that went between this process and others on its devices: how often it asked them, how many heard
 * and how many bytes they gave back; how often it was asked, and how many it gave. */
enum ms_neighbours_count {
    MS_NEIGHBOURS_ASKED,
    MS_NEIGHBOURS_HEARD,
    MS_NEIGHBOURS_BROUGHT,
    MS_NEIGHBOURS_ASKED_HERE,
    MS_NEIGHBOURS_GIVEN,
    MS_NEIGHBOURS_COUNT
};

struct ms_process {
    int32_t pid, ppid;
    uint64_t
        start_ticks;    /* /proc/PID/stat; with the pid it names a process for as long as the machine runs */
    uint64_t pid_space; /* inode of the pid namespace, 0 if not known */
    uint64_t start_unix_ns, start_monotonic_ns;
    _Atomic uint32_t described;  /* 1 once the above and the text are whole */
    _Atomic uint32_t end_reason; /* written last */
    _Atomic int32_t end_code;    /* the exit code, or the signal's number; -1: not known */
    uint32_t timeline_buckets;
    _Atomic uint64_t end_ns;
    _Atomic uint64_t routes[MS_ROUTE_COUNT], divergent, unseen_frees, late_frees, replaced_blocks,
        merged_allocs;
    _Atomic uint64_t oom_count, death_count; /* ever */
    struct {
        _Atomic uint64_t live_bytes, live_count, peak_live_bytes, total_bytes, total_count;
    } kinds[MS_KIND_COUNT]; /* what is not device memory, over all devices: a sum's peak is not the sum of
                               peaks */
    /* trace_file.h */
    uint64_t trace_device, trace_inode, trace_start;
    _Atomic uint64_t trace_end, trace_written;
    uint64_t run_id; /* of the run of `memshim run` that it belongs to, 0 for none */
    /* The interpreter in the process, as of the latest new site: PY_VERSION_HEX, and whether its frames are
       read. */
    _Atomic uint32_t python_version, python_is_read;
    _Atomic uint64_t phase_faults[4]; /* enum ms_phase_fault */
    _Atomic uint64_t oom_sites;       /* rows ever, of that table */
    _Atomic uint64_t latest_ns;       /* when something happened, at the latest turn of a timeline's bucket */
    _Atomic uint64_t oom_parts;       /* of oom_count: parts of another, or answered when asked again */
    uint64_t trace_part_bytes;        /* trace_file.h: of a trace with a limit, else 0 */
    _Atomic uint64_t neighbours[MS_NEIGHBOURS_COUNT];
    uint64_t job; /* a number that processes of its job have, of other jobs hardly any; 0 for none */
    uint64_t unused[39];
};
_Static_assert(sizeof(struct ms_process) == MS_TABLE_PROCESS_ROW_BYTES, "a row of the ledger");

/** The row; never NULL (without memory for it, one outside the record). */
struct ms_process *ms_process(void);
void ms_process_open(void);
/** In a reader: the row as it was read. */
void ms_process_adopt(void);

/** Remember the directory in which the program was started. From the constructor. */
void ms_process_note_directory(void);
const char *ms_process_directory(void);

/** Writes down who this is: arguments, program, host, rank, options. Once; before the file is made. */
void ms_process_describe(void);

/** Writes down one text more. Under the journal's lock. */
void ms_process_note(const char *key, const char *value);

/** Text that was written down: "exe", "cwd", "host", "rank", ...; NULL if there is none. */
const char *ms_process_text(const char *key);
/** The i-th of several under one key ("arg", "option"); NULL past the last. Start with *cursor_p = 0. */
const char *ms_process_next_text(const char *key, uint64_t *cursor_p);

/** Path of the running program; "" if it could not be had. */
const char *ms_process_executable(void);

#endif
