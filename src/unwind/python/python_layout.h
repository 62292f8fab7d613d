/* python_layout.h - where an interpreter keeps what is read of it: offsets into its structures, and its
 * symbols.
 *
 * Floor 1, for src/unwind/python*.c alone. No lock, no allocation; nothing of the interpreter is called here.
 * The layouts are those of LP64, which x86-64 and aarch64 share. */
#ifndef MS_UNWIND_PYTHON_PYTHON_LAYOUT_H
#define MS_UNWIND_PYTHON_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How the interpreter chains frames, and what tells where a run of the evaluation loop ends. */
enum ms_python_chain {
    MS_PYTHON_CHAIN_OBJECTS, /* to 3.10: frame objects; each has a run of its own */
    MS_PYTHON_CHAIN_CFRAMES, /* 3.11: a _PyCFrame on the C stack for each run */
    MS_PYTHON_CHAIN_ENTRIES, /* from 3.12 on: an entry frame on the C stack for each run */
};

/** The symbols of an interpreter that are used. Functions read one word each, but for `at_exit`. */
struct ms_python_symbols {
    void *(*this_thread)(void);     /* PyGILState_GetThisThreadState */
    void *(*current)(void);         /* _PyThreadState_UncheckedGet, PyThreadState_GetUnchecked; may be NULL */
    int (*is_finalizing)(void);     /* _Py_IsFinalizing, Py_IsFinalizing */
    int (*is_initialized)(void);    /* Py_IsInitialized */
    void *(*main)(void);            /* PyInterpreterState_Main; may be NULL */
    int (*at_exit)(void (*)(void)); /* Py_AtExit; may be NULL (python_life.h) */
    uintptr_t runtime;              /* _PyRuntime */
    uintptr_t code_type, str_type;  /* PyCode_Type, PyUnicode_Type */
    uintptr_t loop, loop_end;       /* to 3.10: code of _PyEval_EvalFrameDefault; else 0 */
    /* PY_VERSION_HEX; to 3.10, which does not export it, without patch level. As wide as the others: two of
     * these are compared by their bytes, so there is no padding. */
    uint64_t version;
};

struct ms_python_layout {
    enum ms_python_chain chain;
    uint16_t state_thread_id; /* where `current` may be another thread's: to 3.11; else 0 */
    uint16_t state_frame;     /* the innermost frame; 3.11, 3.12: the _PyCFrame */
    uint16_t state_interp;    /* which interpreter it belongs to; from 3.12 on, 0 where that is not known */
    bool has_cframe;          /* 3.11, 3.12 */
    uint16_t cframe_frame, cframe_previous;
    uint16_t frame_previous, frame_code, frame_instr;
    uint16_t frame_owner, frame_is_entry; /* bytes; is_entry: 3.11 */
    uint16_t frame_bytes;                 /* all of them lie within so many */
    uint8_t instr_unit;                   /* to 3.10: bytes of byte code for one of f_lasti; else 0 */
    uintptr_t code_mask;                  /* bits of `code` that are the pointer */
    uint16_t code_file, code_name, code_first_line, code_lines; /* name: qualified from 3.11 on */
    uint16_t code_version;                                      /* co_version; from 3.12 on, else 0 */
    uint16_t code_traceable;                                    /* _co_firsttraceable; from 3.11 on */
    uint16_t code_bytes;               /* where byte code begins, from 3.11 on; the size of what is read */
    uint16_t text_ascii, text_compact; /* where the characters of a string begin */
};

/** Offsets and other values that are the same in all versions of the interpreter. */
enum {
    MS_PYTHON_TYPE = 8,          /* of an object */
    MS_PYTHON_TYPE_DEALLOC = 48, /* of a type: the function that lets go of an object */
    MS_PYTHON_LENGTH = 16,       /* of a string, or of bytes */
    MS_PYTHON_HASH = 24,
    MS_PYTHON_NO_HASH = -1,
    MS_PYTHON_TEXT_STATE = 32,
    MS_PYTHON_TEXT_HEAD_BYTES = 40,
    MS_PYTHON_BYTES_DATA = 32,
    MS_PYTHON_OWNER_ENTRY = 3, /* of a frame, from 3.12 on: this, and what is more, begins a run */
    MS_PYTHON_FRAME_BYTES_MAX = 128,
    MS_PYTHON_CODE_BYTES_MAX = 256,
};

/** Fills the layout, or says in `why` (one clause) why these frames are not read. */
bool ms_python_layout_find(const struct ms_python_symbols *symbols, struct ms_python_layout *layout_p,
                           const char **why_p);

#endif
