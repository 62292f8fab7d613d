# tests/traps: what programs rely on in the vendor's allocator, natively and under memshim; see docs/user/differences.md
check_PROGRAMS += tests/traps/traps
tests_traps_traps_SOURCES = tests/traps/traps.c tests/traps/traps.h tests/traps/order.c tests/traps/free.c \
	tests/traps/identity.c tests/traps/capture.c tests/traps/figures.c tests/traps/life.c \
	tests/traps/misc.c tests/traps/share.c
tests_traps_traps_LDADD = libcudart.so.13 libcuda.so.1

dist_check_SCRIPTS += tests/traps/traps.py
