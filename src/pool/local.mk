# src/pool: floor 2, see docs/architecture.md
POOL_SOURCES = src/pool/pool.h src/pool/internal.h src/pool/start.c src/pool/pool.c src/pool/hit.h src/pool/hit.c src/pool/heap.c src/pool/space/pagemap.h src/pool/space/records.h src/pool/space/units.h src/pool/space/pagemap.c \
	src/pool/budget.h src/pool/budget.c src/pool/rules.c src/pool/segment.c src/pool/fence.h src/pool/fence.c src/pool/fence_streams.c src/pool/limbo.h src/pool/limbo.c src/pool/ladder.c src/pool/grow.c \
	src/pool/keep.c src/pool/rest.c src/pool/returns.h src/pool/returns.c src/pool/backing.h src/pool/backing.c src/pool/backing_pages.c src/pool/backing_map.c \
	src/pool/backing_tell.c src/pool/backing_peers.c src/pool/foreign.h src/pool/foreign.c src/pool/pins.c src/pool/poison.c src/pool/figures.h src/pool/figures.c src/pool/walk.c src/pool/stop.c \
	src/pool/stream.h src/pool/flow.h src/pool/stream.c src/pool/mempool.c src/pool/flow.c src/pool/flow_figures.c src/pool/cross.c src/pool/flow_wait.c src/pool/flow_give.c src/pool/flow_move.c src/pool/flow_grow.c src/pool/flow_hoard.c
POOL_SOURCES += src/pool/policy/params.def src/pool/policy/params.h src/pool/policy/params.c
POOL_SOURCES += src/pool/clock/captures.h src/pool/clock/captures.c src/pool/clock/epochs.h src/pool/clock/timeline.h src/pool/clock/timeline.c src/pool/captured.c src/pool/join.c
POOL_SOURCES += src/pool/source/source.h src/pool/source/whole.h src/pool/source/whole.c
POOL_SOURCES += src/pool/wait.h src/pool/wait.c src/pool/pitch.c
POOL_SOURCES += src/pool/space/extents.h src/pool/space/run.c src/pool/space/slab.c src/pool/space/single.c src/pool/space/tier.h src/pool/space/near.h src/pool/space/near.c src/pool/space/tables.h src/pool/space/tables.c
POOL_SOURCES += src/pool/cache/bag.h src/pool/cache/bag.c src/pool/cache/lease.h src/pool/cache/lease.c
