# tests/unit: floors 0 to 2, and writing the report; see docs/internals/testing.md
check_LIBRARIES =

ms_unit_tests = tests/unit/test_arena tests/unit/test_keyed tests/unit/test_at_fork tests/unit/test_base64 tests/unit/test_cancel tests/unit/test_clock tests/unit/test_exports tests/unit/test_files tests/unit/test_lanes tests/unit/test_ledger tests/unit/test_uses tests/unit/test_lock tests/unit/test_bias tests/unit/test_log tests/unit/test_phases \
	tests/unit/test_objects tests/unit/test_own tests/unit/test_options tests/unit/test_pools tests/unit/test_recover tests/unit/test_sites tests/unit/test_spare tests/unit/test_stack tests/unit/test_store tests/unit/test_timeline tests/unit/test_trace tests/unit/test_walk
check_PROGRAMS += $(ms_unit_tests)
TESTS += $(ms_unit_tests)

tests_unit_test_arena_SOURCES = tests/unit/test_arena.c tests/tap.h
tests_unit_test_arena_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_at_fork_SOURCES = tests/unit/test_at_fork.c tests/tap.h
tests_unit_test_at_fork_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_keyed_SOURCES = tests/unit/test_keyed.c tests/tap.h
tests_unit_test_keyed_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_base64_SOURCES = tests/unit/test_base64.c tests/tap.h
tests_unit_test_base64_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_cancel_SOURCES = tests/unit/test_cancel.c tests/tap.h
tests_unit_test_cancel_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_cancel_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_clock_SOURCES = tests/unit/test_clock.c tests/tap.h
tests_unit_test_clock_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_clock_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_exports_SOURCES = tests/unit/test_exports.c tests/tap.h
tests_unit_test_exports_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_files_SOURCES = tests/unit/test_files.c tests/tap.h
tests_unit_test_files_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_files_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_own_SOURCES = tests/unit/test_own.c tests/tap.h
tests_unit_test_own_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_own_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_pools_SOURCES = tests/unit/test_pools.c tests/tap.h
tests_unit_test_pools_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_sites_SOURCES = tests/unit/test_sites.c tests/unit/ledger_check.h \
	tests/unit/ledger_fixture.h tests/tap.h
tests_unit_test_sites_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_lanes_SOURCES = tests/unit/test_lanes.c tests/unit/ledger_check.h \
	tests/unit/ledger_fixture.h tests/tap.h
tests_unit_test_phases_SOURCES = tests/unit/test_phases.c tests/unit/ledger_check.h \
	tests/unit/ledger_fixture.h tests/tap.h
tests_unit_test_phases_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_lanes_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_lanes_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_uses_SOURCES = tests/unit/test_uses.c tests/unit/ledger_fixture.h tests/tap.h
tests_unit_test_uses_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c tests/unit/ledger_check.h \
	tests/unit/ledger_fixture.h tests/tap.h
tests_unit_test_ledger_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_bias_SOURCES = tests/unit/test_bias.c tests/tap.h
tests_unit_test_bias_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_lock_SOURCES = tests/unit/test_lock.c tests/tap.h
tests_unit_test_lock_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_log_SOURCES = tests/unit/test_log.c tests/tap.h
tests_unit_test_log_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_options_SOURCES = tests/unit/test_options.c tests/tap.h
tests_unit_test_options_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_spare_SOURCES = tests/unit/test_spare.c tests/tap.h
tests_unit_test_spare_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_spare_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_stack_SOURCES = tests/unit/test_stack.c tests/tap.h
tests_unit_test_stack_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_store_SOURCES = tests/unit/test_store.c src/base/store/store_load.c tests/tap.h
tests_unit_test_store_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_trace_SOURCES = tests/unit/test_trace.c src/base/store/store_load.c \
	src/record/reader/recover.c src/record/reader/recover_pools.c src/record/reader/recover_events.c \
	tests/tap.h
tests_unit_test_trace_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_recover_SOURCES = tests/unit/test_recover.c src/base/store/store_load.c \
	src/record/reader/recover.c src/record/reader/recover_pools.c src/record/reader/recover_events.c \
	tests/unit/ledger_fixture.h tests/tap.h
tests_unit_test_recover_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
tests_unit_test_timeline_SOURCES = tests/unit/test_timeline.c tests/tap.h
tests_unit_test_timeline_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
# The frame pointer walk needs frames as they are written: no tail calls, no inlining.
tests_unit_test_walk_SOURCES = tests/unit/test_walk.c tests/tap.h
tests_unit_test_walk_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
tests_unit_test_walk_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)

# Two libraries of the same shape, to be loaded in each other's place; their constructor calls back into the test.
tests_unit_test_objects_SOURCES = tests/unit/test_objects.c tests/tap.h
tests_unit_test_objects_LDADD = src/libmsfloor.a $(LIBUNWIND_LIBS)
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
tests_unit_report_sample_SOURCES = tests/unit/report_sample.c
tests_unit_report_sample_LDADD = src/libmsreport.a src/libmsfloor.a $(LIBUNWIND_LIBS) $(JANSSON_STATIC_LIBS)
TESTS += tests/unit/report.py tests/unit/at_fork.py
endif
EXTRA_DIST += tests/unit/report.py tests/unit/at_fork.py
