/* python_read.h - reading the interpreter's memory, where a pointer may be anything.
 *
 * Floor 1, for src/unwind/python*.c alone. No lock, no allocation. The calling thread's frames stand still,
 * but when an interpreter is finalised the thread that does so gives back what belongs to all others: a
 * thread that holds neither the interpreter's lock nor is the process's first reads through the kernel, which
 * answers where a load would fault. */
#ifndef MS_UNWIND_PYTHON_PYTHON_READ_H
#define MS_UNWIND_PYTHON_PYTHON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/native/memory.h"

enum { MS_PYTHON_PAGES = 64 };

struct ms_python_reader {
    bool is_copying;                  /* through the kernel, always */
    uint16_t asked;                   /* pages, since all were forgotten */
    uintptr_t pages[MS_PYTHON_PAGES]; /* that can be read; by their number */
};

/** False, and no fault, if any of it cannot be read. */
bool ms_python_read_slowly(struct ms_python_reader *reader, uintptr_t at, void *into, size_t bytes);

static inline bool ms_python_knows(const struct ms_python_reader *reader, uintptr_t at)
{
    return reader->pages[at / MS_PAGE_BYTES % MS_PYTHON_PAGES] == at / MS_PAGE_BYTES;
}

/** The words of live memory, as they lie. */
static inline MS_RAW uint64_t ms_python_word(uintptr_t at)
{
    return *(const volatile uint64_t *)at;
}

/** One word, where it is aligned. */
static inline MS_RAW bool ms_python_read_word(struct ms_python_reader *reader, uintptr_t at, uint64_t *word_p)
{
    if (at % sizeof *word_p != 0)
        return false;
    if (reader->is_copying || !ms_python_knows(reader, at))
        return ms_python_read_slowly(reader, at, word_p, sizeof *word_p);
    *word_p = ms_python_word(at);
    return true;
}

static inline MS_RAW uint32_t ms_python_half(uintptr_t at)
{
    return *(const volatile uint32_t *)at;
}

#endif
