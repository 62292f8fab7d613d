# tests/share: processes on one device
ms_test_programs += tests/share/test_page tests/share/test_processes tests/share/test_deaths
EXTRA_DIST += tests/share/share.h
check_PROGRAMS += tests/share/guest
tests_share_guest_LDADD = libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/share/neighbours.py
