/* cmd_metrics.c - memshim metrics: figures of the user's processes on this machine, for Prometheus.
 *
 * Floor 5. */
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/live/ledgers.h"
#include "cli/live/metrics.h"

struct metrics_options {
    struct ms_cli_printing printing;
    const char *textfile, *listen;
};

static int metrics_take(void *arg, int id, const char *value)
{
    struct metrics_options *options = arg;

    if (id == 'T')
        options->textfile = value;
    else if (id == 'L')
        options->listen = value;
    else
        return ms_cli_take_printing(&options->printing, id, value) ? 0 : -1;
    return 0;
}

static int write_file(const struct metrics_options *options)
{
    struct ms_metrics *metrics = ms_metrics_collect();
    FILE *out = metrics ? ms_cli_open_output(options->textfile, options->printing.force) : NULL;
    int status = MS_EXIT_USAGE;

    if (!metrics)
        ms_cli_error("no memory for the figures");
    if (out && ms_metrics_write(metrics, out, false) == 0) {
        status = ms_cli_close_output(out);
    } else if (out) {
        ms_cli_error("no memory for %s", options->textfile);
        ms_cli_discard_output(out);
    }
    ms_metrics_close(metrics);
    if (status == MS_EXIT_OK)
        ms_ledgers_say_others();
    return status;
}

int ms_cmd_metrics(int argc, char **argv)
{
    struct metrics_options options = {.textfile = NULL};
    int first = ms_cli_parse(argc, argv, false, metrics_take, &options);
    struct ms_listen where;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc != first || !options.textfile == !options.listen) {
        ms_cli_error("%s; usage: memshim metrics --textfile FILE | --listen PORT|ADDRESS:PORT",
                     argc != first ? "takes no file" : "one of --textfile and --listen is needed");
        return MS_EXIT_USAGE;
    }
    ms_options_load(environ, NULL, NULL);
    if (options.textfile)
        return write_file(&options);
    return ms_listen_parse(options.listen, &where) < 0 ? MS_EXIT_USAGE : ms_metrics_serve(&where);
}
