/* python_thread.h - what is remembered of a thread's latest Python stack, and the room to take the next.
 *
 * Floor 1, for src/unwind/python*.c alone. Only threads that run Python have one: from the arena, for good;
 * one whose thread has ended is taken by the next that needs one. Touched by its own thread alone. */
#ifndef MS_UNWIND_PYTHON_PYTHON_THREAD_H
#define MS_UNWIND_PYTHON_PYTHON_THREAD_H

#include <sys/uio.h>

#include "unwind/python/python.h"
#include "unwind/python/python_codes.h"

enum {
    /* Frames that are told, those that are not (incomplete ones, entries of runs), and some to spare. */
    MS_PYTHON_RECORDS_MAX = 2 * MS_PYTHON_DEPTH_MAX + 64,
    MS_PYTHON_KNOWN_CODES = 256,
};

/** One frame of the interpreter's chain. */
struct ms_python_record {
    uintptr_t at, previous, code, instr; /* where it lies, and its words as they are */
    uintptr_t cframe;                    /* 3.11: of its run */
    uintptr_t number_at;                 /* from 3.12 on: a word by which what is there is known */
    uint32_t number;                     /* that word: of a code object, or of an entry of a run */
    uint16_t frames;                     /* told from the outermost up to and with this one */
    bool is_told, is_entry, ends_run;
    struct ms_python_print print; /* of the code, if it is told */
    uint32_t offset;              /* in the byte code */
    uintptr_t entry;              /* as in struct ms_python_frame */
};

/** The words that are compared of every record at every call, side by side. The first row stands for the end
 * of the chain: that of record i is number i + 1. */
struct ms_python_trail {
    uintptr_t at, code, instr, number_at;
    uint32_t number;
    bool ends_run;
};

/** Words that lie side by side in the interpreter's memory, and are compared as one. */
typedef struct {
    _Alignas(16) uint64_t words[2];
} ms_python_pair;

/** The words that are compared besides of a code object without a number, and, where numbers alone do not do,
 * of one with a number its own words. A part that a short line table does not have is compared with
 * itself. */
struct ms_python_content {
    uintptr_t code, name, lines, head_at, tail_at;
    ms_python_pair of_file, of_lines;     /* `file` and what follows it, what precedes `lines` and it */
    ms_python_pair lines_said, name_said; /* length and hash */
    ms_python_pair head;                  /* of the line table */
    uint64_t tail;
    uint32_t first_line;
    bool is_numbered;
};

/** Copies of so many records' parts at a time (python_same.c). GAP: frames of the program that are this far
 * apart are copied in one, with their variables; more would be more to copy than a range of its own costs. */
enum {
    MS_PYTHON_BATCH = 32,
    MS_PYTHON_PARTS = 6,
    MS_PYTHON_GAP = 256,
    MS_PYTHON_PART_BYTES = MS_PYTHON_FRAME_BYTES_MAX + MS_PYTHON_GAP + MS_PYTHON_CODE_BYTES_MAX +
                           2 * MS_PYTHON_TEXT_HEAD_BYTES + 48 + 8,
};

/** In which range the parts of one record are. */
struct ms_python_ranges {
    unsigned frame, code, file, name, lines, tail;
    bool has_texts;
};

struct ms_python_batch {
    struct ms_python_ranges ranges[MS_PYTHON_BATCH];
    struct iovec from[MS_PYTHON_BATCH * MS_PYTHON_PARTS], to[MS_PYTHON_BATCH * MS_PYTHON_PARTS];
    unsigned count;
    uint64_t words[MS_PYTHON_BATCH * MS_PYTHON_PART_BYTES / sizeof(uint64_t)];
};

/** Arrays of frames are filled from their ends, where the outermost is: innermost first, as they are given.
 */
struct ms_python_thread {
    _Atomic uint32_t owner; /* the kernel's id; never 0 */
    bool is_busy;
    uint64_t generation; /* of what was found (python_find.h) */
    uint64_t life;       /* of the main interpreter (python_life.h) */
    uint64_t deaths;     /* as of the latest capture; 0: not counted (python_life.h) */
    uintptr_t interp;    /* that the thread was in; from 3.12 on */
    uint16_t count;      /* records that are remembered, from the outermost, 0, on; 0: nothing is */
    uint16_t frames;     /* told by the latest capture */
    uint16_t texts_count;
    bool is_numbered; /* every code object that is remembered */
    struct ms_python_thread *next;
    struct ms_python_reader reader;
    struct ms_python_print known[MS_PYTHON_KNOWN_CODES];
    uintptr_t known_at[MS_PYTHON_KNOWN_CODES];
    struct ms_python_texts texts;
    struct ms_python_batch batch;
    struct ms_python_frame told[MS_PYTHON_DEPTH_MAX];
    uintptr_t values[MS_PYTHON_DEPTH_MAX]; /* the same as the tree has them */
    ms_stack_id ids[MS_PYTHON_DEPTH_MAX];  /* the stack from this frame outwards */
    struct ms_python_trail trail[MS_PYTHON_RECORDS_MAX + 1];
    struct ms_python_content contents[MS_PYTHON_DEPTH_MAX]; /* of frames that are told, outermost first */
    uint16_t texts_of[MS_PYTHON_RECORDS_MAX];               /* records whose strings are looked at */
    struct ms_python_record records[MS_PYTHON_RECORDS_MAX];
    struct ms_python_record fresh[MS_PYTHON_RECORDS_MAX]; /* innermost first */
};

/** The calling thread's; NULL without memory. */
struct ms_python_thread *ms_python_thread(void);
/** As ms_python_thread, but makes none: NULL if the thread has none yet. */
struct ms_python_thread *ms_python_thread_if_any(void);

/** The beginning of a frame chain. */
struct ms_python_head {
    uintptr_t frame, cframe; /* cframe: 3.11 */
    bool codes_stay;         /* no other code object took a remembered one's place (ms_python_is_same) */
};

/** True if all that is remembered is still so, from record `last` outwards, whose frame is still where it
 * was. `codes_stay`: where code objects have numbers, these are of the interpreter, and the life of it, in
 * which they were remembered; where they have none, none went since. */
bool ms_python_is_same(const struct ms_python_interpreter *interpreter, struct ms_python_thread *thread,
                       unsigned last, bool codes_stay);

/** Remembers record `index`, of which `frames` is known, upon those further out. */
void ms_python_remember(const struct ms_python_layout *layout, struct ms_python_thread *thread,
                        unsigned index);

enum ms_python_walk {
    MS_PYTHON_WALKED,
    MS_PYTHON_CUT, /* there are more than are told: not to be remembered */
    MS_PYTHON_ODD, /* they do not look as they should */
};

/** Takes the chain from `head` on into `thread`: fresh records up to the first that is remembered, *joined_p
 * of which (from the outermost on) go on from there. */
enum ms_python_walk ms_python_walk(const struct ms_python_interpreter *interpreter,
                                   struct ms_python_thread *thread, struct ms_python_head head,
                                   unsigned *fresh_p, unsigned *joined_p);

/** The address of the code object of a record. */
static inline uintptr_t ms_python_code_of(const struct ms_python_layout *layout,
                                          const struct ms_python_record *record)
{
    return record->code & layout->code_mask;
}

#endif
