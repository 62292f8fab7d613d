/* torch.h - PyTorch's caching allocator as a model: what it would take of each device for a course of
 * tensors.
 *
 * Floor 5. The model follows c10/cuda/CUDACachingAllocator.cpp of releases 2.1 to 2.15 in what decides how
 * much is reserved: rounding, segments, which free block is taken, splitting, joining, expandable segments,
 * and what is given back where the device has no more. scripts/test-clients torch-model holds it against the
 * allocator of the wheel. A course has no private pools (graphs, MemPool) and no moments at which a stream is
 * done with what record_stream was told, so these are not in it. */
#ifndef MS_CLI_TORCH_H
#define MS_CLI_TORCH_H

#include "cli/tune/course.h"

enum { MS_TORCH_ROUNDUPS = 16 }; /* powers of two from 1 MiB to 32 GiB and more */

/** The settings of PYTORCH_ALLOC_CONF that decide how much is reserved. */
struct ms_torch_settings {
    uint64_t large_segment_bytes;                  /* of what holds blocks of 1 to 10 MiB */
    uint64_t max_split_bytes;                      /* UINT64_MAX: each block may be split */
    uint64_t max_non_split_rounding_bytes;         /* what such a block may be longer than the request */
    uint32_t roundup_divisions[MS_TORCH_ROUNDUPS]; /* of the powers of two; 0 or 1: none */
    double collection_threshold;                   /* of the fraction; 0: nothing is collected */
    double memory_fraction; /* of the device; 0: no bound was set, and nothing is collected */
    bool expandable_segments;
};

struct ms_torch_result {
    bool completed;                              /* false: an allocation was refused */
    size_t events;                               /* that were replayed */
    uint64_t peak_reserved;                      /* of all devices together */
    uint64_t peak_allocated;                     /* of blocks, as they were rounded */
    uint64_t device_reserved[MS_COURSE_DEVICES]; /* at each one's peak */
    uint64_t segments, segments_freed;           /* calls of cudaMalloc and cudaFree */
    uint64_t mapped, unmapped;         /* physical memory that was mapped and unmapped, in handles */
    uint64_t taken_bytes, given_bytes; /* of segments and of what was mapped */
    uint64_t retries; /* requests that were refused first, and had what was cached given back */
};

/** As PyTorch has them where nothing is set. */
void ms_torch_defaults(struct ms_torch_settings *settings);
/** Settings as PYTORCH_ALLOC_CONF has them; keys that do not decide how much is reserved are skipped. Returns
 * 0, or -1 with one line in `error`. */
int ms_torch_parse(const char *text, struct ms_torch_settings *settings, char *error, size_t error_bytes);
/** Replay a course. `capacity`: bytes that each device has for PyTorch; UINT64_MAX: no bound. Returns 0, or
 * -1 where there is no memory. */
int ms_torch_replay(const struct ms_course *course, const struct ms_torch_settings *settings,
                    uint64_t capacity, struct ms_torch_result *result);

#endif
