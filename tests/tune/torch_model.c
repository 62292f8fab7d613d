/* torch_model.c - a trace through the model of PyTorch's allocator: torch_model TRACE SETTINGS [CAPACITY].
 *
 * Prints lines of a name and a number, as tests/bench/alloc does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/torch/torch.h"

int main(int argc, char **argv)
{
    static struct ms_course course;
    struct ms_torch_settings settings;
    struct ms_torch_result result;
    char error[512];

    if (argc < 3 || ms_course_read(argv[1], false, &course, error, sizeof error) != 0 ||
        ms_torch_parse(argv[2], &settings, error, sizeof error) != 0) {
        fprintf(stderr, "%s\n", argc < 3 ? "usage: torch_model TRACE SETTINGS [CAPACITY]" : error);
        return 1;
    }
    if (ms_torch_replay(&course, &settings, argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX, &result) !=
        0)
        return 1;
    printf("completed %d\nevents %zu\nreserved_peak_bytes %" PRIu64 "\nallocated_peak_bytes %" PRIu64
           "\nsegments %" PRIu64 "\nfreed %" PRIu64 "\nmapped %" PRIu64 "\nunmapped %" PRIu64
           "\nretries %" PRIu64 "\n",
           result.completed, result.events, result.peak_reserved, result.peak_allocated, result.segments,
           result.segments_freed, result.mapped, result.unmapped, result.retries);
    ms_course_close(&course);
    return 0;
}
