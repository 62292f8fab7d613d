# src/vendor: floor 1, see docs/internals/architecture.md
GPU_SOURCES = src/vendor/gpu.h src/vendor/gpu.c src/vendor/cuda.c src/vendor/hip.c src/vendor/hip.h \
	src/vendor/acl.c src/vendor/abi/acl.h src/vendor/abi/cupti.h src/vendor/abi/cuda_held.h \
	src/vendor/abi/nvtx.h src/vendor/abi/mstx.h src/vendor/abi/roctx.h src/vendor/abi/pytorch.h src/vendor/abi/cuda_driver.h \
	src/vendor/abi/cuda_runtime.h src/vendor/abi/hip.h src/vendor/context_scope.h \
	src/vendor/context_scope.c
