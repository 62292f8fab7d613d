# tests/sim: the simulated CUDA runtime; see docs/internals/testing.md
# The runtime is found beside the tests, and so is the driver it opens: that takes a DT_RPATH, not a RUNPATH.
sim_test_ldflags = $(AM_LDFLAGS) -pthread -Wl,--disable-new-dtags,-rpath,$(abs_top_builddir)

check_PROGRAMS += tests/sim/fake/libcuda.so.1
tests_sim_fake_libcuda_so_1_SOURCES = tests/sim/fake_driver.c tests/sim/fake_driver.h
tests_sim_fake_libcuda_so_1_CFLAGS = $(AM_CFLAGS) -fPIC
tests_sim_fake_libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1

check_PROGRAMS += tests/sim/runtime_lookup
tests_sim_runtime_lookup_SOURCES = tests/sim/runtime_lookup.c tests/sim/fake_driver.h tests/tap.h
tests_sim_runtime_lookup_LDADD = -ldl
TESTS += tests/sim/runtime_lookup

dist_check_SCRIPTS += tests/sim/runtime_exports.sh
TESTS += tests/sim/runtime_exports.sh

# Each of these is built twice, against either version of the runtime.

check_PROGRAMS += tests/sim/runtime_memory_13
tests_sim_runtime_memory_13_SOURCES = tests/sim/runtime_memory.c tests/tap.h
tests_sim_runtime_memory_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_memory_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_memory_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_memory_13

check_PROGRAMS += tests/sim/runtime_memory_12
tests_sim_runtime_memory_12_SOURCES = tests/sim/runtime_memory.c tests/tap.h
tests_sim_runtime_memory_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_memory_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_memory_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_memory_12

check_PROGRAMS += tests/sim/runtime_copy_13
tests_sim_runtime_copy_13_SOURCES = tests/sim/runtime_copy.c tests/tap.h
tests_sim_runtime_copy_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_copy_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_copy_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_copy_13

check_PROGRAMS += tests/sim/runtime_copy_12
tests_sim_runtime_copy_12_SOURCES = tests/sim/runtime_copy.c tests/tap.h
tests_sim_runtime_copy_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_copy_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_copy_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_copy_12

check_PROGRAMS += tests/sim/runtime_stream_13
tests_sim_runtime_stream_13_SOURCES = tests/sim/runtime_stream.c tests/tap.h
tests_sim_runtime_stream_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_stream_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_stream_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_stream_13

check_PROGRAMS += tests/sim/runtime_stream_12
tests_sim_runtime_stream_12_SOURCES = tests/sim/runtime_stream.c tests/tap.h
tests_sim_runtime_stream_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_stream_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_stream_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_stream_12

check_PROGRAMS += tests/sim/runtime_device_13
tests_sim_runtime_device_13_SOURCES = tests/sim/runtime_device.c tests/tap.h
tests_sim_runtime_device_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_device_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_device_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_device_13

check_PROGRAMS += tests/sim/runtime_device_12
tests_sim_runtime_device_12_SOURCES = tests/sim/runtime_device.c tests/tap.h
tests_sim_runtime_device_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_device_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_device_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_device_12

check_PROGRAMS += tests/sim/runtime_share_13
tests_sim_runtime_share_13_SOURCES = tests/sim/runtime_share.c tests/tap.h
tests_sim_runtime_share_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_share_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_share_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_share_13

check_PROGRAMS += tests/sim/runtime_share_12
tests_sim_runtime_share_12_SOURCES = tests/sim/runtime_share.c tests/tap.h
tests_sim_runtime_share_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_share_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_share_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_share_12

dist_check_SCRIPTS += tests/sim/runtime_vendor.sh
EXTRA_DIST += tests/sim/vendor/plain.c tests/sim/vendor/kernel.cu
TESTS += tests/sim/runtime_vendor.sh

check_PROGRAMS += tests/sim/runtime_kernel_13
tests_sim_runtime_kernel_13_SOURCES = tests/sim/runtime_kernel.c tests/sim/kernels.h tests/tap.h
tests_sim_runtime_kernel_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_kernel_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_kernel_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_kernel_13

check_PROGRAMS += tests/sim/runtime_kernel_12
tests_sim_runtime_kernel_12_SOURCES = tests/sim/runtime_kernel.c tests/sim/kernels.h tests/tap.h
tests_sim_runtime_kernel_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_kernel_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_kernel_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_kernel_12

check_PROGRAMS += tests/sim/runtime_graph_13
tests_sim_runtime_graph_13_SOURCES = tests/sim/runtime_graph.c tests/sim/kernels.h tests/tap.h
tests_sim_runtime_graph_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_runtime_graph_13_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_graph_13_LDADD = libcudart.so.13 -ldl
TESTS += tests/sim/runtime_graph_13

check_PROGRAMS += tests/sim/runtime_graph_12
tests_sim_runtime_graph_12_SOURCES = tests/sim/runtime_graph.c tests/sim/kernels.h tests/tap.h
tests_sim_runtime_graph_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_runtime_graph_12_LDFLAGS = $(sim_test_ldflags)
tests_sim_runtime_graph_12_LDADD = libcudart.so.12 -ldl
TESTS += tests/sim/runtime_graph_12

# The static runtime, in a program beside a library that has the shared one.
check_PROGRAMS += tests/sim/beside/libbeside.so tests/sim/static_12 tests/sim/static_13
tests_sim_beside_libbeside_so_SOURCES = tests/sim/static_beside.c
tests_sim_beside_libbeside_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_sim_beside_libbeside_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libbeside.so
tests_sim_beside_libbeside_so_LDADD = libcudart.so.13
sim_static_ldflags = $(AM_LDFLAGS) -pthread -Wl,-rpath,$(abs_builddir)/tests/sim/beside -Wl,-rpath-link,$(abs_builddir)
tests_sim_static_12_SOURCES = tests/sim/static_user.c
tests_sim_static_12_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=12
tests_sim_static_12_CFLAGS = $(AM_CFLAGS) -g
tests_sim_static_12_LDFLAGS = $(sim_static_ldflags)
tests_sim_static_12_LDADD = tests/sim/beside/libbeside.so cuda12/libcudart_static.a -ldl
tests_sim_static_13_SOURCES = tests/sim/static_user.c
tests_sim_static_13_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_static_13_CFLAGS = $(AM_CFLAGS) -g
tests_sim_static_13_LDFLAGS = $(sim_static_ldflags)
tests_sim_static_13_LDADD = tests/sim/beside/libbeside.so libcudart_static.a -ldl
dist_check_SCRIPTS += tests/sim/static.bats
TESTS += tests/sim/static.bats
