# src/report: floor 4, see docs/architecture.md
#
# Writing the report, and doing so at exit: both go into the shim. Without a static jansson it only says that it cannot.
REPORT_JSON_SOURCES = src/report/contents.c src/report/json.h src/report/json.c src/report/json_run.c \
	src/report/json_memory.c src/report/json_stacks.c src/report/json_sites.c src/report/json_pools.c src/report/json_events.c src/report/findings.def src/report/json_misfrees.c src/report/json_phases.c \
	src/report/stacks.h src/report/stacks.c src/report/out.h src/report/out.c src/report/utf8.h
REPORT_JSON_SOURCES += src/report/json_balance.c src/report/json_contexts.c src/report/json_oom.c src/report/json_uses.c src/report/replay.h src/report/replay.c
REPORT_WRITER_SOURCES = src/report/report.h src/report/report.c
if HAVE_STATIC_JANSSON
REPORT_WRITER_SOURCES += $(REPORT_JSON_SOURCES)
endif
REPORT_EXIT_SOURCES = src/report/at_exit.c

dist_pkgdata_DATA += src/report/report.schema.json
