/* at_exit.c - the report at the normal end of a process.
 *
 * A destructor of a preloaded library runs after those of the libraries that were loaded after it, so the
 * frees of their static objects are seen. No vendor function is called: the vendor's library may be gone
 * already. */
#include "report/report.h"

#include "base/guard.h"
#include "hooks/init.h"
#include "ledger/journal.h"
#include "ledger/trace.h"

/* A relative MEMSHIM_REPORT means the directory in which the program was started. */
__attribute__((constructor)) static void remember_directory(void)
{
    ms_process_note_directory();
}

__attribute__((destructor)) static void write_report(void)
{
    if (!ms_init_owner() || !ms_init_saw_gpu())
        return;
    ms_guard_enter();
    ms_init_finish();
    ms_trace_finish();
    ms_journal_end(MS_END_EXIT, ms_init_exit_code());
    if (ms_report_write(MS_END_EXIT, ms_init_exit_code()) == 0)
        ms_ledger_reported(ms_report_late_frees);
    ms_guard_leave();
}
