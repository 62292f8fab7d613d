# tests/limbo: frees that find more in limbo than may be there: they wait, and no longer than they should
check_PROGRAMS += tests/limbo/limbo
tests_limbo_limbo_SOURCES = tests/limbo/limbo.c
tests_limbo_limbo_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_limbo_limbo_LDADD = libcudart.so.13 libcuda.so.1

dist_check_SCRIPTS += tests/limbo/limbo.py
TESTS += tests/limbo/limbo.py
