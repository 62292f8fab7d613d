/* cmd_help.c - memshim help: the verbs, or the options of one.
 *
 * Floor 5. */
#include "cli/cli.h"

static int help_take(void *arg, int id, const char *value)
{
    (void)arg, (void)id, (void)value;
    return 0;
}

static void print_verbs(void)
{
    const struct ms_verb *verb;

    printf("usage: memshim VERB [OPTION...] [FILE...]\n"
           "follow and report the GPU memory of an unmodified program\n\n");
    for (verb = ms_verbs; verb->name; verb++)
        printf("  %-12s %s\n", verb->name, verb->text);
    printf("\nmemshim help VERB prints the options of a verb; memshim env the variables.\n");
}

int ms_cmd_help(int argc, char **argv)
{
    int first = ms_cli_parse(argc, argv, false, help_take, NULL);
    const struct ms_verb *verb;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        print_verbs();
        return ms_cli_close_output(stdout);
    }
    verb = ms_verb_find(argv[first]);
    if (!verb) {
        ms_cli_error("unknown verb '%s'; memshim help lists them", argv[first]);
        return MS_EXIT_USAGE;
    }
    ms_cli_print_help(stdout, verb);
    return ms_cli_close_output(stdout);
}
