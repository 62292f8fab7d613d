# tests/oom: out of memory in planted ways
check_PROGRAMS += tests/oom/oom_user
tests_oom_oom_user_SOURCES = tests/oom/oom_user.c tests/oom/ask.c tests/oom/ask.h tests/program.h \
	include/memshim.h
tests_oom_oom_user_CFLAGS = $(AM_CFLAGS) -g
tests_oom_oom_user_LDADD = libcudart.so.13 libcuda.so.1
check_PROGRAMS += tests/oom/front
dist_check_SCRIPTS += tests/oom/oom.py tests/oom/kinds.py tests/oom/fronts.py
EXTRA_DIST += tests/oom/oomlib.py
