/* course.h - what a program asked for, in order, as a compact array in memory.
 *
 * Floor 5. One course is one process's trace (docs/user/trace.md), of its blocks or of the pieces that an
 * allocator of its own made of them. What is read is not trusted. */
#ifndef MS_CLI_TUNE_COURSE_H
#define MS_CLI_TUNE_COURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MS_COURSE_STREAMS = 1024, MS_COURSE_DEVICES = 64 };
#define MS_COURSE_NO_SITE UINT32_MAX

struct ms_course_event {
    uint64_t ns;     /* since the process's first GPU call; never less than of the one before */
    uint64_t bytes;  /* as the program asked for them; 0: a free */
    uint32_t block;  /* counted from 0 by the allocations */
    uint32_t site;   /* as the trace numbers it, of an allocation; else MS_COURSE_NO_SITE */
    uint16_t stream; /* of the allocation, also in its free; less than MS_COURSE_STREAMS */
    uint16_t thread; /* 0 where the trace does not say */
    uint8_t device;  /* row of devices[] */
    uint8_t kind;    /* enum ms_kind, also in the free */
};

struct ms_course_device {
    char api[16]; /* "cuda", "hip", "acl" */
    int index;
};

struct ms_course_stream {
    uint8_t device; /* row of devices[] */
    bool ordered;   /* memory of it is stream-ordered; else the number only says the device */
};

/* A stretch between the begin and the end of a range of the program's own. */
struct ms_course_phase {
    char *name;
    size_t begin, end; /* events: the first one in it, and the first one behind it */
};

struct ms_course {
    struct ms_course_event *events;
    size_t count;
    uint32_t block_count;
    bool inner;             /* of pieces of blocks (tensors), not of blocks */
    size_t other_count;     /* events of the other layer, which were left out */
    uint64_t live_peak;     /* of all devices together, as asked for */
    size_t live_peak_event; /* that reached it */
    char *title;            /* the program and its process */
    struct ms_course_device devices[MS_COURSE_DEVICES];
    size_t device_count;
    struct ms_course_stream streams[MS_COURSE_STREAMS];
    struct ms_course_phase *phases; /* by begin; empty where the trace has none */
    size_t phase_count;
};

/** Read the trace at `path`: its blocks, or with `inner` the pieces of them. Returns 0, or -1 with one line
 * in `error`: unreadable, no trace, a line that is none, a free of what is not there, no memory. */
int ms_course_read(const char *path, bool inner, struct ms_course *course, char *error, size_t error_bytes);
/** Read what the program would ask for if its allocator kept nothing: each piece as a block, and of the
 * blocks those in which no piece ever lay. Returns 0; 1 where that cannot be told, as there are no pieces or
 * some lie in no block; or -1 as above. */
int ms_course_read_uncached(const char *path, struct ms_course *course, char *error, size_t error_bytes);
void ms_course_close(struct ms_course *course);
/** Whose interface asked, where it is not CUDA's, as people say it: "HIP", "Ascend"; NULL where all was
 * CUDA's. Replays ask by CUDA's calls, and the model of PyTorch's allocator is that for CUDA. */
const char *ms_course_foreign(const struct ms_course *course);

#endif
