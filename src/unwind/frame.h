/* frame.h - what a frame in the tree of stacks may be: an address of code, a line of Python, or a mark.
 *
 * Floor 1. A native frame is the address to which the call returns, as it lay on the stack. The upper byte of
 * an address in user space is 0 on every machine that memshim runs on, so it tells the others apart. */
#ifndef MS_UNWIND_FRAME_H
#define MS_UNWIND_FRAME_H

#include <stdint.h>

enum ms_frame_kind {
    MS_FRAME_NATIVE = 0,
    MS_FRAME_PYTHON = 0xf0, /* a row of the table of codes (23 bits), an offset in its byte code (32) */
    MS_FRAME_PSEUDO = 0xf1, /* what holds of the frames further out */
};

/** The things that a mark can say of the frames further out than itself. */
enum ms_pseudo_frame {
    MS_PSEUDO_APART =
        1,              /* Python frames of the same moment, which could not be paired with the native ones */
    MS_PSEUDO_INFERRED, /* this thread had no Python frames: those that follow were the process's latest */
    MS_PSEUDO_THREAD,   /* the name of the thread, in the table of texts of codes */
    MS_PSEUDO_UNSURE,   /* outermost: there were Python frames that did not look as they should */
    MS_PSEUDO_COMMUNICATOR, /* innermost: the call made communicators of NCCL's, which, in the same table */
    MS_PSEUDO_COUNT
};

static inline enum ms_frame_kind ms_frame_kind(uint64_t frame)
{
    return (enum ms_frame_kind)(frame >> 56);
}

static inline uint64_t ms_frame_python(uint32_t code, uint32_t offset)
{
    return (uint64_t)MS_FRAME_PYTHON << 56 | (uint64_t)(code & 0x7fffff) << 32 | offset;
}

/* Only in stacks of Python frames alone: it is the outermost of its run of the evaluation loop. */
#define MS_FRAME_ENDS_EVAL ((uint64_t)1 << 55)

/** The frame as stacks of a report have it. */
static inline uint64_t ms_frame_plain(uint64_t frame)
{
    return ms_frame_kind(frame) == MS_FRAME_PYTHON ? frame & ~MS_FRAME_ENDS_EVAL : frame;
}

static inline uint32_t ms_frame_code(uint64_t frame)
{
    return (uint32_t)(frame >> 32) & 0x7fffff;
}

static inline uint32_t ms_frame_offset(uint64_t frame)
{
    return (uint32_t)frame;
}

static inline uint64_t ms_frame_pseudo(enum ms_pseudo_frame mark, uint32_t text)
{
    return (uint64_t)MS_FRAME_PSEUDO << 56 | (uint64_t)mark << 32 | text;
}

static inline enum ms_pseudo_frame ms_frame_pseudo_of(uint64_t frame)
{
    return (enum ms_pseudo_frame)((frame >> 32) & 0xff);
}

/** The place where a mark's text begins in the table of texts of codes; 0 for none. */
static inline uint32_t ms_frame_pseudo_text(uint64_t frame)
{
    return (uint32_t)frame;
}

#endif
