# src/base: floor 0, see docs/internals/architecture.md
BASE_SOURCES = src/base/compiler.h src/base/coverage.h src/base/at_fork.h src/base/at_fork.c src/base/base64.h \
	src/base/base64.c src/base/count.h src/base/thread/fast_cache.h src/base/devices.h \
	src/base/thread/guard.h src/base/thread/guard.c src/base/thread/thread_own.h \
	src/base/thread/thread_own.c src/base/lock.h src/base/lock.c src/base/thread/bias.h \
	src/base/thread/bias.c src/base/clock.h src/base/clock.c src/base/thread/cancel.h \
	src/base/thread/cancel.c src/base/log.h src/base/log.c src/base/arena.h src/base/arena.c \
	src/base/store/tables.def src/base/store/figures.def src/base/store/figures.h \
	src/base/store/figures.c src/base/store/store.h src/base/store/store.c src/base/options/options.h \
	src/base/options/options.def src/base/options/options.c src/base/options/options_value.h \
	src/base/options/options_value.c src/base/size.h src/base/size.c src/base/libc.h src/base/libc.c \
	src/base/files.h src/base/files.c src/base/run_list.h src/base/run_list.c \
	src/base/objects/objects.h src/base/objects/objects.c src/base/objects/objects_scan.h \
	src/base/objects/objects_scan.c src/base/objects/objects_since.c src/base/objects/objects_index.h \
	src/base/objects/objects_index.c src/base/keyed.h src/base/keyed.c src/base/records.h \
	src/base/records.c src/base/thread/aux_stack.h src/base/thread/aux_stack.c \
	src/base/thread/slow_path.h src/base/thread/slow_path.c src/base/objects/elf.h \
	src/base/objects/elf.c src/base/signals.h src/base/signals.c
