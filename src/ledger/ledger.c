/* ledger.c - the whole record at once: starting anew.
 *
 * Floor 2. The observer's calls are in blocks.c (blocks) and events.c (everything else). */
#include "config.h"

#include "ledger/exports.h"
#include "ledger/journal.h"
#include "ledger/misfrees.h"
#include "ledger/balance.h"
#include "ledger/phases.h"
#include "ledger/takers.h"
#include "ledger/uses.h"
#include "ledger/trace.h"

void ms_ledger_reset(void)
{
    ms_blocks_reset();
    ms_accounts_reset();
    ms_pools_reset();
    ms_history_reset();
    ms_events_reset();
    ms_process_reset();
    ms_journal_reset();
    ms_trace_reset();
    ms_ipc_export_rows_reset();
    ms_invalid_frees_reset();
    ms_phases_reset();
    ms_footprints_reset();
    ms_balance_reset();
    ms_uses_reset();
}
