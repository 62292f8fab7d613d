# src/report: floor 4, see docs/architecture.md
#
# What goes into the shim: writing the report. Without a static jansson it only says so.
REPORT_SHIM_SOURCES = src/report/report.h src/report/report.c src/report/at_exit.c
if HAVE_STATIC_JANSSON
REPORT_SHIM_SOURCES += src/report/json.h src/report/json.c src/report/json_run.c src/report/json_memory.c \
	src/report/json_stacks.c src/report/json_sites.c src/report/json_events.c src/report/stacks.h src/report/stacks.c \
	src/report/out.h src/report/out.c src/report/path.h src/report/path.c
endif
