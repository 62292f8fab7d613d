# tests/share: processes on one device
ms_test_programs += tests/share/test_page tests/share/test_processes tests/share/test_deaths
EXTRA_DIST += tests/share/share.h tests/share/scene.py
check_PROGRAMS += tests/share/guest tests/share/machine.so
tests_share_guest_LDADD = libcudart.so.13 libcuda.so.1
tests_share_machine_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_share_machine_so_LDFLAGS = -shared
tests_share_machine_so_LDADD =
dist_check_SCRIPTS += tests/share/neighbours.py tests/share/crowd.py tests/share/host_floor.py tests/share/recipes.py
