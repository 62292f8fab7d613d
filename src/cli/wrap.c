/* wrap.c - lines of a screen, wrapped; see wrap.h.
 *
 * Floor 5. A word that is longer than the line stays whole: it is a path, to be copied. */
#include "cli/wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/array.h"
#include "report/text/text.h"
#include "report/text/utf8.h"
#include "report/text/display_width.h"

enum { HANGING = 4, HANGING_OF_LABEL = 6 };

static struct {
    FILE *terminal; /* what was stdout */
    char *line;     /* without its end so far */
    size_t used, room, columns;
    bool begun, as_it_is;
} wrap;

/* How many bytes at `text` are one thing on the screen; how many columns it takes. */
static size_t next(const char *text, size_t *columns_p)
{
    size_t bytes = 1;

    *columns_p = 0;
    if (*text == '\033') {
        while (text[bytes] && text[bytes] != 'm')
            bytes++;
        return text[bytes] ? bytes + 1 : bytes;
    }
    bytes = ms_utf8_bytes(text);
    *columns_p = bytes ? ms_wide_columns(ms_utf8_character(text, bytes)) : 1;
    return bytes ? bytes : 1;
}

/* How much of the text goes into so many columns: up to its last space there, or the whole first word. */
static size_t fitting(const char *text, size_t columns)
{
    size_t at = strspn(text, " "), used = at, space = 0;

    while (text[at]) {
        size_t wide, bytes = next(text + at, &wide);

        if (text[at] == ' ')
            space = at;
        if (used + wide > columns && space)
            return space;
        used += wide;
        at += bytes;
    }
    return at;
}

/* The column in which the rest of a line goes on: below what stands behind its first gap, as a text beside
 * its name. */
static size_t indent_of(const char *text)
{
    size_t begin = strspn(text, " "), at = begin, used = begin;

    while (text[at] && !(text[at] == ' ' && text[at + 1] == ' ')) {
        size_t wide;

        at += next(text + at, &wide);
        used += wide;
    }
    used += strspn(text + at, " ");
    if (text[at] && used <= wrap.columns / 2)
        return used;
    begin = begin ? begin + HANGING : HANGING_OF_LABEL;
    return begin > wrap.columns / 2 ? wrap.columns / 2 : begin;
}

static void wrap_put_line(const char *text)
{
    size_t columns = wrap.columns, done = fitting(text, columns), indent = indent_of(text);

    fwrite(text, 1, done, wrap.terminal);
    while (text[done += strspn(text + done, " ")]) {
        size_t more = fitting(text + done, columns - indent);

        fprintf(wrap.terminal, "\n%*s%.*s", (int)indent, "", (int)more, text + done);
        done += more;
    }
}

static int wrap_take(char byte)
{
    if (byte == '\n') {
        wrap_put_line(wrap.line ? wrap.line : "");
        wrap.used = 0;
        fputc('\n', wrap.terminal);
    } else {
        char *line = ms_array_grow(wrap.line, 1, wrap.used + 1, &wrap.room, 256);

        if (!line)
            return -1;
        wrap.line = line;
        wrap.line[wrap.used++] = byte;
    }
    if (wrap.line)
        wrap.line[wrap.used] = '\0';
    return 0;
}

static ssize_t take_all(void *unused, const char *bytes, size_t count)
{
    (void)unused;
    if (!wrap.begun && count)
        wrap.as_it_is = *bytes == '{' || *bytes == '[';
    wrap.begun = true;
    if (wrap.as_it_is)
        return (ssize_t)(fwrite(bytes, 1, count, wrap.terminal) == count && !fflush(wrap.terminal) ? count
                                                                                                   : 0);
    for (size_t i = 0; i < count; i++)
        if (wrap_take(bytes[i]) < 0)
            return 0;
    return fflush(wrap.terminal) ? 0 : (ssize_t)count;
}

void ms_wrap_screen(void)
{
    FILE *wrapped;

    if (!isatty(STDOUT_FILENO))
        return;
    wrap.columns = ms_text_width(stdout);
    wrapped = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take_all});
    if (!wrapped)
        return;
    wrap.terminal = stdout;
    ms_text_set_terminal(wrapped);
    stdout = wrapped;
}

void ms_wrap_end(void)
{
    if (wrap.used)
        wrap_put_line(wrap.line);
    wrap.used = 0;
    if (wrap.terminal)
        fflush(wrap.terminal);
}
