/* text.c - how figures, frames and stacks are spelled for people; see text.h.
 *
 * Floor 4, command line only. */
#include "report/text/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/size.h"
#include "report/analyse/callers.h"
#include "report/analyse/fold.h"
#include "report/text/utf8.h"
#include "report/text/display_width.h"

/* --all-frames. */
static bool all_frames;

void ms_text_show_all_frames(void)
{
    all_frames = true;
}

struct ms_text_number ms_text_size(json_int_t bytes)
{
    struct ms_text_number number = {"-"};
    uint64_t size = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;

    ms_size_write(size, number.text + (bytes < 0), sizeof(number.text) - 1);
    return number;
}

const char *ms_text_word(const char *key)
{
    static const char *const words[][2] = {
        {"live", "allocated"},  {"requested", "allocated"}, {"limbo", "pending"},
        {"cached", "inactive"}, {"stranded", "fragmented"}, {"pinned", "shared"},
    };

    for (size_t i = 0; i < MS_ARRAY_LEN(words); i++)
        if (!strcmp(words[i][0], key))
            return words[i][1];
    return key;
}

struct ms_text_number ms_text_duration(json_int_t ns)
{
    struct ms_text_number number;
    double value = (double)ns;

    if (ns < 1000)
        snprintf(number.text, sizeof(number.text), "%" JSON_INTEGER_FORMAT " ns", ns);
    else if (value < 999950)
        snprintf(number.text, sizeof(number.text), "%.1f us", value / 1e3);
    else if (value < 999.95e6)
        snprintf(number.text, sizeof(number.text), "%.1f ms", value / 1e6);
    else if (value < 599.95e9)
        snprintf(number.text, sizeof(number.text), "%.1f s", value / 1e9);
    else
        snprintf(number.text, sizeof(number.text), "%ld h %02ld min", (long)(value / 3600e9),
                 (long)(value / 60e9) % 60);
    return number;
}

static FILE *terminal;

void ms_text_set_terminal(FILE *wrapped)
{
    terminal = wrapped;
}

int ms_text_fd(FILE *out)
{
    return out && out == terminal ? STDOUT_FILENO : fileno(out);
}

bool ms_text_bold(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(ms_text_fd(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}

void ms_text_heading(FILE *out, const char *text)
{
    bool bold = ms_text_bold(out);

    fprintf(out, "\n%s%s%s\n", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

/* How many bytes at `text` are one character that a terminal takes for text; 0 if it would take them for a
 * command, for nothing that is seen, or for nothing it knows. */
static size_t plain_bytes(const char *text)
{
    size_t length = ms_utf8_bytes(text);

    return length && !ms_utf8_is_control(ms_utf8_character(text, length)) ? length : 0;
}

/* A character of a text: its bytes, never 0, how many of them a terminal gets (else a question mark), and how
 * many columns that takes. */
struct character {
    size_t bytes, plain, columns;
};

static struct character character_at(const char *text)
{
    size_t bytes = ms_utf8_bytes(text), plain = plain_bytes(text);

    return (struct character){bytes ? bytes : 1, plain,
                              plain ? ms_wide_columns(ms_utf8_character(text, bytes)) : 1};
}

static void put_character(FILE *out, const char *text, const struct character *character)
{
    if (character->plain)
        fwrite(text, 1, character->plain, out);
    else
        fputc('?', out);
}

size_t ms_text_put(FILE *out, const char *text)
{
    size_t columns = 0;

    while (*text) {
        struct character character = character_at(text);

        put_character(out, text, &character);
        columns += character.columns;
        text += character.bytes;
    }
    return columns;
}

void ms_text_column(FILE *out, const char *text, size_t columns)
{
    size_t used = ms_text_put(out, text);

    if (used < columns)
        fprintf(out, "%*s", (int)(columns - used), "");
}

void ms_text_row_name(FILE *out, const char *text, size_t indent, size_t columns)
{
    size_t used = ms_text_put(out, text);

    if (used > columns)
        fprintf(out, "\n%*s", (int)(indent + columns), "");
    else
        fprintf(out, "%*s", (int)(columns - used), "");
}

size_t ms_text_cut(FILE *out, const char *text, size_t columns)
{
    const char *at = text, *cut = NULL;
    size_t count = 0, kept = columns > 3 ? columns - 3 : columns, used = 0;

    while (*at && count <= columns) {
        struct character character = character_at(at);

        if (!cut && count + character.columns > kept) {
            cut = at;
            used = count;
        }
        count += character.columns;
        at += character.bytes;
    }
    if (count <= columns)
        return ms_text_put(out, text);
    while (text < cut) {
        struct character character = character_at(text);

        put_character(out, text, &character);
        text += character.bytes;
    }
    fputs(columns > 3 ? "..." : "", out);
    return used + (columns > 3 ? 3 : 0);
}

size_t ms_text_width(FILE *out)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    long width = 80;

    if (isatty(ms_text_fd(out)) && ioctl(ms_text_fd(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
        width = size.ws_col;
    else if (columns && strtol(columns, NULL, 10) > 0)
        width = strtol(columns, NULL, 10);
    return width < 40 ? 40 : width > 1000 ? 1000 : (size_t)width;
}

bool ms_text_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < MS_ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* Inside a string, where alone such characters can be, JSON has a spelling for them; its own line ends and
 * tabs lie between strings. */
static int put_json(const char *bytes, size_t count, void *arg)
{
    FILE *out = arg;
    size_t i, length;

    for (i = 0; i < count; i += length) {
        char sequence[5] = "";
        uint32_t character;

        memcpy(sequence, bytes + i, count - i < 4 ? count - i : 4);
        length = ms_utf8_bytes(sequence);
        character = length && (unsigned char)bytes[i] >= 0x7f ? ms_utf8_character(sequence, length) : 0;
        length = length ? length : 1;
        if (!ms_utf8_is_control(character) || !character)
            fwrite(bytes + i, 1, length, out);
        else if (character < 0x10000)
            fprintf(out, "\\u%04x", (unsigned)character);
        else
            fprintf(out, "\\u%04x\\u%04x", 0xd800 + (unsigned)((character - 0x10000) >> 10),
                    0xdc00 + (unsigned)((character - 0x10000) & 0x3ff));
    }
    return ferror(out) ? -1 : 0;
}

int ms_text_json(FILE *out, const json_t *value, size_t flags)
{
    return json_dump_callback(value, put_json, out, flags);
}

/* The directory in which the command was started, or "". Kept: the command changes no directory while it
 * prints. */
static const char *here(void)
{
    static char directory[PATH_MAX];

    if (!directory[0] && !getcwd(directory, sizeof(directory)))
        directory[0] = '\0';
    return directory;
}

void ms_text_put_path(FILE *out, const char *path)
{
    size_t length = strlen(here());

    if (length > 1 && strncmp(path, here(), length) == 0 && path[length] == '/' && path[length + 1])
        path += length + 1;
    ms_text_put(out, path);
}

void ms_text_put_code_path(FILE *out, const char *path)
{
    static const char *const places[] = {"/site-packages/", "/dist-packages/"};

    for (size_t i = 0; !all_frames && i < MS_ARRAY_LEN(places); i++) {
        const char *found = strstr(path, places[i]);

        if (found && found[strlen(places[i])]) {
            ms_text_put(out, found + strlen(places[i]));
            return;
        }
    }
    ms_text_put_path(out, path);
}

static const char *text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* "libfoo.so+0x1f", or what little is known. */
static void text_put_place(FILE *out, const struct ms_report *report, const json_t *frame)
{
    json_t *module = json_object_get(frame, "module");
    json_t *row = json_is_integer(module) ? ms_report_module(report, json_integer_value(module)) : NULL;
    const char *path = ms_report_text(row, "path");
    const char *rel_pc = ms_report_text(frame, "rel_pc");

    ms_text_put(out, *path ? text_base_name(path) : "?");
    if (*rel_pc) {
        fputc('+', out);
        ms_text_put(out, rel_pc);
    }
}

/* Brackets in names of Python are no template arguments. */
static void put_function(FILE *out, const json_t *frame)
{
    const char *function = ms_report_text(frame, "function");

    if (all_frames || !strcmp(ms_report_text(frame, "kind"), "python"))
        ms_text_put(out, function);
    else
        ms_fold_put_name(out, function);
}

/* "function (file:line)", as Python's programmers know it. */
static void put_python(FILE *out, const json_t *frame)
{
    const char *file = ms_report_text(frame, "file"), *function = ms_report_text(frame, "function");
    json_int_t line = ms_report_int(frame, "line");

    ms_text_put(out, *function ? function : "?");
    fputs(" (", out);
    if (*file)
        ms_text_put_code_path(out, file);
    else
        fputs("Python", out);
    if (*file && line > 0)
        fprintf(out, ":%" JSON_INTEGER_FORMAT, line);
    fputc(')', out);
}

/* The text of a mark, which holds of the frames below it. */
static void put_mark(FILE *out, const json_t *frame)
{
    static const struct {
        const char *mark, *text;
    } marks[] = {{"apart", "[Python frames of the same moment, not paired with those above]"},
                 {"inferred", "[no Python in this thread: the process's latest]"},
                 {"unsure", "[Python frames that could not be read]"},
                 {"thread", "[thread "},
                 {"communicator", "[communicator "}};
    const char *mark = ms_report_text(frame, "mark");
    size_t i = 0;

    while (i < sizeof(marks) / sizeof(marks[0]) && strcmp(marks[i].mark, mark))
        i++;
    if (i == sizeof(marks) / sizeof(marks[0])) {
        fputs("[?]", out);
        return;
    }
    fputs(marks[i].text, out);
    if (!strcmp(mark, "thread") || !strcmp(mark, "communicator")) {
        ms_text_put(out, ms_report_text(frame, "name"));
        fputc(']', out);
    }
}

void ms_text_frame(FILE *out, const struct ms_report *report, const json_t *frame)
{
    const char *function = ms_report_text(frame, "function");
    const char *file = ms_report_text(frame, "file");
    const char *kind = ms_report_text(frame, "kind");

    if (!strcmp(kind, "python")) {
        put_python(out, frame);
        return;
    }
    if (!strcmp(kind, "mark")) {
        put_mark(out, frame);
        return;
    }
    put_function(out, frame);
    if (*file) {
        fputs(*function ? " at " : "at ", out);
        ms_text_put_code_path(out, file);
        if (ms_report_int(frame, "line") > 0)
            fprintf(out, ":%" JSON_INTEGER_FORMAT, ms_report_int(frame, "line"));
    } else if (*function) {
        fputs(" (", out);
        text_put_place(out, report, frame);
        fputc(')', out);
    } else {
        text_put_place(out, report, frame);
    }
    if (ms_report_bool(frame, "inlined"))
        fputs(" [inlined]", out);
}

void ms_text_frame_name(FILE *out, const struct ms_report *report, const json_t *frame)
{
    if (!strcmp(ms_report_text(frame, "kind"), "mark"))
        put_mark(out, frame);
    else if (*ms_report_text(frame, "function"))
        put_function(out, frame);
    else
        text_put_place(out, report, frame);
}

/* A line of a stack: one frame, or a run of frames that are somebody's. */
struct line {
    const json_t *frame; /* of a run the one by which it was entered */
    const char *whose;   /* NULL for a frame by itself */
    size_t count;
};

/* Of a run the outermost frame, but for the closures that decorators put around functions: what was called is
 * what stands within. */
static const json_t *entry(const json_t *outer, const json_t *inner)
{
    const char *function = ms_report_text(outer, "function");

    return strstr(function, ".<locals>.") && *ms_report_text(inner, "function") ? inner : outer;
}

/* The lines of a stack, as many as frames at most. A run goes on over frames that are folded without a word;
 * if nothing were left, nothing is folded. */
static size_t fold(const struct ms_report *report, json_t *const *frames, size_t count, struct line *lines)
{
    bool merged = ms_fold_is_merged(frames, count);
    size_t line_count = 0, i;

    for (i = 0; i < count; i++) {
        const char *whose = all_frames ? NULL : ms_fold_whose(report, frames[i], merged);
        struct line *last = line_count ? &lines[line_count - 1] : NULL;

        if (whose && !*whose)
            continue;
        if (whose && last && last->whose && !strcmp(last->whose, whose))
            *last = (struct line){entry(frames[i], last->frame), whose, last->count + 1};
        else
            lines[line_count++] = (struct line){frames[i], whose, 1};
    }
    for (i = 0; !line_count && i < count; i++)
        lines[i] = (struct line){frames[i], NULL, 1};
    return line_count ? line_count : count;
}

static void text_put_line(FILE *out, const struct ms_report *report, const struct line *line,
                          const char *indent)
{
    const char *function = ms_report_text(line->frame, "function");

    fputs(indent, out);
    if (!line->whose || line->count == 1) {
        ms_text_frame(out, report, line->frame);
    } else {
        fprintf(out, "[%zu frames of %s", line->count, line->whose);
        if (*function) {
            fputs(", entered by ", out);
            if (!strcmp(ms_report_text(line->frame, "kind"), "python"))
                ms_text_put(out, function);
            else
                ms_fold_put_function(out, function);
        }
        fputc(']', out);
    }
    fputc('\n', out);
}

/* True if it is the program's own line, which ms_text_put_own() has said. */
static bool is_said(const struct ms_report *report, json_int_t stack, const struct line *line)
{
    bool inferred;

    return !all_frames && !line->whose && line->frame == ms_fold_own(report, stack, &inferred) && !inferred;
}

static void text_put_stack(FILE *out, const struct ms_report *report, json_int_t stack, const char *indent,
                           size_t max, bool own_said)
{
    json_t *frames[MS_REPORT_DEPTH_MAX];
    struct line lines[MS_REPORT_DEPTH_MAX];
    size_t count = ms_report_stack(report, stack, frames, MS_REPORT_DEPTH_MAX), line_count, i;

    while (!all_frames && count > 1 && ms_fold_is_startup(frames[count - 1]))
        count--;
    if (!count)
        fprintf(out, "%s(no stack)\n", indent);
    line_count = fold(report, frames, count, lines);
    i = own_said && line_count && is_said(report, stack, &lines[0]);
    for (; i < line_count && i < max; i++)
        text_put_line(out, report, &lines[i], indent);
    if (line_count > max)
        fprintf(out, "%s... %zu more\n", indent, line_count - max);
}

void ms_text_stack(FILE *out, const struct ms_report *report, json_int_t stack, const char *indent,
                   size_t max)
{
    text_put_stack(out, report, stack, indent, max, false);
}

void ms_text_callers(FILE *out, const struct ms_report *report, json_int_t stack, const char *indent,
                     size_t max)
{
    text_put_stack(out, report, stack, indent, max, true);
}

void ms_text_put_own(FILE *out, const struct ms_report *report, json_int_t stack)
{
    bool inferred;
    const json_t *frame = ms_fold_own(report, stack, &inferred);

    if (!frame)
        return;
    fputs(", in ", out);
    ms_text_frame(out, report, frame);
    if (inferred)
        fputs(" (inferred)", out);
    ms_text_put_callers(out, report, stack);
}

void ms_text_put_callers(FILE *out, const struct ms_report *report, json_int_t stack)
{
    const json_t *callers[MS_CALLERS_MAX];
    size_t count = ms_callers_of(report, stack, callers);

    for (size_t i = 0; i < count; i++) {
        fputs(" <- ", out);
        ms_text_frame(out, report, callers[i]);
    }
}

/* A library that only hands calls on between two languages. */
static bool is_bridge(const struct ms_report *report, const json_t *frame)
{
    const char *whose = ms_fold_whose(report, frame, false);

    return whose && (!*whose || !strcmp(whose, "the interpreter"));
}

void ms_text_put_library(FILE *out, const struct ms_report *report, json_int_t stack)
{
    bool inferred;
    const json_t *own = ms_fold_own(report, stack, &inferred);
    json_t *frame, *module;

    if (!ms_report_stack(report, stack, &frame, 1))
        return;
    module = json_object_get(frame, "module");
    if (!json_is_integer(module) || (own && is_bridge(report, frame)) ||
        (own && json_equal(module, json_object_get(own, "module"))))
        return;
    fputs(", by ", out);
    ms_text_put_program(out, report, ms_text_stack_module(report, stack));
}

void ms_text_put_program(FILE *out, const struct ms_report *report, const char *path)
{
    const json_t *run = json_object_get(report->root, "run");
    const char *typed = json_string_value(json_array_get(json_object_get(run, "argv"), 0));

    if (typed && *typed && !strcmp(path, ms_report_text(run, "exe")))
        ms_text_put(out, typed);
    else
        ms_text_put_code_path(out, path);
}

const char *ms_text_stack_module(const struct ms_report *report, json_int_t stack)
{
    json_t *frame;

    if (!ms_report_stack(report, stack, &frame, 1) || !json_is_integer(json_object_get(frame, "module")))
        return "";
    return ms_report_text(ms_report_module(report, ms_report_int(frame, "module")), "path");
}
