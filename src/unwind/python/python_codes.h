/* python_codes.h - code objects of the interpreter, and their rows in the table of codes.
 *
 * Floor 1, for src/unwind/python*.c alone. */
#ifndef MS_UNWIND_PYTHON_PYTHON_CODES_H
#define MS_UNWIND_PYTHON_PYTHON_CODES_H

#include "unwind/python/python_find.h"
#include "unwind/python/python_read.h"

/** The content of a string, in numbers. `sum` is its hash, or, where none was asked for (as of file names
 * mostly), of its characters. */
struct ms_python_said {
    uint64_t bytes, hash, sum;
};

/** By what a code object is known again. One may be freed and another made in its place, with the same
 * strings or with others in their place. From 3.12 on each has a number that its interpreter gives to no
 * other (co_version); where there is none, what the strings say counts, not only where they lie. */
struct ms_python_print {
    uintptr_t file, name, lines;
    uint64_t beside[2]; /* the words behind `file` and before `lines`, of which one is `name` */
    uint32_t first_line;
    uint32_t version; /* 0: none */
    uint32_t lines_bytes;
    uint32_t row; /* of the table of codes */
    struct ms_python_said file_said, name_said;
    uint64_t lines_hash;
    uint64_t line_words[3]; /* of the line table: the first two and the last, where it is that long */
};

enum { MS_PYTHON_FILE_BYTES_MAX = 4096, MS_PYTHON_NAME_BYTES_MAX = 1024 };

/** Room to work in; one for each thread. */
struct ms_python_texts {
    char file[MS_PYTHON_FILE_BYTES_MAX], name[MS_PYTHON_NAME_BYTES_MAX];
};

/** The print of the code object of which `code` is a copy, without its row; false if it is none. */
bool ms_python_print(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                     const uint64_t *code, struct ms_python_print *print_p);

/** True if the string at `live`, which has no hash and whose head is read at `at` (there, or in a copy),
 * still has these characters. */
bool ms_python_is_same_text(const struct ms_python_layout *layout, struct ms_python_reader *reader,
                            uintptr_t live, uintptr_t at, const struct ms_python_said *said);

/** From how many bytes on a line table is known by its first two words, and by its last. */
enum { MS_PYTHON_LINES_HEAD = 16, MS_PYTHON_LINES_TAIL = 24 };

static inline bool ms_python_is_same_said(const struct ms_python_said *a, const struct ms_python_said *b)
{
    return a->bytes == b->bytes && a->hash == b->hash && a->sum == b->sum;
}

/** The place of the last whole word of a line table. */
static inline uintptr_t ms_python_tail_of(uintptr_t lines, uint64_t bytes)
{
    return lines + MS_PYTHON_BYTES_DATA + (bytes & ~(uint64_t)7) - 8;
}

/** Finds or makes the row of the code object that has this print; false where there is no room, or it cannot
 * be read. A lock for one that was never seen. */
bool ms_python_code_row(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                        struct ms_python_texts *texts, struct ms_python_print *print);

/** True if the whole line table of the code object that has this print is that of the row. */
bool ms_python_is_same_lines(struct ms_python_reader *reader, const struct ms_python_print *print,
                             uint32_t row);

#endif
