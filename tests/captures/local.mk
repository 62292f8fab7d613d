# tests/captures: what other threads do leaves captures alone; see docs/internals/testing.md
check_PROGRAMS += tests/captures/beside tests/captures/beside_hip
tests_captures_beside_SOURCES = tests/captures/beside.c
tests_captures_beside_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_captures_beside_LDADD = libcudart.so.13 libcuda.so.1 -ldl
tests_captures_beside_hip_SOURCES = tests/captures/beside_hip.c
tests_captures_beside_hip_LDFLAGS = $(hip_test_ldflags)
tests_captures_beside_hip_LDADD = libamdhip64.so.6
dist_check_SCRIPTS += tests/captures/beside.py
TESTS += tests/captures/beside.py
