# tests/faults: the driver refuses one call after another while memory is served
check_PROGRAMS += tests/faults/consistent
tests_faults_consistent_SOURCES = tests/faults/consistent.c
tests_faults_consistent_LDADD = libcudart.so.13 libcuda.so.1

dist_check_SCRIPTS += tests/faults/faults.py
TESTS += tests/faults/faults.py
