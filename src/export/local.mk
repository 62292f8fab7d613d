# src/export: floor 4 above src/report, what the command writes for other tools: docs/export.md
CLI_EXPORT_SOURCES = src/export/export.h src/export/formats.def src/export/formats.c src/export/model.h src/export/model.c \
	src/export/tree.h src/export/tree.c src/export/names.h src/export/names.c src/export/events.h src/export/events.c src/export/json_text.h src/export/json_text.c \
	src/export/wire.h src/export/wire.c src/export/gzip.h src/export/gzip.c \
	src/export/folded.c src/export/speedscope.c src/export/pprof.c src/export/chrome.c src/export/dhat.c \
	src/export/metrics.h src/export/metrics.c src/export/table.c src/export/pickle.h src/export/pickle.c src/export/blocks.h src/export/blocks.c src/export/snapshot.c src/export/firefox.c
