# tests/acl: the Ascend interface, on the simulator, and on it under memshim
acl_tests = tests/acl/calls tests/acl/share
check_PROGRAMS += $(acl_tests)
TESTS += $(acl_tests)
acl_sources = tests/tap.h tests/acl/acl_test.h
acl_ldflags = $(AM_LDFLAGS) -pthread -Wl,-rpath,$(abs_builddir)

tests_acl_calls_SOURCES = tests/acl/calls.c $(acl_sources)
tests_acl_calls_LDFLAGS = $(acl_ldflags)
tests_acl_calls_LDADD = libascendcl.so
tests_acl_share_SOURCES = tests/acl/share.c $(acl_sources)
tests_acl_share_LDFLAGS = $(acl_ldflags)
tests_acl_share_LDADD = libascendcl.so

TESTS += tests/acl/equal.sh tests/acl/exports.sh tests/acl/mixed.sh tests/acl/recycle.sh tests/acl/rows.sh tests/acl/torch.sh tests/acl/work.sh
dist_check_SCRIPTS += tests/acl/equal.sh tests/acl/exports.sh tests/acl/mixed.sh tests/acl/recycle.sh tests/acl/rows.sh tests/acl/torch.sh tests/acl/work.sh

check_PROGRAMS += tests/acl/recycle
tests_acl_recycle_SOURCES = tests/acl/recycle.c $(acl_sources)
tests_acl_recycle_LDFLAGS = $(acl_ldflags)
tests_acl_recycle_LDADD = libascendcl.so -ldl

check_PROGRAMS += tests/acl/torch
tests_acl_torch_SOURCES = tests/acl/torch.c
tests_acl_torch_LDADD = -ldl

check_PROGRAMS += tests/acl/work tests/acl/mixed
tests_acl_work_SOURCES = tests/acl/work.c $(acl_sources)
tests_acl_work_LDFLAGS = $(acl_ldflags)
tests_acl_work_LDADD = libascendcl.so
tests_acl_mixed_SOURCES = tests/acl/mixed.c $(acl_sources)
tests_acl_mixed_LDADD = -ldl
