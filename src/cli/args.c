/* args.c - option parsing by the rows of cmds.def, and the one-line errors of the command.
 *
 * Floor 5. The verb in progress is remembered, so that every line says which verb speaks. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cli/cli.h"
#include "cli/nearest.h"
#include "report/text/text.h"

#define FLAGS_MAX 24
#define LONG_BASE 0x100 /* getopt's value of row i is LONG_BASE + i, whichever spelling was used */

static const char *current_verb;
enum ms_cli_layer ms_cli_layer;

/* One line, whatever is in it: names of files and words of reports come from others. */
static void args_say(const char *verb, const char *format, va_list args)
{
    char *line = NULL;

    fflush(stdout);
    fprintf(stderr, "%s%s: ", verb ? ms_cli_prefix : "memshim", verb ? verb : "");
    if (vasprintf(&line, format, args) >= 0)
        ms_text_put(stderr, line);
    fputc('\n', stderr);
    free(line);
}

void ms_cli_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    args_say(current_verb, format, args);
    va_end(args);
}

void ms_cli_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    args_say(NULL, format, args);
    va_end(args);
}

static const struct ms_flag *first_flag(const char *verb)
{
    const struct ms_flag *flag = ms_flags;

    while (flag->verb && strcmp(flag->verb, verb))
        flag++;
    return flag;
}

static bool belongs(const struct ms_flag *flag, const char *verb)
{
    return flag->verb && !strcmp(flag->verb, verb);
}

/* "-o, --output FILE" as help and errors spell it. */
static void spell(const struct ms_flag *flag, char *text, size_t bytes)
{
    const char *space = flag->argument[0] && flag->argument[0] != '[' ? " " : "";

    if (flag->letter[0])
        snprintf(text, bytes, "-%s, --%s%s%s", flag->letter, flag->name, space, flag->argument);
    else
        snprintf(text, bytes, "--%s%s%s", flag->name, space, flag->argument);
}

void ms_cli_print_help(FILE *out, const struct ms_verb *verb)
{
    const struct ms_flag *flag;
    char left[64];

    fprintf(out, "usage: %s%s %s\n%s\n\n", ms_cli_prefix, verb->name, verb->usage, verb->text);
    for (flag = first_flag(verb->name); belongs(flag, verb->name); flag++) {
        spell(flag, left, sizeof(left));
        fprintf(out, "  %-24s %s\n", left, flag->text);
    }
    fprintf(out, "  %-24s %s\n", "-h, --help", "print this");
}

struct parser {
    struct option longs[FLAGS_MAX + 2];
    char shorts[2 * FLAGS_MAX + 4];
    const struct ms_flag *first;
};

static void parser_init(struct parser *parser, const char *verb, bool in_order)
{
    char *s = parser->shorts;
    int i;

    memset(parser, 0, sizeof(*parser));
    parser->first = first_flag(verb);
    if (in_order)
        *s++ = '+';
    *s++ = ':';
    *s++ = 'h';
    for (i = 0; i < FLAGS_MAX && belongs(parser->first + i, verb); i++) {
        const struct ms_flag *flag = parser->first + i;
        int has = !flag->argument[0]         ? no_argument
                  : flag->argument[0] == '[' ? optional_argument
                                             : required_argument;

        parser->longs[i] = (struct option){flag->name, has, NULL, LONG_BASE + i};
        if (flag->letter[0]) {
            *s++ = flag->letter[0];
            if (has == required_argument)
                *s++ = ':';
        }
    }
    parser->longs[i] = (struct option){"help", no_argument, NULL, 'h'};
}

static const struct ms_flag *flag_of(const struct parser *parser, int value, const char *verb)
{
    const struct ms_flag *flag;

    if (value >= LONG_BASE)
        return parser->first + (value - LONG_BASE);
    for (flag = parser->first; belongs(flag, verb); flag++)
        if (flag->letter[0] == value)
            return flag;
    return NULL;
}

/* An option that the verb does not have, and the one that may have been meant. getopt takes the start of a
 * name for the name; one that is the start of several is not near to one of them alone. */
static void args_refuse(const char *name, const char *verb)
{
    char typed[64];
    struct ms_nearest nearest = {.typed = typed};
    const struct ms_flag *flag;

    snprintf(typed, sizeof(typed), "%s", name + strspn(name, "-"));
    typed[strcspn(typed, "=")] = '\0';
    for (flag = first_flag(verb); belongs(flag, verb); flag++)
        ms_nearest_find(&nearest, flag->name);
    ms_nearest_find(&nearest, "help");
    if (nearest.word && !strncmp(name, "--", 2))
        ms_cli_error("unknown option '%s': did you mean --%s?", name, nearest.word);
    else
        ms_cli_error("unknown option '%s'; %s%s --help lists them", name, ms_cli_prefix, verb);
}

/* getopt left the offender in optopt (a letter, or the value of a known long option) or in the last word it
 * looked at. */
static int args_complain(const struct parser *parser, int value, char **argv)
{
    const struct ms_flag *flag = optopt ? flag_of(parser, optopt, argv[0]) : NULL;
    char name[64];

    if (flag)
        snprintf(name, sizeof(name), "--%s", flag->name);
    else if (optopt && optopt < LONG_BASE && isprint(optopt))
        snprintf(name, sizeof(name), "-%c", optopt);
    else
        snprintf(name, sizeof(name), "%s", argv[optind - 1]);
    if (value == ':')
        ms_cli_error("option '%s' needs an argument%s%s", name, flag ? ": " : "", flag ? flag->argument : "");
    else if (flag)
        ms_cli_error("option '%s' takes no argument", name);
    else
        args_refuse(name, argv[0]);
    return -1;
}

/* Returns 0, or -1 after an error line. */
static int args_take_layer(const char *text)
{
    bool is_tensors = !strcmp(text, "tensors");

    if (!is_tensors && strcmp(text, "blocks") != 0) {
        ms_cli_error("--layer '%s' is not allowed: tensors or blocks", text);
        return -1;
    }
    ms_cli_layer = is_tensors ? MS_CLI_TENSORS : MS_CLI_BLOCKS;
    return 0;
}

static bool args_has(const char *verb, int id)
{
    const struct ms_flag *flag;

    for (flag = first_flag(verb); belongs(flag, verb) && flag->id != id; flag++)
        ;
    return belongs(flag, verb);
}

int ms_cli_parse(int argc, char **argv, bool in_order, ms_flag_func_t take, void *arg)
{
    struct parser parser;
    const struct ms_flag *flag;
    int value;

    current_verb = argv[0];
    parser_init(&parser, argv[0], in_order);
    ms_cli_layer = args_has(argv[0], MS_CLI_LAYER_FLAG) ? MS_CLI_TENSORS_IF_ANY : MS_CLI_BLOCKS;
    opterr = 0;
    while ((value = getopt_long(argc, argv, parser.shorts, parser.longs, NULL)) != -1) {
        if (value == 'h' && !flag_of(&parser, 'h', argv[0])) {
            ms_cli_print_help(stdout, ms_verb_find(argv[0]));
            return -2;
        }
        if (value == '?' || value == ':')
            return args_complain(&parser, value, argv);
        flag = flag_of(&parser, value, argv[0]);
        if (flag->id == MS_CLI_LAYER_FLAG ? args_take_layer(optarg) < 0 : take(arg, flag->id, optarg) < 0)
            return -1;
    }
    return optind;
}

int ms_cli_parse_status(int parsed)
{
    return parsed == -2 ? MS_EXIT_OK : MS_EXIT_USAGE;
}

int ms_cli_size(const char *what, const char *text, uint64_t *bytes_p)
{
    const char *end = text;

    if (ms_size_read(&end, bytes_p) && !*end)
        return 0;
    ms_cli_error("%s '%s' is not " MS_SIZE_ALLOWED, what, text);
    return -1;
}

int ms_cli_number(const char *what, const char *text, long min, long max, long *value_p)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < min || value > max) {
        ms_cli_error("%s '%s' is not allowed: a whole number from %ld to %ld", what, text, min, max);
        return -1;
    }
    *value_p = value;
    return 0;
}
