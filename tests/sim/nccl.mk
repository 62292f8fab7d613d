# tests/sim: the simulated NCCL; see docs/internals/testing.md
ms_test_programs += tests/sim/nccl_calls tests/sim/nccl_later tests/sim/nccl_processes
tests_sim_nccl_calls_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl $(MS_BESIDE_ALL)
tests_sim_nccl_processes_LDADD = libnccl.so.2 libcudart.so.13 -ldl $(MS_BESIDE_ALL)
tests_sim_nccl_later_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1 -ldl $(MS_BESIDE_ALL)

dist_check_SCRIPTS += tests/sim/nccl_exports.sh
