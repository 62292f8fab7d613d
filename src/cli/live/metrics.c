/* metrics.c - figures of the user's processes, out of their ledgers alone; see metrics.h.
 *
 * Floor 5. Reports are without names of native functions: a scrape reads no debug information. Whoever has
 * ended holds no memory and is not told. */
#include "cli/live/metrics.h"

#include <unistd.h>

#include "cli/live/live_ledgers.h"
#include "report/analyse/owners.h"
#include "report/symbols/pyframes.h"

static int metrics_add(void *arg, const struct ms_cli_ledger *ledger)
{
    struct ms_metrics *metrics = arg;
    struct ms_pyframes_dangling astray;
    struct ms_report report;
    size_t named, lines;
    int status;

    if (ms_living_report(ledger, &report) < 0)
        return -1;
    ms_pyframes_resolve(&report, &named, &lines, &astray); /* whose a line of Python is takes its file */
    ms_owners_annotate(&report);
    status = ms_metrics_add(metrics, &report);
    ms_report_close(&report);
    return status;
}

struct ms_metrics *ms_metrics_collect(void)
{
    struct ms_metrics *metrics = ms_metrics_open();
    struct ms_living living = {0};
    char host[256] = "";

    if (!metrics)
        return NULL;
    gethostname(host, sizeof(host) - 1);
    ms_living_each(0, metrics_add, metrics, &living);
    if (ms_metrics_add_host(metrics, host, "memshim_processes", "Processes of this user that memshim is in.",
                            (json_int_t)living.shown) == 0 &&
        ms_metrics_add_host(metrics, host, "memshim_processes_left_out",
                            "Processes that are not shown: too many, or not readable just now.",
                            (json_int_t)living.left_out) == 0)
        return metrics;
    ms_metrics_close(metrics);
    return NULL;
}
