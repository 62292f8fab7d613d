# tests/gpu: the programs that run on the simulator and on hardware alike, linked by name alone: a search path says on which.
gpu_kit = tests/gpu/kit.c tests/gpu/kit.h tests/gpu/hold.c tests/gpu/kernels.c tests/gpu/kernels.h
gpu_ldadd = libcudart.so.13 libcuda.so.1 -ldl
gpu_ldflags = $(AM_LDFLAGS) -pthread -Wl,-z,lazy

check_PROGRAMS += tests/gpu/facts tests/gpu/costs tests/gpu/routes tests/gpu/proxy/libcuda.so.1
tests_gpu_facts_SOURCES = tests/gpu/facts.c tests/gpu/facts.h tests/gpu/facts.def tests/gpu/facts_calls.c \
	tests/gpu/facts_capture.c tests/gpu/facts_costs.c tests/gpu/facts_hangs.c tests/gpu/facts_ipc.c \
	tests/gpu/facts_lookups.c tests/gpu/facts_routes.c tests/gpu/facts_sizes.c tests/gpu/facts_waits.c \
	tests/gpu/cost_calls.c tests/gpu/costs.h $(gpu_kit)
tests_gpu_facts_LDADD = $(gpu_ldadd)
tests_gpu_facts_LDFLAGS = $(gpu_ldflags)
tests_gpu_costs_SOURCES = tests/gpu/costs.c tests/gpu/cost_calls.c tests/gpu/costs.h $(gpu_kit)
tests_gpu_costs_LDADD = $(gpu_ldadd)
tests_gpu_costs_LDFLAGS = $(gpu_ldflags)

# The runtime's routes: the program knows the runtime alone, and finds the proxy where it looks for the driver.
tests_gpu_routes_SOURCES = tests/gpu/routes.c tests/gpu/kernels.c tests/gpu/kernels.h
tests_gpu_routes_LDADD = libcudart.so.13 -ldl
tests_gpu_routes_LDFLAGS = $(gpu_ldflags)
tests_gpu_proxy_libcuda_so_1_SOURCES = tests/gpu/proxy_driver.c
tests_gpu_proxy_libcuda_so_1_CFLAGS = $(AM_CFLAGS) -fPIC -fvisibility=hidden
tests_gpu_proxy_libcuda_so_1_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libcuda.so.1
tests_gpu_proxy_libcuda_so_1_LDADD = -ldl
