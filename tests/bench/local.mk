# tests/bench: the programs that scripts/bench runs, and a test that they run
check_PROGRAMS += tests/bench/follow tests/bench/live
tests_bench_follow_SOURCES = tests/bench/follow.c tests/bench/chain.h
tests_bench_follow_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_bench_follow_LDADD = libcudart.so.13 libcuda.so.1
tests_bench_follow_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_bench_live_SOURCES = tests/bench/live.c
tests_bench_live_LDADD = libcuda.so.1

dist_check_SCRIPTS += tests/bench/bench.py
TESTS += tests/bench/bench.py
