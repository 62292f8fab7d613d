# tests/ledger: the file of the record, and how processes end; see docs/internals/testing.md
check_PROGRAMS += tests/ledger/churn tests/ledger/ends tests/ledger/many tests/ledger/fakefs.so tests/ledger/slow.so
tests_ledger_churn_LDADD = libcuda.so.1
tests_ledger_ends_LDADD = libcuda.so.1

check_PROGRAMS += tests/ledger/lives_user
tests_ledger_lives_user_LDADD = libcudart.so.13

check_PROGRAMS += tests/ledger/exiting tests/ledger/filtered
tests_ledger_exiting_LDADD = libcuda.so.1

tests_ledger_many_LDADD = libcuda.so.1
tests_ledger_fakefs_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_ledger_fakefs_so_LDFLAGS = -shared
tests_ledger_slow_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_ledger_slow_so_LDFLAGS = -shared

check_PROGRAMS += tests/ledger/liblate.so tests/ledger/late_user
tests_ledger_liblate_so_SOURCES = tests/ledger/late.c
tests_ledger_liblate_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_ledger_liblate_so_LDFLAGS = -shared
tests_ledger_liblate_so_LDADD = libcuda.so.1
tests_ledger_late_user_LDADD = tests/ledger/liblate.so libcuda.so.1

ms_ledger_tests = tests/ledger/late.sh tests/ledger/kills.py tests/ledger/lives.py tests/ledger/exiting.py tests/ledger/filtered.sh tests/ledger/ends.py tests/ledger/trace.py tests/ledger/foreign.py tests/ledger/stale.py tests/ledger/damaged.py tests/ledger/moments.py tests/ledger/places.sh
dist_check_SCRIPTS += $(ms_ledger_tests)

check_PROGRAMS += tests/ledger/steps
tests_ledger_steps_LDADD = libcudart.so.13
EXTRA_DIST += tests/ledger/watched.py tests/ledger/ledgerfile.py tests/ledger/needs.py tests/ledger/opened.py

# A process that goes on, looked at by memshim snapshot, top and metrics.
dist_check_SCRIPTS += tests/ledger/snapshot.bats tests/ledger/metrics.py tests/ledger/top.py
