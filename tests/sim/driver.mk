# tests/sim: the simulated driver, room by room. Each test is linked against it.
ms_test_programs += tests/sim/driver_capture tests/sim/driver_code tests/sim/driver_context tests/sim/driver_copy \
	tests/sim/driver_fault tests/sim/driver_graph tests/sim/driver_graphmem tests/sim/driver_green \
	tests/sim/driver_ipc tests/sim/driver_ipcevent tests/sim/driver_kernel tests/sim/driver_lookup \
	tests/sim/driver_memop tests/sim/driver_memory tests/sim/driver_perthread tests/sim/driver_pointer \
	tests/sim/driver_pool tests/sim/driver_poolstress tests/sim/driver_poolunit tests/sim/driver_reuse \
	tests/sim/driver_stream tests/sim/driver_stress tests/sim/driver_vmm
dist_check_SCRIPTS += tests/sim/driver_tables.sh
EXTRA_DIST += tests/sim/driver.h tests/sim/kernels.h
tests_sim_driver_capture_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_code_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_context_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_copy_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_fault_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_graph_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_graphmem_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_green_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_ipc_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_ipcevent_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_kernel_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_lookup_LDADD = libcuda.so.1 -ldl $(MS_BESIDE)
tests_sim_driver_memop_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_memory_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_perthread_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_pointer_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_pool_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_poolstress_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_poolunit_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_reuse_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_stream_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_stress_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_driver_vmm_LDADD = libcuda.so.1 $(MS_BESIDE)

# What recorded hardware answers: the programs say what the simulator does, record.py compares.
check_PROGRAMS += tests/sim/record_device tests/sim/record_peer tests/sim/record_pool tests/sim/record_runtime tests/sim/record_sweep tests/sim/record_vmm
tests_sim_record_device_LDADD = libnvidia-ml.so.1 libcuda.so.1 $(MS_BESIDE)
tests_sim_record_peer_LDADD = libcudart.so.13 libcuda.so.1 $(MS_BESIDE_ALL)
tests_sim_record_pool_LDADD = libcuda.so.1 $(MS_BESIDE)
tests_sim_record_runtime_LDADD = libcudart.so.13 libcuda.so.1 -ldl $(MS_BESIDE_ALL)
tests_sim_record_sweep_LDADD = libcuda.so.1 -ldl $(MS_BESIDE)
tests_sim_record_vmm_LDADD = libcuda.so.1 $(MS_BESIDE)
dist_check_SCRIPTS += tests/sim/record.py
EXTRA_DIST += tests/sim/record.h tests/sim/record.tsv
