/* metrics.c - figures of the user's processes, out of their ledgers alone; see metrics.h.
 *
 * Floor 5. Reports are without names of native functions: a scrape reads no debug information. Whoever has
 * ended holds no memory and is not told. */
#include "cli/live/metrics.h"

#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/live/live_ledgers.h"
#include "cli/live/shares.h"
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

/* --- devices that processes share ------------------------------------------------------------------------
 */

static int add_parts(struct ms_metrics *metrics, const char *host, const char *gpu, const json_t *device)
{
    static const char *const parts[] = {"free",     "allocated",  "cached",
                                        "contexts", "neighbours", "unaccounted"};
    static const char *const names[] = {"gpu", "host", "part"};
    char key[32];
    int status =
        ms_metrics_add_gauge(metrics, "memshim_gpu_memory_bytes", "The memory of a device.", names,
                             (const char *const[]){gpu, host}, 2, ms_report_int(device, "total_bytes"));

    for (size_t i = 0; i < MS_ARRAY_LEN(parts) && status == 0; i++) {
        snprintf(key, sizeof(key), "%s_bytes", parts[i]);
        status = ms_metrics_add_gauge(
            metrics, "memshim_gpu_part_bytes", "Of it: these parts add up to all of it.", names,
            (const char *const[]){gpu, host, parts[i]}, 3, ms_report_int(device, key));
    }
    return status;
}

/* Two processes of different namespaces may have one number and one name: the row tells them apart. */
static int add_process(struct ms_metrics *metrics, const char *host, const char *gpu, const json_t *process)
{
    static const char *const names[] = {"gpu", "host", "pid", "program", "row"};
    static const struct {
        const char *name, *key, *help;
    } figures[] = {
        {"memshim_gpu_process_bytes", "used_bytes", "What a process takes of a device."},
        {"memshim_gpu_guarantee_bytes", "guarantee_bytes", "What of a device is kept for a process."},
        {"memshim_gpu_beyond_bytes", "beyond_bytes", "What a process takes beyond that."}};
    char pid[24], row[24];
    const char *texts[] = {gpu, host, pid, ms_report_text(process, "name"), row};
    int status = 0;

    snprintf(pid, sizeof(pid), "%" JSON_INTEGER_FORMAT, ms_report_int(process, "pid"));
    snprintf(row, sizeof(row), "%" JSON_INTEGER_FORMAT, ms_report_int(process, "row"));
    for (size_t i = 0; i < MS_ARRAY_LEN(figures) && status == 0; i++)
        if (i == 0 || ms_report_int(process, "guarantee_bytes"))
            status = ms_metrics_add_gauge(metrics, figures[i].name, figures[i].help, names, texts,
                                          MS_ARRAY_LEN(names), ms_report_int(process, figures[i].key));
    return status;
}

/* A device may have a page in each place where ledgers lie, and one of a group: the first is told. */
static bool is_first(const json_t *devices, size_t number)
{
    const char *uuid = ms_report_text(json_array_get(devices, number), "uuid");

    for (size_t i = 0; i < number; i++)
        if (!strcmp(ms_report_text(json_array_get(devices, i), "uuid"), uuid))
            return false;
    return true;
}

static int add_shared(struct ms_metrics *metrics, const char *host)
{
    json_t *devices = ms_shares_json(), *device, *process;
    int status = devices ? 0 : -1;
    char gpu[64];
    size_t i, k;

    json_array_foreach (devices, i, device) {
        if (status < 0 || !is_first(devices, i))
            continue;
        snprintf(gpu, sizeof(gpu), "GPU-%s", ms_report_text(device, "uuid"));
        status = add_parts(metrics, host, gpu, device);
        json_array_foreach (ms_report_array(device, "processes"), k, process)
            status = status ? status : add_process(metrics, host, gpu, process);
    }
    json_decref(devices);
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
                            (json_int_t)living.left_out) == 0 &&
        add_shared(metrics, host) == 0)
        return metrics;
    ms_metrics_close(metrics);
    return NULL;
}
