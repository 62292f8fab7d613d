# tests/captures: what other threads do leaves captures alone; see docs/internals/testing.md
check_PROGRAMS += tests/captures/beside tests/captures/beside_hip
tests_captures_beside_LDADD = libcudart.so.13 libcuda.so.1 -ldl
tests_captures_beside_hip_LDADD = libamdhip64.so.6 $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/captures/beside.py
