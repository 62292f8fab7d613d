# tests/gpu: the programs that run on the simulator and on hardware alike, linked by name alone: a search path says on which.
gpu_kit = tests/gpu/kit.c tests/gpu/kit.h tests/gpu/hold.c tests/gpu/kernels.c tests/gpu/kernels.h
gpu_ldadd = libcudart.so.13 libcuda.so.1 -ldl
gpu_ldflags = $(AM_LDFLAGS) -Wl,-z,lazy

check_PROGRAMS += tests/gpu/facts tests/gpu/conformance tests/gpu/costs tests/gpu/routes tests/gpu/proxy/libcuda.so.1
gpu_facts_sources = tests/gpu/facts.c tests/gpu/facts.h tests/gpu/facts.def tests/gpu/facts_calls.c \
	tests/gpu/facts_capture.c tests/gpu/facts_costs.c tests/gpu/facts_hangs.c tests/gpu/facts_ipc.c \
	tests/gpu/facts_lookups.c tests/gpu/facts_routes.c tests/gpu/facts_sizes.c tests/gpu/facts_waits.c \
	tests/gpu/cost_calls.c tests/gpu/costs.h $(gpu_kit)
tests_gpu_facts_SOURCES = $(gpu_facts_sources)
tests_gpu_facts_LDADD = $(gpu_ldadd)
tests_gpu_facts_LDFLAGS = $(gpu_ldflags)
tests_gpu_conformance_SOURCES = tests/gpu/conformance.c tests/gpu/conform.h tests/gpu/conform_capture.c \
	tests/gpu/conform_questions.c tests/gpu/conform_free.c tests/gpu/conform_ipc.c \
	tests/gpu/conform_life.c tests/gpu/conform_memory.c tests/gpu/conform_order.c \
	tests/gpu/conform_pool.c tests/gpu/conform_share.c tests/gpu/conform_status.c \
	tests/gpu/conform_vmm.c $(gpu_kit)
tests_gpu_conformance_LDADD = $(gpu_ldadd)
tests_gpu_conformance_LDFLAGS = $(gpu_ldflags)
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

# The same with the vendor's runtime linked in, and a launch by nvcc: only where there is a toolkit. scripts/hardware builds them.
gpu_vendor =
if HAVE_CUDART_STATIC
gpu_vendor += tests/gpu/facts_static tests/gpu/routes_static tests/gpu/launch
gpu_vendor_ldadd = $(CUDA_HOME)/lib64/libcudart_static.a -lrt -ldl
endif
EXTRA_PROGRAMS = tests/gpu/facts_static tests/gpu/routes_static
tests_gpu_facts_static_SOURCES = $(gpu_facts_sources)
tests_gpu_facts_static_LDADD = $(gpu_vendor_ldadd) libcuda.so.1
tests_gpu_facts_static_LDFLAGS = $(gpu_ldflags)
tests_gpu_routes_static_SOURCES = tests/gpu/routes.c tests/gpu/kernels.c tests/gpu/kernels.h
tests_gpu_routes_static_LDADD = $(gpu_vendor_ldadd)
tests_gpu_routes_static_LDFLAGS = $(gpu_ldflags)
tests/gpu/launch: $(srcdir)/tests/gpu/launch.cu
	$(CUDA_HOME)/bin/nvcc -cudart shared -ldl -gencode arch=compute_75,code=compute_75 -o $@ $(srcdir)/tests/gpu/launch.cu
print-gpu-vendor:
	@echo $(gpu_vendor)
.PHONY: print-gpu-vendor
MOSTLYCLEANFILES += tests/gpu/launch tests/gpu/facts_static tests/gpu/routes_static

dist_check_SCRIPTS += tests/gpu/conformance.py tests/gpu/facts.py tests/gpu/hardware.py
EXTRA_DIST += tests/gpu/launch.cu tests/gpu/compare.py tests/gpu/gputap.py tests/gpu/conformance.golden tests/gpu/hw/attacks.py tests/gpu/hw/context.py tests/gpu/hw/cupy_loop.py tests/gpu/hw/device_memory.py \
	tests/gpu/hw/facts_page.py tests/gpu/hw/nccl_loop.py tests/gpu/hw/pack.py tests/gpu/hw/results.py \
	tests/gpu/hw/stages.py tests/gpu/hw/torch_step.py scripts/hardware
