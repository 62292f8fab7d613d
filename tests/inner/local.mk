# tests/inner: pieces of segments that an allocator of the program's own gives it
check_PROGRAMS += tests/inner/libc10.so tests/inner/libc10_cuda.so tests/inner/inner_user
tests_inner_libc10_so_SOURCES = tests/inner/c10.c tests/inner/c10.h
tests_inner_libc10_so_CFLAGS = $(ms_module_cflags)
tests_inner_libc10_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libc10.so
tests_inner_libc10_cuda_so_SOURCES = tests/inner/c10_cuda.c tests/inner/c10.h
tests_inner_libc10_cuda_so_CFLAGS = $(ms_module_cflags)
tests_inner_libc10_cuda_so_LDFLAGS = $(AM_LDFLAGS) $(ms_module) -Wl,-soname,libc10_cuda.so
tests_inner_libc10_cuda_so_LDADD = tests/inner/libc10.so libcudart.so.13
tests_inner_inner_user_SOURCES = tests/inner/inner_user.c tests/inner/c10.h
tests_inner_inner_user_LDADD = libcudart.so.13 -ldl
dist_check_SCRIPTS += tests/inner/inner.py tests/inner/sound.py tests/inner/limits.py tests/inner/live.py
EXTRA_DIST += tests/inner/innerlib.py

# NVTX's extension for memory
check_PROGRAMS += tests/inner/regions_user
tests_inner_regions_user_SOURCES = tests/inner/regions_user.c tests/inner/regions.h tests/program.h
tests_inner_regions_user_LDADD = libcudart.so.13 -ldl
dist_check_SCRIPTS += tests/inner/regions.py
dist_check_SCRIPTS += tests/inner/cxx.py
EXTRA_DIST += tests/inner/arena_user.cc
dist_check_SCRIPTS += tests/inner/host.py
