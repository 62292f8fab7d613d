# tests/faults: the driver refuses one call after another while memory is served
check_PROGRAMS += tests/faults/consistent tests/faults/other_kind tests/faults/streams
tests_faults_streams_LDADD = libcudart.so.13 libcuda.so.1
tests_faults_other_kind_LDADD = libcudart.so.13 libcuda.so.1
tests_faults_consistent_LDADD = libcudart.so.13 libcuda.so.1

EXTRA_DIST += tests/faults/judge.py tests/faults/tell.h
dist_check_SCRIPTS += tests/faults/faults.py tests/faults/streams.py
