# tests/nohang: programs that hold the device end under memshim whenever they end without
check_PROGRAMS += tests/nohang/nohang
tests_nohang_nohang_SOURCES = tests/nohang/nohang.c tests/nohang/nohang.h tests/nohang/plain.c \
	tests/nohang/full.c tests/nohang/threads.c tests/nohang/streams.c tests/nohang/pools.c \
	tests/nohang/bound.c
tests_nohang_nohang_LDADD = libcudart.so.13 libcuda.so.1

dist_check_SCRIPTS += tests/nohang/nohang.py
