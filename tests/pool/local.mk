# tests/pool: the pool over a driver that the tests hold in their hands (fake.h); see docs/internals/testing.md
check_LIBRARIES += tests/pool/libmsfake.a
tests_pool_libmsfake_a_SOURCES = tests/pool/fake.h tests/pool/fake.c tests/pool/fake_vmm.c \
	tests/pool/checks.h tests/pool/check.c tests/pool/trim.c tests/pool/streams.h \
	tests/pool/streams_calls.h tests/pool/streams_types.h tests/pool/streams.c
tests_pool_libmsfake_a_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS)
tests_pool_libmsfake_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/pool

ms_pool_libs = tests/pool/libmsfake.a src/libmspool.a src/libmsfloor.a
ms_test_programs += tests/pool/test_limits tests/pool/test_keep tests/pool/test_free_waits tests/pool/test_model tests/pool/test_epochs tests/pool/test_limbo tests/pool/test_placement tests/pool/test_pins tests/pool/test_near tests/pool/test_threads tests/pool/test_vmm tests/pool/test_vmm_long tests/pool/test_streams tests/pool/test_waits tests/pool/test_returns tests/pool/test_rest tests/pool/test_clock tests/pool/test_whole
check_PROGRAMS += tests/pool/replay
tests_pool_test_clock_LDADD = $(ms_pool_libs)
tests_pool_test_keep_LDADD = $(ms_pool_libs)
tests_pool_test_limits_LDADD = $(ms_pool_libs)
tests_pool_test_free_waits_LDADD = $(ms_pool_libs)
tests_pool_test_model_LDADD = $(ms_pool_libs)
tests_pool_test_limbo_LDADD = $(ms_pool_libs)
tests_pool_test_epochs_LDADD = $(ms_pool_libs)
tests_pool_test_placement_LDADD = $(ms_pool_libs)
tests_pool_test_near_LDADD = $(ms_pool_libs)
tests_pool_test_pins_LDADD = $(ms_pool_libs)
tests_pool_test_vmm_LDADD = $(ms_pool_libs)
tests_pool_test_vmm_long_LDADD = $(ms_pool_libs)
tests_pool_test_threads_LDADD = $(ms_pool_libs)
tests_pool_test_streams_LDADD = $(ms_pool_libs)
tests_pool_test_waits_LDADD = $(ms_pool_libs)
tests_pool_test_returns_LDADD = $(ms_pool_libs)
tests_pool_test_rest_LDADD = $(ms_pool_libs)
# A tool: reserved peak, vendor calls and least capacity of traces, over the same driver.
tests_pool_replay_LDADD = $(ms_pool_libs)
dist_check_SCRIPTS += tests/pool/replay.sh tests/pool/params.py
tests_pool_test_whole_LDADD = $(ms_pool_libs)
EXTRA_DIST += tests/pool/calls.h tests/pool/one_context.h tests/pool/vmm.h
