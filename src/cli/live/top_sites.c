/* top_sites.c - the call sites that hold most of a process that runs, out of its ledger alone; see top.h.
 *
 * Floor 5. Names come from the files of its modules, as in every report. Every text of the process's goes
 * through report/text/text.h. */
#include <stdlib.h>
#include <string.h>

#include "base/devices.h"
#include "cli/cli.h"
#include "cli/live/live_ledgers.h"
#include "cli/load.h"
#include "cli/live/top.h"
#include "report/analyse/fold.h"
#include "report/symbols/symbols.h"
#include "report/read/layer.h"
#include "report/text/text.h"
#include "report/analyse/analyse.h"

struct listing {
    const struct ms_top_row *of;
    FILE *out;
    size_t most;
};

static void ignore(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

static bool is_on(const struct ms_top_row *row, const json_t *site)
{
    const char *api = ms_report_text(site, "device_api");

    return ms_report_is_device_memory(site) &&
           ms_report_int(site, "device") == ms_device_index(row->device) &&
           !strcmp(*api ? api : "cuda", ms_device_api(row->device));
}

static void top_sites_put_site(FILE *out, const struct ms_report *report, const json_t *site)
{
    bool inferred;
    const json_t *own = ms_fold_own(report, ms_report_int(site, "stack"), &inferred);

    fprintf(out, "%11s %11s %8" JSON_INTEGER_FORMAT "  ",
            ms_text_size(ms_report_int(site, "live_bytes")).text,
            ms_text_size(ms_report_int(site, "at_peak_bytes")).text, ms_report_int(site, "live_count"));
    if (own) {
        ms_text_frame(out, report, own);
        ms_text_put_callers(out, report, ms_report_int(site, "stack"));
    } else {
        fputs("(no stack)", out);
    }
    fputs(" (", out);
    ms_text_put(out, ms_cli_site_api(site));
    if (*ms_report_text(site, "owner") && strcmp(ms_report_text(site, "owner"), "program") != 0) {
        fputs(", ", out);
        ms_text_put(out, ms_report_text(site, "owner"));
    }
    fputs(")\n", out);
}

static void put_sites(const struct listing *listing, const struct ms_report *report)
{
    size_t count, shown = 0, left = 0;
    json_t **sites = ms_cli_sites_by(report, "live_bytes", &count);

    for (size_t i = 0; i < count; i++) {
        if (!is_on(listing->of, sites[i]) || ms_report_int(sites[i], "live_bytes") <= 0)
            continue;
        if (shown < listing->most) {
            top_sites_put_site(listing->out, report, sites[i]);
            shown++;
        } else {
            left++;
        }
    }
    if (!shown)
        fputs("nothing is allocated\n", listing->out);
    if (left)
        fprintf(listing->out, "and %zu more\n", left);
    free(sites);
}

static int top_sites_list(void *arg, const struct ms_cli_ledger *ledger)
{
    const struct ms_symbol_places places = {NULL, NULL};
    const struct listing *listing = arg;
    struct ms_symbols_result result;
    struct ms_report report;

    if (ms_process()->start_unix_ns != listing->of->start_unix_ns || ms_living_report(ledger, &report) < 0)
        return -1;
    ms_symbols_resolve(&report, &places, ignore, NULL, &result);
    if (ms_cli_layer != MS_CLI_BLOCKS && ms_report_has_inner(&report))
        ms_report_choose_inner(&report);
    ms_report_annotate(&report, NULL);
    put_sites(listing, &report);
    ms_report_close(&report);
    return 0;
}

char *ms_top_sites(const struct ms_top_row *row, size_t most)
{
    struct ms_living living = {0};
    char *text = NULL;
    size_t bytes;
    struct listing listing = {row, open_memstream(&text, &bytes), most};

    if (!listing.out)
        return NULL;
    fprintf(listing.out, "%11s %11s %8s  CALL SITE\n", "LIVE", "AT PEAK", "BLOCKS");
    ms_living_each(row->pid, top_sites_list, &listing, &living);
    if (!living.shown)
        fputs(living.left_out ? "it cannot be read just now\n" : "it has ended\n", listing.out);
    if (fclose(listing.out) == 0)
        return text;
    free(text);
    return NULL;
}
