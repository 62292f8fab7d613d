/* search.h - which policy serves a program best.
 *
 * Floor 5. Successive halving: settings are tried alone on parts of the traces, the better ones together, and
 * the best of all on whole traces. What was replayed is kept in a file until the search is over, so that one
 * that was interrupted goes on. */
#ifndef MS_CLI_TUNE_SEARCH_H
#define MS_CLI_TUNE_SEARCH_H

#include "cli/torch/measured.h"
#include "cli/tune/policy.h"
#include "cli/tune/replay_run.h"
#include "cli/tune/steps.h"

enum ms_goal { MS_GOAL_BOTH, MS_GOAL_MEMORY, MS_GOAL_TIME };

/* One process. */
struct ms_search_trace {
    const char *path;
    struct ms_course course;
    struct ms_steps steps;
    struct ms_replay replay;
    uint64_t content;                 /* a number of its events */
    struct ms_search_trace *uncached; /* without its framework's cache; NULL: not known */
};

/* Figures of all traces: peaks are of the largest, the others are sums. */
struct ms_search_row {
    struct ms_policy policy;
    bool completed;       /* on each */
    uint64_t peak, peaks; /* the largest, and of all together */
    struct ms_replay_sums sums, steady;
    uint64_t least; /* the least device on which it completes; 0: not looked for */
    double score;   /* less is better */
};

struct ms_search {
    enum ms_goal goal;
    uint64_t device_bytes;  /* on which it must fit; 0: any */
    uint64_t replay_device; /* on which it is replayed: that; else the caller's, or one with room to spare */
    struct ms_search_trace *traces;
    size_t trace_count;
    struct ms_policy_facts facts;
    uint64_t span_ns;               /* how long the programs ran, together */
    struct ms_torch_measured torch; /* of the trace that has most tensors */
    struct ms_search_row *rows; /* those that were replayed whole; the defaults first, then the best first */
    size_t row_count, tried;    /* how many policies were looked at */
};

/** Reads the traces. 0, or -1 after an error line. */
int ms_search_open(struct ms_search *search, char *const *paths, size_t count);
/** The course that a policy is tried on. */
const struct ms_search_trace *ms_search_way(const struct ms_search_trace *trace,
                                            const struct ms_policy *policy);
/** Fills in rows. 0, or -1 after an error line. */
int ms_search_run(struct ms_search *search);
/** Tries PyTorch's own settings, if the traces have tensors. 0, or -1 after an error line. */
int ms_search_torch(struct ms_search *search);
/** The row that serves best: the defaults unless another is better. NULL where none completes. */
const struct ms_search_row *ms_search_best(const struct ms_search *search);
void ms_search_close(struct ms_search *search);

#endif
