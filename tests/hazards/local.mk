# tests/hazards: late work on blocks that were freed, from many streams, threads and devices
check_PROGRAMS += tests/hazards/hazards
tests_hazards_hazards_SOURCES = tests/hazards/hazards.c tests/hazards/hazards.h tests/hazards/work.c \
	tests/hazards/ordered.c tests/hazards/captures.c tests/hazards/ends.c
tests_hazards_hazards_LDADD = libcudart.so.13 libcuda.so.1

dist_check_SCRIPTS += tests/hazards/hazards.py
