# src/export: floor 4 above src/report, what the command writes for other tools: docs/user/export.md
CLI_EXPORT_SOURCES = src/export/export.h src/export/formats.def src/export/formats.c src/export/model.h \
	src/export/model.c src/export/tree.h src/export/tree.c src/export/names.h src/export/names.c \
	src/export/events.h src/export/events.c src/export/json_text.h src/export/json_text.c \
	src/export/wire.h src/export/wire.c src/export/gzip.h src/export/gzip.c src/export/writers/folded.c \
	src/export/writers/speedscope.c src/export/writers/pprof.c src/export/writers/chrome.c \
	src/export/writers/dhat.c src/export/writers/metrics.h src/export/writers/metrics.c \
	src/export/writers/table.c src/export/pickle.h src/export/pickle.c src/export/blocks.h \
	src/export/blocks.c src/export/writers/snapshot.c src/export/writers/firefox.c
