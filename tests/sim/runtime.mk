# tests/sim: the simulated CUDA runtime; see docs/testing.md
sim_test_cppflags = $(AM_CPPFLAGS)
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
