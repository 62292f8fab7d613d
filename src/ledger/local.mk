# src/ledger: floor 2, see docs/architecture.md
LEDGER_SOURCES = src/ledger/ledger.h src/ledger/internal.h src/ledger/rows.h src/ledger/process.h src/ledger/process.c \
	src/ledger/journal.h src/ledger/journal.c src/ledger/snapshot.h \
	src/ledger/lanes.h src/ledger/lanes.c src/ledger/totals.h src/ledger/hit.h src/ledger/accounts.c src/ledger/slots.c src/ledger/blocks.c src/ledger/sites.c src/ledger/growth.c src/ledger/timeline.c src/ledger/events.c src/ledger/counts.c \
	src/ledger/snapshot.c src/ledger/snapshot_pool.h src/ledger/snapshot_pool.c \
	src/ledger/path.h src/ledger/path.c src/ledger/trace.h src/ledger/trace.c src/ledger/trace_file.h src/ledger/trace_file.c src/ledger/trace_complete.c src/ledger/stale.h src/ledger/stale.c \
	src/ledger/token.h src/ledger/token.c src/ledger/exports.h src/ledger/exports.c src/ledger/peer.c \
	src/ledger/pools.h src/ledger/pools.c src/ledger/misfrees.h src/ledger/misfrees.c src/ledger/takers.h src/ledger/takers.c src/ledger/balance.h src/ledger/balance.c src/ledger/granules.h src/ledger/granules.c src/ledger/oom.def src/ledger/ooms.c src/ledger/phases.h src/ledger/phases.c src/ledger/phase_figures.c src/ledger/phase_names.c src/ledger/snapshot_phases.c \
	src/ledger/uses.h src/ledger/uses.c
