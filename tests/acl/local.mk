# tests/acl: the Ascend interface, on the simulator, and on it under memshim
ms_test_programs += tests/acl/calls tests/acl/share
check_PROGRAMS += tests/acl/mixed tests/acl/recycle tests/acl/torch tests/acl/work
dist_check_SCRIPTS += tests/acl/equal.sh tests/acl/exports.sh tests/acl/mixed.sh tests/acl/recycle.sh tests/acl/rows.sh tests/acl/torch.sh tests/acl/work.sh
EXTRA_DIST += tests/acl/acl_test.h
tests_acl_calls_LDADD = libascendcl.so $(MS_BESIDE)
tests_acl_recycle_LDADD = libascendcl.so -ldl $(MS_BESIDE)
tests_acl_share_LDADD = libascendcl.so $(MS_BESIDE)
tests_acl_work_LDADD = libascendcl.so $(MS_BESIDE)
