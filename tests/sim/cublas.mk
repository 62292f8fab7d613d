# tests/sim: the simulated cuBLAS and cuBLASLt; see docs/internals/testing.md
ms_test_programs += tests/sim/cublas_12 tests/sim/cublas_13 tests/sim/cublas_compute_12 tests/sim/cublas_compute_13
tests_sim_cublas_12_SOURCES = tests/sim/cublas.c
tests_sim_cublas_12_LDADD = libcublas.so.12 libcublasLt.so.12 libcuda.so.1 $(MS_BESIDE)
tests_sim_cublas_13_SOURCES = tests/sim/cublas.c
tests_sim_cublas_13_LDADD = libcublas.so.13 libcublasLt.so.13 libcuda.so.1 $(MS_BESIDE)

tests_sim_cublas_compute_12_SOURCES = tests/sim/cublas_compute.c
tests_sim_cublas_compute_12_LDADD = libcublas.so.12 libcublasLt.so.12 libcuda.so.1 $(MS_BESIDE)
tests_sim_cublas_compute_13_SOURCES = tests/sim/cublas_compute.c
tests_sim_cublas_compute_13_LDADD = libcublas.so.13 libcublasLt.so.13 libcuda.so.1 $(MS_BESIDE)

dist_check_SCRIPTS += tests/sim/cublas_exports.sh
