# tests/sim: the simulated NCCL; see docs/internals/testing.md
check_PROGRAMS += tests/sim/nccl_calls
tests_sim_nccl_calls_SOURCES = tests/sim/nccl_calls.c tests/tap.h
tests_sim_nccl_calls_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_nccl_calls_LDFLAGS = $(sim_test_ldflags)
tests_sim_nccl_calls_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl
TESTS += tests/sim/nccl_calls

check_PROGRAMS += tests/sim/nccl_processes
tests_sim_nccl_processes_SOURCES = tests/sim/nccl_processes.c tests/tap.h
tests_sim_nccl_processes_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_nccl_processes_LDFLAGS = $(sim_test_ldflags)
tests_sim_nccl_processes_LDADD = libnccl.so.2 libcudart.so.13 -ldl
TESTS += tests/sim/nccl_processes

check_PROGRAMS += tests/sim/nccl_later
tests_sim_nccl_later_SOURCES = tests/sim/nccl_later.c tests/tap.h
tests_sim_nccl_later_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_nccl_later_LDFLAGS = $(sim_test_ldflags)
tests_sim_nccl_later_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl
TESTS += tests/sim/nccl_later

dist_check_SCRIPTS += tests/sim/nccl_exports.sh
TESTS += tests/sim/nccl_exports.sh
