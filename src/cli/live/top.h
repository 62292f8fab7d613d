/* top.h - memshim top: what the devices of processes that run hold, once a second.
 *
 * Floor 5. top_sample.c takes figures out of ledgers, top_text.c puts them into columns, for lines and for
 * the screen alike, top_sites.c has the call sites of one process, top_screen.c is the screen, cmd_top.c the
 * verb. */
#ifndef MS_CLI_LIVE_TOP_H
#define MS_CLI_LIVE_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/** A process on one device. Texts are the process's own: anything. */
struct ms_top_row {
    pid_t pid;
    uint64_t start_unix_ns; /* with the pid it names a process */
    char rank[24], host[128], phase[128], command[512];
    int device;     /* number (base/devices.h) */
    uint64_t at_ns; /* of the process's own clock */
    uint64_t live_bytes, live_count, peak_bytes, reserved_bytes, limbo_bytes,
        total_bytes; /* total: the device's */
    uint64_t allocated_bytes, allocated_count, ooms;
    /* Of the inner layer; nothing where no allocator of the program's reported anything. */
    uint64_t tensors_bytes, tensors_count, tensors_peak_bytes, heaps_bytes;
    double allocations_per_second; /* since the sample before; 0 if it was not in that */
};

struct ms_top {
    struct ms_top_row *rows; /* owned */
    size_t count, room;
    size_t processes, left_out;
    bool has_tensors; /* of any row */
    uint64_t taken_unix_ns;
    json_t *shares; /* devices of which somebody has a place on the page (shares.h), owned */
};

/** Of all processes of this user's that run, or of these; rates are those since `before` (may be NULL). In
 * the order in which ledgers are found. */
void ms_top_sample(const pid_t *pids, size_t pid_count, const struct ms_top *before, struct ms_top *top_p);
void ms_top_release(struct ms_top *top);

/** The key by which rows are sorted: what comes first. */
enum ms_top_order { MS_TOP_LIVE, MS_TOP_PEAK, MS_TOP_RESERVED, MS_TOP_RATE, MS_TOP_PID, MS_TOP_ORDERS };
extern const char *const ms_top_order_names[MS_TOP_ORDERS];
void ms_top_sort(struct ms_top *top, enum ms_top_order order);

/** One line without its end, in at most so many columns: what there is least need of goes first. Columns of
 * tensors are there where `tensors` is set. */
void ms_top_put_head(FILE *out, size_t columns, bool tensors);
void ms_top_put_row(FILE *out, const struct ms_top_row *row, size_t columns, bool tensors);
/** A sentence on all of them. */
void ms_top_put_sum(FILE *out, const struct ms_top *top);
/** The call sites that hold most of this device in this process, those of tensors where there are any and no
 * --layer asks for blocks, in lines, heads first, `most` of them; to be
 * freed. NULL without memory. */
char *ms_top_sites(const struct ms_top_row *row, size_t most);
/** For --json; NULL without memory. */
json_t *ms_top_json(const struct ms_top *top);

/** The time to rest after a look that took so long: looks cost at most a quarter of the time. */
int64_t ms_top_rest_ms(int64_t interval_ms, int64_t took_ms);

struct ms_top_watch {
    const pid_t *pids;
    size_t pid_count;
    int64_t interval_ms;
    enum ms_top_order order;
};
/** Until q, or until all of the processes that were asked for have ended. An exit status, or -1: there is no
 * screen here, and nothing was written. */
int ms_top_screen(const struct ms_top_watch *watch);

#endif
