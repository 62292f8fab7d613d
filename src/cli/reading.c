/* reading.c - a report from its file, or from the ledger of a process that wrote none; see load.h.
 *
 * Floor 5. */
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/options/options.h"
#include "base/store/store.h"
#include "cli/live/live_ledgers.h"
#include "cli/load.h"

bool ms_cli_is_ledger(const char *path)
{
    char magic[sizeof(MS_STORE_MAGIC) - 1];
    struct stat st;
    int fd = strcmp(path, "-") ? ms_file_open_regular(path, &st) : -1;
    bool is = fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
              !memcmp(magic, MS_STORE_MAGIC, sizeof(magic));

    if (fd >= 0)
        close(fd);
    return is;
}

static int read_ledger(const char *path, struct ms_report *report_p)
{
    struct ms_cli_ledger ledger;
    int result;

    ms_options_load(environ, NULL, NULL);
    if (ms_ledgers_open(path, &ledger) < 0)
        return -1;
    result = ms_living_report(&ledger, report_p);
    if (result < 0)
        ms_cli_error("%s: no report can be made of this ledger", path);
    ms_ledgers_close(&ledger);
    return result;
}

int ms_cli_read(const char *path, struct ms_report *report_p)
{
    char error[4608];

    if (ms_cli_is_ledger(path))
        return read_ledger(path, report_p);
    if (ms_report_read(path, report_p, error, sizeof(error)) == 0)
        return 0;
    ms_cli_error("%s", error);
    return -1;
}
