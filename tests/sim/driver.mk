# tests/sim: the simulated driver, room by room. Each test is linked against it.
sim_driver_tests = \
	tests/sim/driver_capture \
	tests/sim/driver_code \
	tests/sim/driver_context \
	tests/sim/driver_copy \
	tests/sim/driver_fault \
	tests/sim/driver_graph \
	tests/sim/driver_graphmem \
	tests/sim/driver_green \
	tests/sim/driver_ipc \
	tests/sim/driver_ipcevent \
	tests/sim/driver_kernel \
	tests/sim/driver_lookup \
	tests/sim/driver_memop \
	tests/sim/driver_memory \
	tests/sim/driver_perthread \
	tests/sim/driver_pointer \
	tests/sim/driver_pool \
	tests/sim/driver_poolstress \
	tests/sim/driver_poolunit \
	tests/sim/driver_reuse \
	tests/sim/driver_stream \
	tests/sim/driver_stress \
	tests/sim/driver_vmm

check_PROGRAMS += $(sim_driver_tests)
TESTS += $(sim_driver_tests)
sim_driver_sources = tests/tap.h tests/sim/driver.h
sim_driver_ldflags = $(AM_LDFLAGS) -pthread -Wl,-rpath,$(abs_builddir)

tests_sim_driver_context_SOURCES = tests/sim/driver_context.c $(sim_driver_sources)
tests_sim_driver_context_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_context_LDADD = libcuda.so.1
tests_sim_driver_memory_SOURCES = tests/sim/driver_memory.c $(sim_driver_sources)
tests_sim_driver_memory_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_memory_LDADD = libcuda.so.1
tests_sim_driver_stream_SOURCES = tests/sim/driver_stream.c $(sim_driver_sources)
tests_sim_driver_stream_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_stream_LDADD = libcuda.so.1
tests_sim_driver_pool_SOURCES = tests/sim/driver_pool.c $(sim_driver_sources)
tests_sim_driver_pool_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_pool_LDADD = libcuda.so.1
tests_sim_driver_code_SOURCES = tests/sim/driver_code.c $(sim_driver_sources)
tests_sim_driver_code_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_code_LDADD = libcuda.so.1
tests_sim_driver_vmm_SOURCES = tests/sim/driver_vmm.c $(sim_driver_sources)
tests_sim_driver_vmm_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_vmm_LDADD = libcuda.so.1
tests_sim_driver_ipc_SOURCES = tests/sim/driver_ipc.c $(sim_driver_sources)
tests_sim_driver_ipc_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_ipc_LDADD = libcuda.so.1
tests_sim_driver_pointer_SOURCES = tests/sim/driver_pointer.c $(sim_driver_sources)
tests_sim_driver_pointer_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_pointer_LDADD = libcuda.so.1
tests_sim_driver_copy_SOURCES = tests/sim/driver_copy.c $(sim_driver_sources)
tests_sim_driver_copy_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_copy_LDADD = libcuda.so.1
tests_sim_driver_lookup_SOURCES = tests/sim/driver_lookup.c $(sim_driver_sources)
tests_sim_driver_lookup_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_lookup_LDADD = libcuda.so.1 -ldl
tests_sim_driver_fault_SOURCES = tests/sim/driver_fault.c $(sim_driver_sources)
tests_sim_driver_fault_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_fault_LDADD = libcuda.so.1
tests_sim_driver_stress_SOURCES = tests/sim/driver_stress.c $(sim_driver_sources)
tests_sim_driver_stress_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_stress_LDADD = libcuda.so.1

# What recorded hardware answers: the programs say what the simulator does, record.py compares.
sim_record_sources = tests/sim/record.h $(sim_driver_sources)
check_PROGRAMS += tests/sim/record_device tests/sim/record_peer tests/sim/record_pool tests/sim/record_runtime tests/sim/record_sweep tests/sim/record_vmm
tests_sim_record_device_SOURCES = tests/sim/record_device.c $(sim_record_sources)
tests_sim_record_device_LDFLAGS = $(sim_driver_ldflags)
tests_sim_record_device_LDADD = libnvidia-ml.so.1 libcuda.so.1
tests_sim_record_peer_SOURCES = tests/sim/record_peer.c $(sim_record_sources)
tests_sim_record_peer_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_record_peer_LDFLAGS = $(AM_LDFLAGS) -pthread -Wl,--disable-new-dtags,-rpath,$(abs_top_builddir)
tests_sim_record_peer_LDADD = libcudart.so.13 libcuda.so.1
tests_sim_record_pool_SOURCES = tests/sim/record_pool.c $(sim_record_sources)
tests_sim_record_pool_LDFLAGS = $(sim_driver_ldflags)
tests_sim_record_pool_LDADD = libcuda.so.1
tests_sim_record_runtime_SOURCES = tests/sim/record_runtime.c $(sim_record_sources)
tests_sim_record_runtime_CPPFLAGS = $(AM_CPPFLAGS) -DMS_CUDART_MAJOR=13
tests_sim_record_runtime_LDFLAGS = $(AM_LDFLAGS) -pthread -Wl,--disable-new-dtags,-rpath,$(abs_top_builddir)
tests_sim_record_runtime_LDADD = libcudart.so.13 libcuda.so.1 -ldl
tests_sim_record_sweep_SOURCES = tests/sim/record_sweep.c $(sim_record_sources)
tests_sim_record_sweep_LDFLAGS = $(sim_driver_ldflags)
tests_sim_record_sweep_LDADD = libcuda.so.1 -ldl
tests_sim_record_vmm_SOURCES = tests/sim/record_vmm.c $(sim_record_sources)
tests_sim_record_vmm_LDFLAGS = $(sim_driver_ldflags)
tests_sim_record_vmm_LDADD = libcuda.so.1
TESTS += tests/sim/record.py
dist_check_SCRIPTS += tests/sim/record.py
EXTRA_DIST += tests/sim/record.tsv

TESTS += tests/sim/driver_tables.sh
dist_check_SCRIPTS += tests/sim/driver_tables.sh
tests_sim_driver_memop_SOURCES = tests/sim/driver_memop.c $(sim_driver_sources)
tests_sim_driver_memop_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_memop_LDADD = libcuda.so.1
tests_sim_driver_kernel_SOURCES = tests/sim/driver_kernel.c tests/sim/kernels.h $(sim_driver_sources)
tests_sim_driver_kernel_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_kernel_LDADD = libcuda.so.1
tests_sim_driver_capture_SOURCES = tests/sim/driver_capture.c tests/sim/kernels.h $(sim_driver_sources)
tests_sim_driver_capture_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_capture_LDADD = libcuda.so.1
tests_sim_driver_graph_SOURCES = tests/sim/driver_graph.c tests/sim/kernels.h $(sim_driver_sources)
tests_sim_driver_graph_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_graph_LDADD = libcuda.so.1
tests_sim_driver_graphmem_SOURCES = tests/sim/driver_graphmem.c $(sim_driver_sources)
tests_sim_driver_graphmem_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_graphmem_LDADD = libcuda.so.1
tests_sim_driver_reuse_SOURCES = tests/sim/driver_reuse.c $(sim_driver_sources)
tests_sim_driver_reuse_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_reuse_LDADD = libcuda.so.1
tests_sim_driver_green_SOURCES = tests/sim/driver_green.c $(sim_driver_sources)
tests_sim_driver_green_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_green_LDADD = libcuda.so.1
tests_sim_driver_ipcevent_SOURCES = tests/sim/driver_ipcevent.c $(sim_driver_sources)
tests_sim_driver_ipcevent_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_ipcevent_LDADD = libcuda.so.1
tests_sim_driver_perthread_SOURCES = tests/sim/driver_perthread.c $(sim_driver_sources)
tests_sim_driver_perthread_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_perthread_LDADD = libcuda.so.1
tests_sim_driver_poolunit_SOURCES = tests/sim/driver_poolunit.c $(sim_driver_sources)
tests_sim_driver_poolunit_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_poolunit_LDADD = libcuda.so.1
tests_sim_driver_poolstress_SOURCES = tests/sim/driver_poolstress.c tests/sim/kernels.h $(sim_driver_sources)
tests_sim_driver_poolstress_LDFLAGS = $(sim_driver_ldflags)
tests_sim_driver_poolstress_LDADD = libcuda.so.1
