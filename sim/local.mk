# sim: the simulated GPU, a stand-in for the vendors' libraries
include sim/cuda/local.mk
include sim/cudart/local.mk
include sim/acl/local.mk
include sim/nccl/local.mk
include sim/nvml/local.mk
include sim/hip/local.mk
include sim/cublas/local.mk
include sim/displace/local.mk
