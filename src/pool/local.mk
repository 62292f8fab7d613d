# src/pool: floor 2, see docs/internals/architecture.md
POOL_SOURCES = src/pool/api/pool.h src/pool/api/internal.h src/pool/api/start.c src/pool/api/pool.c \
	src/pool/api/heap.c src/pool/space/pagemap.h \
	src/pool/space/records.h src/pool/space/units.h src/pool/space/pagemap.c src/pool/policy/budget.h \
	src/pool/policy/budget.c src/pool/blocks/rules.c src/pool/blocks/segment.c src/pool/fence/fence.h \
	src/pool/fence/fence.c src/pool/fence/fence_streams.c src/pool/fence/pending.h \
	src/pool/fence/pending.c src/pool/blocks/fallback.c src/pool/blocks/grow.c src/pool/policy/keep.c \
	src/pool/policy/idle_trim.c src/pool/stream/driver_frees.h src/pool/stream/driver_frees.c \
	src/pool/mapped/mapped.h src/pool/mapped/mapped.c src/pool/mapped/mapped_pages.c \
	src/pool/mapped/mapped_calls.c src/pool/external/external.h src/pool/external/external.c src/pool/api/pins.c src/pool/api/poison.c \
	src/pool/api/figures.h src/pool/api/figures.c src/pool/api/walk.c src/pool/api/stop.c \
	src/pool/stream/stream.h src/pool/stream/stream_arena.h src/pool/stream/stream.c \
	src/pool/stream/mempool.c src/pool/stream/stream_arena.c src/pool/stream/arena_source.c \
	src/pool/stream/arena_share.c src/pool/stream/cross_free.c
POOL_SOURCES += src/pool/policy/params.def src/pool/policy/params.h src/pool/policy/params.c
POOL_SOURCES += src/pool/clock/captures.h src/pool/clock/captures.c src/pool/clock/epochs.h \
	src/pool/clock/fence_timeline.h src/pool/clock/fence_timeline.c src/pool/api/captured.c \
	src/pool/stream/stream_free.c
POOL_SOURCES += src/pool/source/source.h src/pool/external/recycled.h src/pool/external/recycled.c
POOL_SOURCES += src/pool/fence/wait.h src/pool/fence/wait.c src/pool/api/pitch.c
POOL_SOURCES += src/pool/space/extents.h src/pool/space/extent.c src/pool/space/slab.c \
	src/pool/space/dedicated.c src/pool/space/address_cache.h \
	src/pool/space/address_cache.c src/pool/space/tables.h src/pool/space/tables.c
POOL_SOURCES += src/pool/cache/batch.h src/pool/cache/batch.c src/pool/cache/tcache.h src/pool/cache/tcache.c
