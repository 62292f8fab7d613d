# tests/pool: the pool over a driver that the tests hold in their hands (fake.h); see docs/internals/testing.md
check_LIBRARIES += tests/pool/libmsfake.a
tests_pool_libmsfake_a_SOURCES = tests/pool/fake.h tests/pool/fake.c tests/pool/fake_vmm.c \
	tests/pool/checks.h tests/pool/check.c tests/pool/trim.c tests/pool/streams.h \
	tests/pool/streams_calls.h tests/pool/streams_types.h tests/pool/streams.c
tests_pool_libmsfake_a_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS)
tests_pool_libmsfake_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/pool

ms_pool_libs = tests/pool/libmsfake.a src/libmspool.a src/libmsfloor.a
ms_pool_tests = tests/pool/test_limits tests/pool/test_keep tests/pool/test_free_waits tests/pool/test_model tests/pool/test_epochs tests/pool/test_limbo tests/pool/test_placement tests/pool/test_pins tests/pool/test_near tests/pool/test_threads tests/pool/test_vmm tests/pool/test_vmm_long tests/pool/test_streams tests/pool/test_waits tests/pool/test_returns tests/pool/test_rest tests/pool/test_clock
check_PROGRAMS += $(ms_pool_tests) tests/pool/replay
TESTS += $(ms_pool_tests)
tests_pool_test_clock_SOURCES = tests/pool/test_clock.c tests/pool/fake.h tests/tap.h
tests_pool_test_clock_LDADD = $(ms_pool_libs)
tests_pool_test_clock_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_clock_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_keep_SOURCES = tests/pool/test_keep.c tests/pool/calls.h tests/pool/one_context.h tests/tap.h
tests_pool_test_keep_LDADD = $(ms_pool_libs)
tests_pool_test_keep_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_keep_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_limits_SOURCES = tests/pool/test_limits.c tests/pool/calls.h tests/pool/one_context.h \
	tests/tap.h
tests_pool_test_limits_LDADD = $(ms_pool_libs)
tests_pool_test_limits_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_limits_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_free_waits_SOURCES = tests/pool/test_free_waits.c tests/pool/calls.h \
	tests/pool/one_context.h tests/tap.h
tests_pool_test_free_waits_LDADD = $(ms_pool_libs)
tests_pool_test_free_waits_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_free_waits_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_model_SOURCES = tests/pool/test_model.c tests/tap.h
tests_pool_test_model_LDADD = $(ms_pool_libs)
tests_pool_test_model_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_model_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_limbo_SOURCES = tests/pool/test_limbo.c tests/pool/calls.h tests/pool/one_context.h \
	tests/tap.h
tests_pool_test_limbo_LDADD = $(ms_pool_libs)
tests_pool_test_limbo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_limbo_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_epochs_SOURCES = tests/pool/test_epochs.c tests/pool/calls.h tests/pool/one_context.h \
	tests/tap.h
tests_pool_test_epochs_LDADD = $(ms_pool_libs)
tests_pool_test_epochs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_epochs_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_placement_SOURCES = tests/pool/test_placement.c tests/pool/calls.h tests/pool/one_context.h \
	tests/tap.h
tests_pool_test_placement_LDADD = $(ms_pool_libs)
tests_pool_test_placement_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_placement_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_near_SOURCES = tests/pool/test_near.c tests/tap.h
tests_pool_test_near_LDADD = $(ms_pool_libs)
tests_pool_test_near_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_near_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_pins_SOURCES = tests/pool/test_pins.c tests/tap.h
tests_pool_test_pins_LDADD = $(ms_pool_libs)
tests_pool_test_pins_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_pins_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_vmm_SOURCES = tests/pool/test_vmm.c tests/pool/vmm.h tests/pool/calls.h tests/tap.h
tests_pool_test_vmm_LDADD = $(ms_pool_libs)
tests_pool_test_vmm_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_vmm_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_vmm_long_SOURCES = tests/pool/test_vmm_long.c tests/pool/vmm.h tests/pool/calls.h tests/tap.h
tests_pool_test_vmm_long_LDADD = $(ms_pool_libs)
tests_pool_test_vmm_long_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_vmm_long_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_threads_SOURCES = tests/pool/test_threads.c tests/tap.h
tests_pool_test_threads_LDADD = $(ms_pool_libs)
tests_pool_test_threads_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_threads_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_streams_SOURCES = tests/pool/test_streams.c tests/tap.h
tests_pool_test_streams_LDADD = $(ms_pool_libs)
tests_pool_test_streams_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_streams_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_waits_SOURCES = tests/pool/test_waits.c tests/tap.h
tests_pool_test_waits_LDADD = $(ms_pool_libs)
tests_pool_test_waits_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_waits_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_returns_SOURCES = tests/pool/test_returns.c tests/tap.h
tests_pool_test_returns_LDADD = $(ms_pool_libs)
tests_pool_test_returns_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_returns_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_pool_test_rest_SOURCES = tests/pool/test_rest.c tests/pool/calls.h tests/pool/one_context.h tests/tap.h
tests_pool_test_rest_LDADD = $(ms_pool_libs)
tests_pool_test_rest_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_rest_LDFLAGS = $(AM_LDFLAGS) -pthread
# A tool: reserved peak, vendor calls and least capacity of traces, over the same driver.
tests_pool_replay_SOURCES = tests/pool/replay.c
tests_pool_replay_LDADD = $(ms_pool_libs)
tests_pool_replay_LDFLAGS = $(AM_LDFLAGS) -pthread
dist_check_SCRIPTS += tests/pool/replay.sh tests/pool/params.py
TESTS += tests/pool/replay.sh tests/pool/params.py

check_PROGRAMS += tests/pool/test_whole
TESTS += tests/pool/test_whole
tests_pool_test_whole_SOURCES = tests/pool/test_whole.c tests/tap.h
tests_pool_test_whole_LDADD = $(ms_pool_libs)
tests_pool_test_whole_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_pool_test_whole_LDFLAGS = $(AM_LDFLAGS) -pthread
