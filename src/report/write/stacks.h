/* stacks.h - which stacks, frames and modules the report mentions, and under which numbers.
 *
 * Floor 4. Built once per report in one private mapping. */
#ifndef MS_REPORT_WRITE_STACKS_H
#define MS_REPORT_WRITE_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/stack.h"

struct ms_report_frame {
    uint64_t rel_pc; /* a return address, less its module's load address */
    int32_t module;  /* row of base/objects/objects.h, -1 for code in none */
};
/* As a module: rel_pc is no address, but a line of Python or a mark as unwind/frame.h has them. */
#define MS_REPORT_NOT_NATIVE (-2)

struct ms_report_stack {
    uint32_t parent, frame;
    uint64_t hash;  /* of the whole path to here */
    uint32_t holds; /* which kinds of frames and marks the path has, a bit each */
};

/* How many of the stacks that were mentioned, not of their callers, have frames of Python. */
struct ms_report_python {
    uint32_t merged, apart, inferred, unsure;
};

struct ms_report_stacks {
    uint32_t node_count;            /* of the tree when this was built */
    uint32_t *numbers;              /* [id] is the report's number, 0 where it is not mentioned */
    struct ms_report_stack *stacks; /* [1 .. stack_count]; a parent comes before its children */
    uint32_t stack_count;
    struct ms_report_frame *frames;
    uint32_t frame_count;
    uint32_t *codes;     /* [row of the table of codes] is its number + 1, 0 where no frame is of it */
    uint32_t *code_rows; /* [number] is its row */
    uint32_t code_count, code_total; /* in the report; in the table when this was built */
    struct ms_report_python python;
    void *memory;
    size_t memory_bytes;
};

/** Room for the tree as it is now. Returns 0, or -1 without memory (then no stack is mentioned). */
int ms_report_stacks_open(struct ms_report_stacks *stacks);
/** This stack and its callers will be in the report. */
void ms_report_stacks_mention(struct ms_report_stacks *stacks, ms_stack_id id);
/** After the last mention: numbers, frames and hashes. */
void ms_report_stacks_number(struct ms_report_stacks *stacks);
/** The report's number of a stack; 0 is none. */
uint32_t ms_report_stacks_at(const struct ms_report_stacks *stacks, ms_stack_id id);
/** The hash of a stack: one value for the same chain of (build-id or file name, address within it) or (file
 * and qualified name of a Python function), in every run and rank; 0 for no stack. What was inferred counts
 * as no more than that. */
uint64_t ms_report_stacks_hash(const struct ms_report_stacks *stacks, ms_stack_id id);
void ms_report_stacks_close(struct ms_report_stacks *stacks);

/** FNV-1a, continued from `hash`. */
uint64_t ms_report_hash(uint64_t hash, const void *bytes, size_t count);
#define MS_REPORT_HASH_START UINT64_C(0xcbf29ce484222325)

#endif
