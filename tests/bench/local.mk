# tests/bench: the programs that scripts/bench runs, and a test that they run
check_PROGRAMS += tests/bench/follow
tests_bench_follow_SOURCES = tests/bench/follow.c
tests_bench_follow_LDADD = libcudart.so.13 libcuda.so.1
tests_bench_follow_LDFLAGS = $(AM_LDFLAGS) -pthread

dist_check_SCRIPTS += tests/bench/bench.py
TESTS += tests/bench/bench.py
