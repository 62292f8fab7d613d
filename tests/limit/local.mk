# tests/limit: MEMSHIM_LIMIT against every function that allocates, threads, and programs that size themselves
check_PROGRAMS += tests/limit/calls
tests_limit_calls_SOURCES = tests/limit/calls.c tests/limit/rows.h tests/limit/rows_cuda.c tests/limit/rows_hip.c \
	tests/limit/rows_acl.c
tests_limit_calls_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 libamdhip64.so.7 libascendcl.so -ldl $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/limit/table.py
check_PROGRAMS += tests/limit/race
tests_limit_race_LDADD = libcudart.so.13 libcuda.so.1 -ldl -lpthread
dist_check_SCRIPTS += tests/limit/race.py
check_PROGRAMS += tests/limit/sizes
tests_limit_sizes_LDADD = libcudart.so.13 libcuda.so.1 -ldl
check_PROGRAMS += tests/limit/sizes_hip
tests_limit_sizes_hip_SOURCES = tests/limit/sizes.c tests/hip/as_cuda.h
tests_limit_sizes_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_limit_sizes_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/limit/sizes.py
