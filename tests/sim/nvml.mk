# tests/sim: the simulated management library; see docs/internals/testing.md
check_PROGRAMS += tests/sim/nvml
tests_sim_nvml_SOURCES = tests/sim/nvml.c $(sim_driver_sources)
tests_sim_nvml_LDFLAGS = $(sim_driver_ldflags)
tests_sim_nvml_LDADD = libnvidia-ml.so.1 libcuda.so.1
TESTS += tests/sim/nvml
dist_check_SCRIPTS += tests/sim/nvml.sh
TESTS += tests/sim/nvml.sh
