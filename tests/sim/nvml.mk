# tests/sim: the simulated management library; see docs/internals/testing.md
ms_test_programs += tests/sim/nvml
tests_sim_nvml_LDADD = libnvidia-ml.so.1 libcuda.so.1 $(MS_BESIDE)
dist_check_SCRIPTS += tests/sim/nvml.sh
