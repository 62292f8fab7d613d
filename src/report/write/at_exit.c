/* at_exit.c - the report at the normal end of a process.
 *
 * What is registered with the C library before main runs behind all destructors: those of all objects are one
 * function of the loader's, which is registered as main begins, and the list is gone through from its end. So
 * the frees of static objects are seen, whichever library they are in. No vendor function is called: the
 * vendor's library may be gone already. */
#include <stdlib.h>

#include "report/write/report.h"

#include "config.h"
#include "base/thread/guard.h"
#include "hooks/init.h"
#include "record/file/journal.h"
#include "record/file/trace.h"

static void at_exit_write_report(int status, void *unused)
{
    (void)status, (void)unused;
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

#ifdef MS_COVERAGE
/* The counters are written by a destructor, and this comes before it. */
__attribute__((destructor)) static void at_exit_counted(void)
{
    at_exit_write_report(0, NULL);
}
#endif

/* A relative MEMSHIM_REPORT means the directory in which the program was started. The library is never
 * unloaded
 * (-z nodelete), and on_exit knows of no library whose end would call it before. */
__attribute__((constructor)) static void prepare(void)
{
    ms_process_note_directory();
#ifndef MS_COVERAGE
    on_exit(at_exit_write_report, NULL);
#endif
}
