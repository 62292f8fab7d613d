# src/sim: the simulated GPU, a stand-in for the vendors' libraries
include src/sim/cuda/local.mk
include src/sim/cudart/local.mk
include src/sim/acl/local.mk
include src/sim/nccl/local.mk
include src/sim/nvml/local.mk
include src/sim/hip/local.mk
include src/sim/cublas/local.mk
include src/sim/displace/local.mk
