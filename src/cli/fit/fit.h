/* fit.h - whether a program fits on a device, by what it asked for in a run.
 *
 * Floor 5. A program is its trace, and the report beside it where there is one: that has the names of its
 * lines and what contexts and libraries take beside them. A way is a policy under which it could be run. */
#ifndef MS_CLI_FIT_H
#define MS_CLI_FIT_H

#include "cli/fit/law.h"
#include "cli/torch/torch.h"
#include "report/read/read.h"

#define MS_FIT_GRANULE (UINT64_C(2) << 20)
enum { MS_FIT_WAYS_MOST = 4 };

/* One run of the program. */
struct ms_fit_run {
    char *trace;
    double size; /* 0: nobody said */
    struct ms_report report;
    bool has_report;
    struct ms_course blocks, tensors;
    bool has_tensors;
    struct ms_course
        whole; /* tensors, and blocks that hold none: what is asked for without PyTorch's cache */
    uint64_t beside_blocks; /* bytes of blocks that hold no tensors, at most at a time */
    uint64_t others; /* bytes that contexts, modules and others took at the peak, as the report has it */
    uint64_t *names; /* of the sites of what is asked for: its stack, by number; NULL without a report */
    size_t name_count;
};

/** The course that the question is about: of tensors, where there are any. */
static inline const struct ms_course *ms_fit_asked(const struct ms_fit_run *run)
{
    return run->has_tensors ? &run->tensors : &run->blocks;
}

/* A way to run it. */
struct ms_fit_way {
    char name[160];
    bool of_tensors;    /* the course of tensors, beside the blocks that hold none */
    bool is_torch;      /* by the model of PyTorch's allocator, else replayed */
    char settings[512]; /* of a replay */
    struct ms_torch_settings torch;
};

struct ms_fit_answer {
    bool fits;
    uint64_t reserved; /* at the peak, of the device that most was taken of */
};

/** Reads a trace, or a report that names its trace. 0, or -1 after an error line. */
int ms_fit_run_open(struct ms_fit_run *run, const char *path);
void ms_fit_run_close(struct ms_fit_run *run);
/** The course that the way is tried on. */
const struct ms_course *ms_fit_course(const struct ms_fit_run *run, const struct ms_fit_way *way);
/** Bytes that are taken of a device beside those of the course. */
uint64_t ms_fit_beside(const struct ms_fit_run *run, const struct ms_fit_way *way);

/** The ways that a run could go, and with `policy` one more: MEMSHIM_NAME=VALUE..., or settings of PyTorch.
 * Returns how many, MS_FIT_WAYS_MOST at most, or -1 after an error line. */
int ms_fit_ways(const struct ms_fit_run *run, const char *policy, struct ms_fit_way *ways);

/** Tries a course on devices that have so many bytes for it. 0, or -1 after an error line. */
int ms_fit_try(const struct ms_fit_way *way, const struct ms_course *course, const uint64_t *capacities,
               size_t count, struct ms_fit_answer *answers);
/** Bytes that a course reserves at its peak on a device with room to spare. 0, or -1 after an error line. */
int ms_fit_reserved(const struct ms_fit_way *way, const struct ms_course *course, uint64_t *reserved_p);
/** The least device, in whole granules, on which a course goes to its end, and what it reserves where there
 * is room to spare. 0, or -1 after an error line. */
int ms_fit_least(const struct ms_fit_way *way, const struct ms_course *course, uint64_t *least_p,
                 uint64_t *reserved_p);
/** The order of a course as it might have been too: events of different threads that lie side by side change
 * places. Without more than one thread nothing changes. Returns true if anything did. */
bool ms_fit_reorder(struct ms_course *course, uint64_t seed);

#endif
