# tests/check: memshim check and suppress, and the gates of memshim run
check_PROGRAMS += tests/check/check_user
tests_check_check_user_CFLAGS = $(AM_CFLAGS) -g -O1
tests_check_check_user_LDADD = libcudart.so.13
dist_check_SCRIPTS += tests/check/check.bats tests/check/formats.py tests/check/job.py tests/check/damaged.py
EXTRA_DIST += tests/check/opened.py tests/check/sarif.schema.json tests/clients/requirements/checks.txt
