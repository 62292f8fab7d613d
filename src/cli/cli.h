/* cli.h - what the verbs of the memshim command share: the table of verbs, option parsing, output and errors.
 *
 * Floor 5. Single threaded; memory is malloc's; nothing here runs inside a host process. Figures go to
 * standard output, everything said about them to standard error, one line each. */
#ifndef MS_CLI_CLI_H
#define MS_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/files.h"

/** Exit statuses; `run` otherwise ends with the program's own, or 128 + n if signal n ended it. */
enum ms_exit {
    MS_EXIT_OK = 0,
    MS_EXIT_CONDITION = 1, /* a checked condition does not hold */
    MS_EXIT_USAGE = 2,     /* wrong usage or unreadable input */
    MS_EXIT_LEAKED = 23,   /* --fail-on-leak, unless --error-exitcode says otherwise */
    MS_EXIT_FAILED = 125,  /* run: memshim itself failed */
    MS_EXIT_NOT_EXECUTABLE = 126,
    MS_EXIT_NOT_FOUND = 127
};

/** One option of a verb: a row MS_FLAG of cmds.def. */
struct ms_flag {
    const char *verb;
    int id;
    const char *letter; /* "" for none */
    const char *name;
    const char *argument; /* "" for none, "[=X]" where it may be left out */
    const char *text;
};

/** One verb: a row MS_VERB of cmds.def. `run` gets argv[0] == the verb and returns the exit status. */
struct ms_verb {
    const char *name;
    const char *usage;
    const char *text;
    int (*run)(int argc, char **argv);
};

/* Both end with a row whose name is NULL. */
extern const struct ms_verb ms_verbs[];
extern const struct ms_flag ms_flags[];
/* The text before a verb's name: "memshim ", or "memshim-" where it is a program of its own. */
extern const char ms_cli_prefix[];

const struct ms_verb *ms_verb_find(const char *name);

/** Called for each option that was given; `value` is NULL for an option without argument. Returns 0, or -1
 * after an error line. */
typedef int (*ms_flag_func_t)(void *arg, int id, const char *value);

/** Parse the options of the verb argv[0] by its rows; stops at the first operand if `in_order`, else operands
 * may stand between.
 *
 * Returns the index of the first operand, or -1 after one line on stderr, or -2 when --help was given and
 * answered. */
int ms_cli_parse(int argc, char **argv, bool in_order, ms_flag_func_t take, void *arg);
/** The exit status that belongs to a negative ms_cli_parse(). */
int ms_cli_parse_status(int parsed);
/** The verb's usage and options, on `out`. */
void ms_cli_print_help(FILE *out, const struct ms_verb *verb);

/** The options of most verbs that print: --json, --force and --output; --all-frames is handed on to the
 * text. */
struct ms_cli_printing {
    bool json, force;
    const char *output; /* NULL: standard output */
};
/** True if the option with this id is one of them; then it is taken. */
bool ms_cli_take_printing(struct ms_cli_printing *printing, int id, const char *value);

/** The layer of a report that a verb shows, and that its option --layer says: tensors where a framework
 * reported any, if nothing else is said. Verbs without the option show blocks. */
enum ms_cli_layer { MS_CLI_BLOCKS, MS_CLI_TENSORS, MS_CLI_TENSORS_IF_ANY };
extern enum ms_cli_layer ms_cli_layer;
enum { MS_CLI_LAYER_FLAG = 'Y' };

/** "memshim VERB: text" on stderr, one line. */
void ms_cli_error(const char *format, ...) MS_PRINTF(1, 2);
/** "memshim: text" on stderr, one line: something to know that is no error. */
void ms_cli_note(const char *format, ...) MS_PRINTF(1, 2);

/** A size (base/size.h); -1 after an error line that names `what`. */
int ms_cli_size(const char *what, const char *text, uint64_t *bytes_p);
/** A whole number in min..max; -1 after an error line that names `what`. */
int ms_cli_number(const char *what, const char *text, long min, long max, long *value_p);

/** The output of a verb: standard output for NULL or "-", else a new file with the permissions of
 * MEMSHIM_READERS; an existing one is replaced only with `force`. A character device (/dev/null) is written
 * to; a link, a pipe and whatever else is no regular file is neither followed nor replaced. NULL after an
 * error line. A file appears under its name only when ms_cli_close_output() succeeds. */
FILE *ms_cli_open_output(const char *path, bool force);
/** As ms_cli_open_output(), but for a file alone, with these permissions and that manner of finding its
 * place. */
FILE *ms_cli_open_placed(const char *path, mode_t mode, enum ms_file_place place);
/** Flush and check; 0, or MS_EXIT_USAGE after an error line (a full disk, a closed pipe). */
int ms_cli_close_output(FILE *out);
/** Give up: nothing appears under the name. */
void ms_cli_discard_output(FILE *out);

#define MS_VERB(name, function, usage, text) int function(int argc, char **argv);
#define MS_FLAG(verb, id, letter, name, argument, text)
#include "cli/cmds.def"
#undef MS_VERB
#undef MS_FLAG

#endif
