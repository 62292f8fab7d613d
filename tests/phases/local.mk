# tests/phases: what programs name of their own time
check_PROGRAMS += tests/phases/phases_user
tests_phases_phases_user_SOURCES = tests/phases/phases_user.c tests/phases/nvtx_object.h tests/program.h include/memshim.h
tests_phases_phases_user_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_phases_phases_user_LDADD = libcudart.so.13 -ldl
dist_check_SCRIPTS += tests/phases/phases.py tests/phases/packages.py
TESTS += tests/phases/phases.py tests/phases/packages.py
