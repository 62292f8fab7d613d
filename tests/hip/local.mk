# tests/hip: HIP, on its simulated runtimes and on whatever of the real one is there; see docs/internals/testing.md
# Built once for each version of the library.
ms_test_programs += tests/hip/conform_5 tests/hip/conform_6 tests/hip/conform_7
tests_hip_conform_5_SOURCES = tests/hip/conform.c tests/tap.h
tests_hip_conform_5_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=5
tests_hip_conform_5_LDADD = libamdhip64.so.5 $(MS_BESIDE_ALL)
tests_hip_conform_6_SOURCES = tests/hip/conform.c tests/tap.h
tests_hip_conform_6_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=6
tests_hip_conform_6_LDADD = libamdhip64.so.6 $(MS_BESIDE_ALL)
tests_hip_conform_7_SOURCES = tests/hip/conform.c tests/tap.h
tests_hip_conform_7_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_HIP=7
tests_hip_conform_7_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)

ms_test_programs += tests/hip/first
tests_hip_first_LDADD = libamdhip64.so.6 -ldl $(MS_BESIDE_ALL)

dist_check_SCRIPTS += tests/hip/versions.sh
EXTRA_DIST += tests/hip/real.sh tests/hip/no_device.py tests/hip/later.h tests/hip/figures.h

check_PROGRAMS += tests/hip/hooks tests/hip/probe tests/hip/execution
tests_hip_execution_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)
tests_hip_hooks_LDADD = libamdhip64.so.6 -ldl $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/hip/hooks.sh
check_PROGRAMS += tests/hip/answers_5 tests/hip/answers_7
tests_hip_answers_5_SOURCES = tests/hip/answers.c
tests_hip_answers_5_LDADD = libamdhip64.so.5 $(MS_BESIDE_ALL)
tests_hip_answers_7_SOURCES = tests/hip/answers.c
tests_hip_answers_7_LDADD = libamdhip64.so.7 $(MS_BESIDE_ALL)

# A runtime that has another way to begin a capture.
check_PROGRAMS += tests/hip/later/libamdhip64.so.6 tests/hip/later_user tests/hip/later_linked
tests_hip_later_libamdhip64_so_6_SOURCES = tests/hip/later_library.c tests/hip/later.h tests/hip/figures.h
tests_hip_later_libamdhip64_so_6_CFLAGS = $(ms_module_cflags)
tests_hip_later_libamdhip64_so_6_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libamdhip64.so.6
tests_hip_later_user_LDADD = tests/hip/later/libamdhip64.so.6 -ldl
tests_hip_later_linked_SOURCES = tests/hip/later_user.c tests/hip/later.h tests/hip/figures.h
tests_hip_later_linked_CPPFLAGS = $(AM_CPPFLAGS) -DLATER_LINKED
tests_hip_later_linked_LDADD = tests/hip/later/libamdhip64.so.6 -ldl
dist_check_SCRIPTS += tests/hip/later.sh

# PyTorch's allocators, and rocBLAS's handles in threads.
check_PROGRAMS += tests/hip/torch_allocator
tests_hip_torch_allocator_LDADD = libamdhip64.so.6 -ldl $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/hip/allocators.py

check_PROGRAMS += tests/hip/rocblas
tests_hip_rocblas_LDADD = libamdhip64.so.6 -ldl $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/hip/rocblas.sh

# Calls that are answered out of what a thread has at hand.
check_PROGRAMS += tests/hip/direct_5 tests/hip/direct_6 tests/hip/direct_7
tests_hip_direct_5_SOURCES = tests/hip/direct.c
tests_hip_direct_5_LDADD = libamdhip64.so.5 -ldl $(MS_BESIDE_ALL)
tests_hip_direct_6_SOURCES = tests/hip/direct.c
tests_hip_direct_6_LDADD = libamdhip64.so.6 -ldl $(MS_BESIDE_ALL)
tests_hip_direct_7_SOURCES = tests/hip/direct.c
tests_hip_direct_7_LDADD = libamdhip64.so.7 -ldl $(MS_BESIDE_ALL)
dist_check_SCRIPTS += tests/hip/direct.sh

check_PROGRAMS += tests/hip/ipc
tests_hip_ipc_LDADD = libamdhip64.so.6 $(MS_BESIDE_ALL)
