# src/trace: floor 3.5, what the command reads traces with: docs/user/trace.md
CLI_TRACE_SOURCES = src/trace/reader.h src/trace/reader.c src/trace/internal.h src/trace/text.c \
	src/trace/binary.c src/trace/phases.c src/trace/parts.c src/trace/print.c src/trace/compress.c \
	src/trace/input.h src/trace/input.c src/trace/live.h src/trace/live.c
