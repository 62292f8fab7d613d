# src/base: floor 0, see docs/architecture.md
BASE_SOURCES = src/base/compiler.h src/base/count.h src/base/pass.h src/base/devices.h src/base/guard.h src/base/guard.c src/base/own.h src/base/own.c src/base/lock.h src/base/lock.c src/base/bias.h src/base/bias.c src/base/clock.h src/base/clock.c \
	src/base/cancel.h src/base/cancel.c src/base/log.h src/base/log.c src/base/arena.h src/base/arena.c src/base/tables.def src/base/store.h src/base/store.c \
	src/base/options.h src/base/options.def src/base/options.c src/base/options_value.h src/base/options_value.c src/base/size.h src/base/size.c src/base/libc.h src/base/libc.c src/base/files.h src/base/files.c src/base/run_list.h src/base/run_list.c \
	src/base/objects.h src/base/objects.c src/base/records.h src/base/records.c src/base/spare.h src/base/spare.c src/base/unusual.h src/base/unusual.c src/base/elf.h src/base/elf.c src/base/signals.h src/base/signals.c
