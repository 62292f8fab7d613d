# src/gpu: floor 1, see docs/architecture.md
GPU_SOURCES = src/gpu/gpu.h src/gpu/gpu.c src/gpu/cuda.c src/gpu/hip.c src/gpu/hip.h src/gpu/acl.c src/gpu/abi/acl.h src/gpu/abi/cupti.h src/gpu/abi/cuda_held.h src/gpu/abi/nvtx.h src/gpu/abi/mstx.h src/gpu/abi/roctx.h src/gpu/abi/cuda_driver.h \
	src/gpu/abi/cuda_runtime.h src/gpu/abi/hip.h src/gpu/visit.h src/gpu/visit.c
