# tests/unit: tests listed here run under make check; see docs/testing.md
#
# The floors below the hooks, as they are compiled into the shim.
check_LIBRARIES = tests/unit/libmsfloor.a
tests_unit_libmsfloor_a_SOURCES = $(BASE_SOURCES) $(STACK_SOURCES) $(LEDGER_SOURCES)
tests_unit_libmsfloor_a_CFLAGS = $(AM_CFLAGS) $(MS_PIC_CFLAGS)

ms_unit_tests = tests/unit/test_arena
check_PROGRAMS += $(ms_unit_tests)
TESTS += $(ms_unit_tests)

tests_unit_test_arena_SOURCES = tests/unit/test_arena.c tests/tap.h
tests_unit_test_arena_LDADD = tests/unit/libmsfloor.a
