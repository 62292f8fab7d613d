# src/record: floor 2, see docs/internals/architecture.md
LEDGER_SOURCES = src/record/live/ledger.h src/record/live/internal.h src/record/live/rows.h \
	src/record/file/process.h src/record/file/process.c src/record/file/journal.h \
	src/record/file/journal.c src/record/reader/snapshot.h src/record/live/shards.h \
	src/record/live/shards.c src/record/live/totals.h src/record/live/accounts.c \
	src/record/live/block_rows.c src/record/live/blocks.c src/record/live/sites.c \
	src/record/live/site_growth.c src/record/live/history.c src/record/live/events.c \
	src/record/live/counts.c src/record/reader/snapshot.c src/record/reader/snapshot_pool.h \
	src/record/reader/snapshot_pool.c src/record/reader/snapshot_heaps.h src/record/reader/snapshot_heaps.c src/record/file/path.h src/record/file/path.c \
	src/record/file/trace.h src/record/file/trace.c src/record/file/trace_file.h \
	src/record/file/trace_file.c src/record/file/trace_format.h src/record/file/trace_events.h \
	src/record/file/trace_events.c src/record/file/trace_told.h src/record/file/trace_told.c src/record/file/trace_parts.c src/record/file/trace_complete.c src/record/file/stale.h \
	src/record/file/job_copies.h src/record/file/job_copies.c src/record/file/stale.c src/record/ipc/token.h src/record/ipc/token.c src/record/ipc/ipc_exports.h \
	src/record/ipc/ipc_exports.c src/record/ipc/peer.c src/record/footprint/pools.h \
	src/record/footprint/pools.c src/record/live/invalid_frees.h src/record/live/invalid_frees.c \
	src/record/footprint/footprints.h src/record/footprint/footprints.c src/record/footprint/balance.h \
	src/record/footprint/balance.c src/record/footprint/granules.h src/record/footprint/granules.c \
	src/record/live/inner.h src/record/live/inner.c src/record/live/oom.def src/record/live/oom_sites.c src/record/phases/phases.h \
	src/record/phases/phases.c src/record/phases/phase_figures.c src/record/phases/phase_names.c \
	src/record/reader/snapshot_phases.c src/record/live/uses.h src/record/live/uses.c
