# src/report: floor 4, see docs/internals/architecture.md
#
# Writing the report, and doing so at exit: both go into the shim. Without a static jansson it only says that it cannot.
REPORT_JSON_SOURCES = src/report/write/contents.c src/report/write/json.h src/report/write/json.c \
	src/report/write/json_run.c src/report/write/json_memory.c src/report/write/json_stacks.c \
	src/report/write/json_sites.c src/report/write/json_inner.c src/report/write/json_pools.c src/report/write/json_events.c \
	src/report/findings/findings.def src/report/write/json_invalid_frees.c \
	src/report/write/json_phases.c src/report/write/stacks.h src/report/write/stacks.c \
	src/report/write/out.h src/report/write/out.c src/report/text/utf8.h
REPORT_JSON_SOURCES += src/report/write/json_balance.c \
	src/report/write/json_oom.c src/report/write/json_uses.c src/report/findings/uses_replay.h \
	src/report/findings/uses_replay.c
REPORT_WRITER_SOURCES = src/report/write/report.h src/report/write/report.c
if HAVE_STATIC_JANSSON
REPORT_WRITER_SOURCES += $(REPORT_JSON_SOURCES)
endif
REPORT_EXIT_SOURCES = src/report/write/at_exit.c

dist_pkgdata_DATA += src/report/report.schema.json
