/* python.h - the calling thread's Python frames, read as plain memory.
 *
 * Floor 1. In any process that embeds CPython 3.9 to 3.15: no interpreter lock is taken, no reference count
 * touched, no function of the interpreter called but those that read one word (the thread's state, whether it
 * is finalising), and once Py_AtExit (python_life.h). What is read belongs to the calling thread, which
 * stands still in our code meanwhile. No lock; nothing is allocated once a stack is known. errno is
 * preserved. */
#ifndef MS_UNWIND_PYTHON_PYTHON_H
#define MS_UNWIND_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/store/store.h"
#include "unwind/stack.h"

/* Recursion to 500 is told whole (tests/python). */
enum { MS_PYTHON_DEPTH_MAX = 512 };

/** The offset of a frame that has not begun with its byte code: its line is the first. */
#define MS_PYTHON_NOT_BEGUN UINT32_MAX

enum ms_python {
    MS_PYTHON_ABSENT, /* no interpreter here, switched off, finalising, or none that we can read */
    MS_PYTHON_NONE,   /* there is one, and this thread runs no Python */
    MS_PYTHON_READ,
    MS_PYTHON_UNSURE, /* the thread has frames that do not look as they should, or a signal handler interrupts
                         this very reading: none is believed */
};

struct ms_python_frame {
    uint32_t code;   /* row of the table of codes */
    uint32_t offset; /* of the instruction that runs, in bytes of byte code */
    /* In the outermost frame of each run of the evaluation loop: an address within the C frame of that run
     * (3.11: its _PyCFrame; from 3.12 on the entry frame). 1 where the loop runs one frame each and keeps no
     * such record (to 3.10). Else 0. */
    uintptr_t entry;
};

/** Before the first capture: MEMSHIM_PYTHON. */
void ms_python_configure(bool on);

/** One load: whether there may be an interpreter in this process whose frames are read. Where none was found
 * it is looked for again once ms_python_find_again() says so. */
extern MS_HIDDEN _Atomic bool ms_python_is_here;
/** Called when a native stack is added that was never seen: where objects came since the interpreter was
 * looked for, one of them may be it. Some loads. */
void ms_python_find_again(void);

/** The calling thread's Python frames as a stack of such frames alone (frame.h), interned, and known again
 * as native ones are. The outermost frame of each run of the evaluation loop has MS_FRAME_ENDS_EVAL in it, so
 * that stacks of the same frames in other runs are others. 0 where there are none, with the reason. */
ms_stack_id ms_python_capture(enum ms_python *state_p);

/** The frames of the calling thread's latest capture, innermost first; ours, until its next. */
const struct ms_python_frame *ms_python_frames(unsigned *count_p);

/** The interpreter that was found latest: its version as PY_VERSION_HEX has it (3.9 and 3.10 do not tell
 * their patch level), 0 for none, and whether its frames are read. */
extern _Atomic uint32_t ms_python_seen, ms_python_is_read;

/** The addresses of the evaluation loop's code, if the loop runs one frame each (to 3.10); else 0. */
void ms_python_loop(uintptr_t *start_p, uintptr_t *end_p);

/* A code object, as the table of codes keeps it: what is needed to tell function and line later, by the
 * command. Written once, before a stack with it is published. */
struct ms_code {
    uint32_t file, name; /* of their first bytes in the table of texts of codes; NUL-terminated UTF-8 */
    uint32_t lines, lines_bytes; /* the line table as the interpreter has it */
    uint32_t first_line;
    uint16_t version; /* major << 8 | minor: which format the line table has */
    uint16_t unused;
    uint64_t unused_too[2];
};
_Static_assert(sizeof(struct ms_code) == MS_TABLE_CODES_ROW_BYTES, "a row of the ledger");

/** NULL for a row that does not exist. */
const struct ms_code *ms_code_at(uint32_t row);
/** The text at `offset`; "" if there is none, or it has no end within the table. */
const char *ms_code_text(uint32_t offset);
/** The bytes of a line table; NULL if they do not lie within the table. */
const unsigned char *ms_code_lines(const struct ms_code *code);
/** Puts a name (of a thread) into the table of texts, once for the same name; 0 if there is no room. */
uint32_t ms_code_intern_text(const char *text);

#endif
