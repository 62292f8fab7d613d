/* main.c - the memshim command: finds the verb and hands over.
 *
 * Floor 5. Owns the tables made from cmds.def. */
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/coverage.h"
#include "cli/cli.h"
#include "cli/nearest.h"
#include "cli/wrap.h"

const char ms_cli_prefix[] = "memshim ";

const struct ms_verb ms_verbs[] = {
#define MS_VERB(name, function, usage, text) {#name, usage, text, function},
#define MS_FLAG(verb, id, letter, name, argument, text)
#include "cli/cmds.def"
#undef MS_VERB
#undef MS_FLAG
    {NULL, NULL, NULL, NULL},
};

const struct ms_flag ms_flags[] = {
#define MS_VERB(name, function, usage, text)
#define MS_FLAG(verb, id, letter, name, argument, text) {#verb, id, letter, name, argument, text},
#include "cli/cmds.def"
#undef MS_VERB
#undef MS_FLAG
    {NULL, 0, NULL, NULL, NULL, NULL},
};

const struct ms_verb *ms_verb_find(const char *name)
{
    const struct ms_verb *verb;

    for (verb = ms_verbs; verb->name; verb++)
        if (!strcmp(verb->name, name))
            return verb;
    return NULL;
}

/* An error line, with the verb that an unknown one may have been meant for. */
static void main_refuse(const char *name)
{
    struct ms_nearest nearest = {.typed = name};
    const struct ms_verb *verb;

    for (verb = ms_verbs; verb->name; verb++)
        ms_nearest_find(&nearest, verb->name);
    if (nearest.word)
        ms_cli_error("unknown verb '%s': did you mean %s?", name, nearest.word);
    else
        ms_cli_error("unknown verb '%s'; memshim help lists them, memshim run PROGRAM is where to begin",
                     name);
}

static void main_go_on(int number)
{
    (void)number;
}

#ifdef MS_COVERAGE
/* Ends as without a handler, and is counted: `memshim metrics` is ended so. */
static void main_counted_end(int number)
{
    ms_coverage_write();
    signal(number, SIG_DFL);
    raise(number);
}
#endif

/* A write at a limit on the size of files fails and is told, as any other that fails; a program that is run
 * is not to end for what is said of it. An exec takes a handler back. */
static void outlive_limits(void)
{
    struct sigaction is;

    if (sigaction(SIGXFSZ, NULL, &is) == 0 && is.sa_handler == SIG_DFL)
        signal(SIGXFSZ, main_go_on);
#ifdef MS_COVERAGE
    signal(SIGTERM, main_counted_end);
#endif
}

/* The verbs that print for people. The others write what programs read, or keep the terminal for themselves.
 */
static bool is_screen(const char *name)
{
    static const char *const screens[] = {"summary", "leaks",    "findings", "peak",   "owners",   "tree",
                                          "frag",    "contexts", "oom",      "phases", "timeline", "diff",
                                          "merge",   "check",    "doctor",   "env",    "help",     "clean"};

    for (size_t i = 0; i < MS_ARRAY_LEN(screens); i++)
        if (!strcmp(screens[i], name))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const struct ms_verb *verb;
    const char *name = argc > 1 ? argv[1] : NULL;

    outlive_limits();
    if (!name) {
        ms_cli_error("no verb given; memshim help lists them, memshim run PROGRAM is where to begin");
        return MS_EXIT_USAGE;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        argv[1] = (char *)"help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        argv[1] = (char *)"version";
    verb = ms_verb_find(argv[1]);
    if (!verb) {
        main_refuse(argv[1]);
        return MS_EXIT_USAGE;
    }
    if (is_screen(verb->name))
        ms_wrap_screen();
    return verb->run(argc - 1, argv + 1);
}
