# tests/faults: the driver refuses one call after another while memory is served
check_PROGRAMS += tests/faults/consistent tests/faults/other_kind tests/faults/streams
tests_faults_streams_SOURCES = tests/faults/streams.c tests/faults/tell.h
tests_faults_streams_LDADD = libcudart.so.13 libcuda.so.1
tests_faults_other_kind_SOURCES = tests/faults/other_kind.c
tests_faults_other_kind_LDADD = libcudart.so.13 libcuda.so.1
tests_faults_consistent_SOURCES = tests/faults/consistent.c tests/faults/tell.h
tests_faults_consistent_LDADD = libcudart.so.13 libcuda.so.1

EXTRA_DIST += tests/faults/judge.py

dist_check_SCRIPTS += tests/faults/faults.py tests/faults/streams.py
TESTS += tests/faults/faults.py tests/faults/streams.py
