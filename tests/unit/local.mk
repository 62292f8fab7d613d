# tests/unit: floors 0 to 2, and writing the report; see docs/internals/testing.md
ms_test_programs += tests/unit/test_arena tests/unit/test_keyed tests/unit/test_at_fork tests/unit/test_base64 tests/unit/test_cancel tests/unit/test_clock tests/unit/test_exports tests/unit/test_files tests/unit/test_host tests/unit/test_lanes tests/unit/test_ledger tests/unit/test_uses tests/unit/test_lock tests/unit/test_bias tests/unit/test_log tests/unit/test_phases \
	tests/unit/test_objects tests/unit/test_own tests/unit/test_options tests/unit/test_pools tests/unit/test_quota tests/unit/test_recover tests/unit/test_sites tests/unit/test_spare tests/unit/test_stack tests/unit/test_store tests/unit/test_timeline tests/unit/test_trace tests/unit/test_walk

tests_unit_test_store_SOURCES = tests/unit/test_store.c src/base/store/store_load.c tests/tap.h
tests_unit_test_trace_SOURCES = tests/unit/test_trace.c src/base/store/store_load.c \
	src/record/reader/recover.c src/record/reader/recover_pools.c src/record/reader/recover_events.c \
	$(CLI_TRACE_SOURCES) tests/tap.h
tests_unit_test_trace_CFLAGS = $(AM_CFLAGS) $(ZSTD_CFLAGS)
tests_unit_test_trace_LDADD = $(LDADD) $(ZSTD_LIBS)
tests_unit_test_recover_SOURCES = tests/unit/test_recover.c src/base/store/store_load.c \
	src/record/reader/recover.c src/record/reader/recover_pools.c src/record/reader/recover_events.c \
	tests/unit/ledger_fixture.h tests/tap.h
# The frame pointer walk needs frames as they are written: no tail calls, no inlining.
tests_unit_test_walk_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls

# Two libraries of the same shape, to be loaded in each other's place; their constructor calls back into the test.
tests_unit_test_objects_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic -Wl,--wrap=dl_iterate_phdr -Wl,--wrap=mmap
check_PROGRAMS += tests/unit/plugin_a.so tests/unit/plugin_b.so
tests_unit_plugin_a_so_SOURCES = tests/unit/plugin.c
tests_unit_plugin_a_so_CFLAGS = $(AM_CFLAGS) -fPIC -DPLUGIN_NAME='"a"'
tests_unit_plugin_a_so_LDFLAGS = -shared -Wl,--build-id
tests_unit_plugin_b_so_SOURCES = tests/unit/plugin.c
tests_unit_plugin_b_so_CFLAGS = $(AM_CFLAGS) -fPIC -DPLUGIN_NAME='"b"'
tests_unit_plugin_b_so_LDFLAGS = -shared -Wl,--build-id

if HAVE_STATIC_JANSSON
# Writes a report of a known history, which the script holds against the schema and the history.
check_PROGRAMS += tests/unit/report_sample
tests_unit_report_sample_LDADD = src/libmsreport.a src/libmsfloor.a $(LIBUNWIND_LIBS) $(JANSSON_STATIC_LIBS)
dist_check_SCRIPTS += tests/unit/report.py tests/unit/at_fork.py
endif
EXTRA_DIST += tests/unit/ledger_check.h tests/unit/ledger_fixture.h
