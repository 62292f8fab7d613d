/* live_ledgers.c - processes that go on; see live_ledgers.h.
 *
 * Floor 5. */
#include "cli/live/live_ledgers.h"

#include <sys/mman.h>
#include <unistd.h>

#include "report/write/report.h"

struct visiting {
    ms_living_visit_t visit;
    void *arg;
    struct ms_living *living;
};

static void live_ledgers_look(void *arg, const char *path)
{
    struct visiting *visiting = arg;
    struct ms_cli_ledger ledger;

    if (ms_ledgers_open_own(path, &ledger) < 0)
        return;
    if (ledger.alive != MS_ALIVE_NO) {
        if (visiting->living->shown < MS_LIVING_MAX && visiting->visit(visiting->arg, &ledger) == 0)
            visiting->living->shown++;
        else
            visiting->living->left_out++;
    }
    ms_ledgers_close(&ledger);
}

void ms_living_each(pid_t pid, ms_living_visit_t visit, void *arg, struct ms_living *living_p)
{
    struct visiting visiting = {visit, arg, living_p};

    ms_ledgers_anywhere(pid, live_ledgers_look, &visiting);
}

int ms_living_report(const struct ms_cli_ledger *ledger, struct ms_report *report_p)
{
    char error[4608];
    int fd = memfd_create("memshim-living", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    if (ms_report_contents(fd, ledger->reason, ledger->code, ledger->alive == MS_ALIVE_NO, NULL) == 0 &&
        lseek(fd, 0, SEEK_SET) == 0)
        return ms_report_read_fd(fd, ledger->path, report_p, error, sizeof(error));
    close(fd);
    return -1;
}
