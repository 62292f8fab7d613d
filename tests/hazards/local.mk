# tests/hazards: late work on blocks that were freed, from many streams, threads and devices
check_PROGRAMS += tests/hazards/hazards
tests_hazards_hazards_SOURCES = tests/hazards/hazards.c tests/hazards/hazards.h tests/hazards/work.c \
	tests/hazards/ordered.c tests/hazards/captures.c tests/hazards/ends.c
tests_hazards_hazards_LDADD = libcudart.so.13 libcuda.so.1

# The same with HIP.
check_PROGRAMS += tests/hazards/hazards_hip
tests_hazards_hazards_hip_SOURCES = $(tests_hazards_hazards_SOURCES) tests/hip/as_cuda.h
tests_hazards_hazards_hip_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_hazards_hazards_hip_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)

dist_check_SCRIPTS += tests/hazards/hazards.py
