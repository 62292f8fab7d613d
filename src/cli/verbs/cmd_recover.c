/* cmd_recover.c - memshim recover: the report of a process that could not write one, or has not yet.
 *
 * Floor 5. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/live/ledgers.h"

struct recover_options {
    struct ms_cli_printing printing;
    char **paths; /* of the ledgers */
    size_t count;
    int status;
};

static int recover_take(void *arg, int id, const char *value)
{
    struct recover_options *options = arg;

    return ms_cli_take_printing(&options->printing, id, value) ? 0 : -1;
}

static void recover_collect(void *arg, const char *path)
{
    struct recover_options *options = arg;
    char **grown = realloc(options->paths, (options->count + 1) * sizeof(*grown));

    if (grown)
        options->paths = grown;
    if (grown && (grown[options->count] = strdup(path)))
        options->count++;
}

static bool recover_is_number(const char *text)
{
    return *text && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text);
}

/* The ledgers that the operand stands for. Returns an exit status. */
static int recover_find(const char *operand, struct recover_options *options)
{
    struct stat st;

    if (stat(operand, &st) == 0) {
        if (!S_ISDIR(st.st_mode)) {
            if (ms_ledgers_step_down(operand) < 0)
                return MS_EXIT_USAGE;
            recover_collect(options, operand);
        } else if (!ms_ledgers_in(operand, recover_collect, options))
            ms_cli_error("there is no ledger of yours (memshim-*.ledger) in %s%s", operand,
                         ms_ledgers_others());
    } else if (recover_is_number(operand)) {
        if (!ms_ledgers_anywhere(atoi(operand), recover_collect, options))
            ms_cli_error("process %s has no ledger of yours in %s%s", operand, ms_ledgers_places(),
                         ms_ledgers_others());
    } else {
        ms_cli_error("cannot read %s: %s", operand, strerror(errno));
    }
    ms_ledgers_say_others();
    return options->count ? MS_EXIT_OK : MS_EXIT_USAGE;
}

static const char *recover_describe(const struct ms_cli_ledger *ledger)
{
    switch (ledger->reason) {
    case MS_END_RUNNING:
        return ledger->alive == MS_ALIVE_YES ? "still runs" : "may still run";
    case MS_END_EXIT:
        return "left without the normal end";
    case MS_END_EXEC:
        return "was replaced by another program";
    default:
        return "was killed";
    }
}

/* The name beside a ledger was not the user's to choose: nothing but a regular file is made or replaced
 * there. */
static FILE *open_beside(const char *path, const struct recover_options *options, char *output, size_t bytes)
{
    if ((size_t)snprintf(output, bytes, "%s.json", path) >= bytes) {
        ms_cli_error("%s.json: %s", path, strerror(ENAMETOOLONG));
        return NULL;
    }
    return ms_cli_open_placed(output, ms_file_mode(),
                              options->printing.force ? MS_FILE_REPLACE : MS_FILE_NEW);
}

static int recover(const char *path, const struct recover_options *options)
{
    const char *output = options->printing.output;
    struct ms_cli_ledger ledger;
    char beside[PATH_MAX];
    int status;
    FILE *out;

    if (ms_ledgers_open(path, &ledger) < 0)
        return MS_EXIT_USAGE;
    out = output ? ms_cli_open_output(output, options->printing.force)
                 : open_beside(path, options, beside, sizeof(beside));
    output = output ? output : beside;
    status = out ? ms_ledgers_write(&ledger, out, output) : MS_EXIT_USAGE;
    if (status == MS_EXIT_OK) {
        ms_cli_note("process %d %s; report: %s", (int)ms_process()->pid, recover_describe(&ledger),
                    strcmp(output, "-") ? output : "standard output");
        if (!ledger.own)
            ms_cli_note("%s is another user's: it stays, and so does its trace", path);
        if (!ms_ledgers_complete_trace(&ledger))
            ms_cli_note("%s is kept, to be recovered again when there is room", path);
        else if (ledger.alive == MS_ALIVE_NO)
            ms_ledgers_remove(&ledger);
    }
    ms_ledgers_close(&ledger);
    return status;
}

int ms_cmd_recover(int argc, char **argv)
{
    struct recover_options options = {0};
    int first = ms_cli_parse(argc, argv, false, recover_take, &options), status;
    size_t i;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 1) {
        ms_cli_error("takes one ledger, directory or process, got %d; usage: memshim recover [OPTION...] "
                     "LEDGER|DIR|PID",
                     argc - first);
        return MS_EXIT_USAGE;
    }
    ms_options_load(environ, NULL, NULL);
    status = recover_find(argv[first], &options);
    if (status == MS_EXIT_OK && options.printing.output && options.count > 1) {
        ms_cli_error("%zu ledgers do not go into one file; name one of them, or leave out -o", options.count);
        status = MS_EXIT_USAGE;
    } else {
        for (i = 0; i < options.count; i++) {
            int one = recover(options.paths[i], &options);
            status = status == MS_EXIT_OK ? one : status;
        }
    }
    for (i = 0; i < options.count; i++)
        free(options.paths[i]);
    free(options.paths);
    return status;
}
