# tests/cli: the memshim command, one file per verb.
EXTRA_DIST += tests/cli/helpers.bash tests/cli/data/train.json $(ms_cli_tests)
ms_cli_tests = tests/cli/usage.bats tests/cli/summary.bats tests/cli/leaks.bats tests/cli/damaged.bats \
	tests/cli/env.bats
TESTS += $(ms_cli_tests)

# Always with debug information and inlining, whatever the build's flags are: that is what it is about.
check_PROGRAMS += tests/cli/self_report
tests_cli_self_report_SOURCES = tests/cli/self_report.c
tests_cli_self_report_CFLAGS = $(AM_CFLAGS) -g -O2
