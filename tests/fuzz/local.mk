# tests/fuzz: readers of what others wrote. Under make check each is driven for two seconds by driver.c; scripts/fuzz drives them longer.
ms_fuzz_common = tests/fuzz/fuzz.h tests/fuzz/file.c tests/fuzz/driver.c
ms_test_programs += tests/fuzz/fuzz_options tests/fuzz/fuzz_token
tests_fuzz_fuzz_token_SOURCES = tests/fuzz/fuzz_token.c $(ms_fuzz_common)
tests_fuzz_fuzz_options_SOURCES = tests/fuzz/fuzz_options.c $(ms_fuzz_common)
if BUILD_CLI
ms_test_programs += tests/fuzz/fuzz_report tests/fuzz/fuzz_ledger tests/fuzz/fuzz_trace
tests_fuzz_fuzz_trace_SOURCES = tests/fuzz/fuzz_trace.c $(ms_fuzz_common)
tests_fuzz_fuzz_trace_LDADD = $(ms_command_libs)
tests_fuzz_fuzz_ledger_SOURCES = tests/fuzz/fuzz_ledger.c $(ms_fuzz_common)
tests_fuzz_fuzz_ledger_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_ledger_LDADD = $(ms_command_libs)
# Names made up in place of the resolver's.
tests_fuzz_fuzz_report_SOURCES = tests/fuzz/fuzz_report.c tests/fuzz/verbs.c tests/fuzz/resolver.c \
	$(ms_fuzz_common)
tests_fuzz_fuzz_report_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_report_LDADD = $(ms_command_libs)
endif
EXTRA_DIST += tests/fuzz/options.dict tests/fuzz/found
