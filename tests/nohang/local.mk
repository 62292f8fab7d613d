# tests/nohang: programs that hold the device end under memshim whenever they end without
check_PROGRAMS += tests/nohang/nohang tests/nohang/nohang_hip
tests_nohang_nohang_SOURCES = tests/nohang/nohang.c tests/nohang/nohang.h tests/nohang/plain.c \
	tests/nohang/full.c tests/nohang/threads.c tests/nohang/streams.c tests/nohang/pools.c \
	tests/nohang/bound.c
tests_nohang_nohang_LDADD = libcudart.so.13 libcuda.so.1
tests_nohang_nohang_hip_SOURCES = $(tests_nohang_nohang_SOURCES) tests/hip/as_cuda.h
tests_nohang_nohang_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_nohang_nohang_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)

dist_check_SCRIPTS += tests/nohang/nohang.py
