# tests/oom: out of memory in planted ways
check_PROGRAMS += tests/oom/oom_user
tests_oom_oom_user_SOURCES = tests/oom/oom_user.c tests/program.h include/memshim.h
tests_oom_oom_user_CFLAGS = $(AM_CFLAGS) -g
tests_oom_oom_user_LDADD = libcudart.so.13
dist_check_SCRIPTS += tests/oom/oom.py
TESTS += tests/oom/oom.py
