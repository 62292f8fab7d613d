# tests/sim: the simulated CUDA runtime; see docs/internals/testing.md
check_PROGRAMS += tests/sim/fake/libcuda.so.1
tests_sim_fake_libcuda_so_1_SOURCES = tests/sim/fake_driver.c tests/sim/fake_driver.h
tests_sim_fake_libcuda_so_1_CFLAGS = $(AM_CFLAGS) -fPIC
tests_sim_fake_libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1

ms_test_programs += tests/sim/runtime_lookup
dist_check_SCRIPTS += tests/sim/runtime_exports.sh tests/sim/runtime_vendor.sh
EXTRA_DIST += tests/sim/vendor/plain.c tests/sim/vendor/kernel.cu

# Each of these is built twice, against either version of the runtime.
sim_runtime_tests = tests/sim/runtime_copy tests/sim/runtime_device tests/sim/runtime_graph tests/sim/runtime_kernel \
	tests/sim/runtime_memory tests/sim/runtime_share tests/sim/runtime_stream
ms_test_programs += $(sim_runtime_tests:=_12) $(sim_runtime_tests:=_13)
sim_runtime_12 = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
sim_runtime_12_libs = libcudart.so.12 -ldl $(MS_BESIDE_ALL)
sim_runtime_13_libs = libcudart.so.13 -ldl $(MS_BESIDE_ALL)
tests_sim_runtime_copy_12_SOURCES = tests/sim/runtime_copy.c
tests_sim_runtime_copy_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_copy_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_copy_13_SOURCES = tests/sim/runtime_copy.c
tests_sim_runtime_copy_13_LDADD = $(sim_runtime_13_libs)
tests_sim_runtime_device_12_SOURCES = tests/sim/runtime_device.c
tests_sim_runtime_device_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_device_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_device_13_SOURCES = tests/sim/runtime_device.c
tests_sim_runtime_device_13_LDADD = $(sim_runtime_13_libs)
tests_sim_runtime_graph_12_SOURCES = tests/sim/runtime_graph.c
tests_sim_runtime_graph_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_graph_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_graph_13_SOURCES = tests/sim/runtime_graph.c
tests_sim_runtime_graph_13_LDADD = $(sim_runtime_13_libs)
tests_sim_runtime_kernel_12_SOURCES = tests/sim/runtime_kernel.c
tests_sim_runtime_kernel_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_kernel_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_kernel_13_SOURCES = tests/sim/runtime_kernel.c
tests_sim_runtime_kernel_13_LDADD = $(sim_runtime_13_libs)
tests_sim_runtime_memory_12_SOURCES = tests/sim/runtime_memory.c
tests_sim_runtime_memory_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_memory_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_memory_13_SOURCES = tests/sim/runtime_memory.c
tests_sim_runtime_memory_13_LDADD = $(sim_runtime_13_libs)
tests_sim_runtime_share_12_SOURCES = tests/sim/runtime_share.c
tests_sim_runtime_share_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_share_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_share_13_SOURCES = tests/sim/runtime_share.c
tests_sim_runtime_share_13_LDADD = $(sim_runtime_13_libs)
tests_sim_runtime_stream_12_SOURCES = tests/sim/runtime_stream.c
tests_sim_runtime_stream_12_CPPFLAGS = $(sim_runtime_12)
tests_sim_runtime_stream_12_LDADD = $(sim_runtime_12_libs)
tests_sim_runtime_stream_13_SOURCES = tests/sim/runtime_stream.c
tests_sim_runtime_stream_13_LDADD = $(sim_runtime_13_libs)

# The static runtime, in a program beside a library that has the shared one.
check_PROGRAMS += tests/sim/beside/libbeside.so tests/sim/static_12 tests/sim/static_13
tests_sim_beside_libbeside_so_SOURCES = tests/sim/static_beside.c
tests_sim_beside_libbeside_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_sim_beside_libbeside_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libbeside.so
tests_sim_beside_libbeside_so_LDADD = libcudart.so.13
sim_static_ldflags = $(AM_LDFLAGS) -Wl,-rpath,$(abs_builddir)/tests/sim/beside -Wl,-rpath-link,$(abs_builddir)
tests_sim_static_12_SOURCES = tests/sim/static_user.c
tests_sim_static_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_static_12_CFLAGS = $(AM_CFLAGS) -g
tests_sim_static_12_LDFLAGS = $(sim_static_ldflags)
tests_sim_static_12_LDADD = tests/sim/beside/libbeside.so cuda12/libcudart_static.a -ldl
tests_sim_static_13_SOURCES = tests/sim/static_user.c
tests_sim_static_13_CFLAGS = $(AM_CFLAGS) -g
tests_sim_static_13_LDFLAGS = $(sim_static_ldflags)
tests_sim_static_13_LDADD = tests/sim/beside/libbeside.so libcudart_static.a -ldl
dist_check_SCRIPTS += tests/sim/static.bats
