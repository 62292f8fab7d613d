/* measured.h - what a run's tensors come to under PyTorch's own settings.
 *
 * Floor 5. The one place where they are tried on a whole trace: for memshim tune, and for a report whose run
 * has a trace, of which findings, oom and the page tell. */
#ifndef MS_CLI_TORCH_MEASURED_H
#define MS_CLI_TORCH_MEASURED_H

#include "cli/torch/tries.h"

/** On the tensors of a trace; no tries: it has none. */
struct ms_torch_measured {
    struct ms_torch_try tries[MS_TORCH_TRIES_MOST]; /* PyTorch as it comes first */
    size_t count, best;
    uint64_t beside; /* bytes of blocks that hold no tensors, at most at a time */
    uint64_t had;    /* bytes that the vendor gave the run itself, at most at a time */
    bool is_off;     /* the model does not have that: nothing is advised */
};

/** Tries them all on the tensors of the trace at `path`, of whose blocks the caller has the course, on
 * devices of so many bytes (0: any); `tensors_p`: the course of the tensors, to be closed, whatever comes
 * back. 0, or -1 with one line in `error`. */
int ms_torch_measure(const char *path, const struct ms_course *blocks, uint64_t device_bytes,
                     struct ms_torch_measured *measured, struct ms_course *tensors_p, char *error,
                     size_t error_bytes);

#endif
