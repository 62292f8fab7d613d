# tests/sim: the simulated cuBLAS and cuBLASLt; see docs/internals/testing.md
check_PROGRAMS += tests/sim/cublas_12 tests/sim/cublas_13
sim_cublas_test = tests/sim/cublas.c $(sim_driver_sources)
tests_sim_cublas_12_SOURCES = $(sim_cublas_test)
tests_sim_cublas_12_LDFLAGS = $(sim_driver_ldflags)
tests_sim_cublas_12_LDADD = libcublas.so.12 libcublasLt.so.12 libcuda.so.1
tests_sim_cublas_13_SOURCES = $(sim_cublas_test)
tests_sim_cublas_13_LDFLAGS = $(sim_driver_ldflags)
tests_sim_cublas_13_LDADD = libcublas.so.13 libcublasLt.so.13 libcuda.so.1
TESTS += tests/sim/cublas_12 tests/sim/cublas_13

check_PROGRAMS += tests/sim/cublas_compute_12 tests/sim/cublas_compute_13
tests_sim_cublas_compute_12_SOURCES = tests/sim/cublas_compute.c $(sim_driver_sources)
tests_sim_cublas_compute_12_LDFLAGS = $(sim_driver_ldflags)
tests_sim_cublas_compute_12_LDADD = libcublas.so.12 libcublasLt.so.12 libcuda.so.1
tests_sim_cublas_compute_13_SOURCES = tests/sim/cublas_compute.c $(sim_driver_sources)
tests_sim_cublas_compute_13_LDFLAGS = $(sim_driver_ldflags)
tests_sim_cublas_compute_13_LDADD = libcublas.so.13 libcublasLt.so.13 libcuda.so.1
TESTS += tests/sim/cublas_compute_12 tests/sim/cublas_compute_13

dist_check_SCRIPTS += tests/sim/cublas_exports.sh
TESTS += tests/sim/cublas_exports.sh
