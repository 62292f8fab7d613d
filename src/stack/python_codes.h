/* python_codes.h - code objects of the interpreter, and their rows in the table of codes.
 *
 * Floor 1, for src/stack/python*.c alone. */
#ifndef MS_STACK_PYTHON_CODES_H
#define MS_STACK_PYTHON_CODES_H

#include "stack/python_find.h"
#include "stack/python_read.h"

/** By what a code object is known again. One may be freed and another made in its place, with the same
 * strings or with others in their place. From 3.12 on each has a number that its interpreter gives to no
 * other (co_version); where there is none, what the strings say counts, not only where they lie. */
struct ms_python_print {
    uintptr_t file, name, lines;
    uint64_t file_sum, sum; /* of the file's name; of the name and the line table */
    uint32_t first_line;
    uint32_t version; /* 0: none */
    uint32_t row;     /* of the table of codes */
};

enum { MS_PYTHON_FILE_BYTES_MAX = 4096, MS_PYTHON_NAME_BYTES_MAX = 1024 };

/** Room to work in; one for each thread. */
struct ms_python_texts {
    char file[MS_PYTHON_FILE_BYTES_MAX], name[MS_PYTHON_NAME_BYTES_MAX];
};

/** The print of the code object of which `code` is a copy, without its row, and the size of its line table;
 * false if it is none. */
bool ms_python_print(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                     const uint64_t *code, struct ms_python_print *print_p, uint32_t *lines_bytes_p);

/** Finds or makes the row of the code object that has this print; false where there is no room, or it cannot
 * be read. A lock for one that was never seen. */
bool ms_python_code_row(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                        struct ms_python_texts *texts, struct ms_python_print *print);

/** In a fork child. */
void ms_python_codes_reset(void);

#endif
