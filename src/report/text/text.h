/* text.h - how figures, frames and stacks are spelled for people.
 *
 * Floor 4, command line only. Text from a report goes out with its control characters replaced. */
#ifndef MS_REPORT_TEXT_TEXT_H
#define MS_REPORT_TEXT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/read/read.h"

struct ms_text_number {
    char text[32];
};

/** "0 B", "1023 B", "1.5 KiB", "12.00 GiB": powers of 1024, one decimal, two from a
 * gibibyte on. Negative sizes keep their sign. */
struct ms_text_number ms_text_size(json_int_t bytes);
/** "850 ns", "12.3 us", "4.0 ms", "3.2 s", "2 h 05 min". */
struct ms_text_number ms_text_duration(json_int_t ns);

/** True if headings on `out` may be set in bold: a terminal, and neither NO_COLOR nor TERM=dumb. */
bool ms_text_bold(FILE *out);
void ms_text_heading(FILE *out, const char *text);

/** `text` on a terminal: C0, DEL, C1 (U+0080 to U+009F) and what is no UTF-8 become '?', the end of a line
 * too. Every string that is not a constant of ours goes through here. Returns how many columns it takes: two
 * for an East Asian wide character, none for what is drawn onto another (display_width.h). */
size_t ms_text_put(FILE *out, const char *text);
/** As ms_text_put(), but filled up with blanks to so many columns. */
void ms_text_column(FILE *out, const char *text, size_t columns);
/** As ms_text_column(), but for the first column of a table, in which a longer text gets a line of its own:
 * what follows goes on below it, `indent` blanks and the column from the left. */
void ms_text_row_name(FILE *out, const char *text, size_t indent, size_t columns);
/** As ms_text_put(), but in at most so many columns: a longer text ends in "...". Returns how many were
 * used. */
size_t ms_text_cut(FILE *out, const char *text, size_t columns);
/** The word of the screens for a key of the report that has another: "allocated" of live, "pending" of the
 * pending list; else the key itself. docs/internals/glossary.md has them. */
const char *ms_text_word(const char *key);

/** `wrapped` writes to the terminal that standard output is. */
void ms_text_set_terminal(FILE *wrapped);
/** Its descriptor, or what ms_text_set_terminal() said of it. */
int ms_text_fd(FILE *out);
/** How many columns `out` has: a terminal's own, else what COLUMNS says, else 80; 40 to 1000. */
size_t ms_text_width(FILE *out);
/** True if what is printed is read in UTF-8, by LC_ALL, LC_CTYPE or LANG. */
bool ms_text_is_utf8(void);
/** A JSON value with jansson's `flags`, those characters spelled \uXXXX. 0, or -1. */
int ms_text_json(FILE *out, const json_t *value, size_t flags);

/** A path as ms_text_put, without the current directory where it lies in that. */
void ms_text_put_path(FILE *out, const char *path);

/** As ms_text_put_path(), but of a file with code in it: of an installed package the part behind
 * site-packages/, unless all frames are shown. */
void ms_text_put_code_path(FILE *out, const char *path);

/** One frame without newline: "function at file:line", "function (libfoo.so+0x1f)" or "libfoo.so+0x1f"; of
 * Python "function (file:line)"; of a mark what it says, in brackets. */
void ms_text_frame(FILE *out, const struct ms_report *report, const json_t *frame);
/** The name of a frame alone: the function, or of native code without a name "libfoo.so+0x1f". */
void ms_text_frame_name(FILE *out, const struct ms_report *report, const json_t *frame);
/** From now on every frame is shown, names of C++ with their template arguments, and paths whole. */
void ms_text_show_all_frames(void);
/** A stack, one frame a line behind `indent`, innermost first, at most `max` lines and one that says how many
 * more. Frames are folded as fold.h says, and what the C library runs below main and below a thread's
 * function is left out. */
void ms_text_stack(FILE *out, const struct ms_report *report, json_int_t stack, const char *indent,
                   size_t max);

/** As ms_text_stack(), but without the first line if ms_text_put_own() has just said it. */
void ms_text_callers(FILE *out, const struct ms_report *report, json_int_t stack, const char *indent,
                     size_t max);

/** A path of code as ms_text_put_code_path; of the program itself as the user typed it. */
void ms_text_put_program(FILE *out, const struct ms_report *report, const char *path);
/** ", by " and the library that asked, where the program's own line lies elsewhere; not one that only hands
 * calls on, as libffi. */
void ms_text_put_library(FILE *out, const struct ms_report *report, json_int_t stack);

/** ", in " and the program's own line in a stack (fold.h), with its callers; nothing without a stack. */
void ms_text_put_own(FILE *out, const struct ms_report *report, json_int_t stack);

/** " <- " and who called it, where several sites have that line in common (callers.h). */
void ms_text_put_callers(FILE *out, const struct ms_report *report, json_int_t stack);

/** The path of the innermost frame's module, or "" if the stack is not known. */
const char *ms_text_stack_module(const struct ms_report *report, json_int_t stack);

#endif
