#include "sim.h"
void sim_pool_settle(struct sim_device *device) { (void)device; }
bool sim_pool_squeeze(struct sim_device *device, size_t bytes) { (void)device; (void)bytes; return false; }
CUresult sim_pool_free_now(struct sim_block *block) { (void)block; return CUDA_ERROR_INVALID_VALUE; }
CUresult sim_external_unmap(struct sim_block *block) { (void)block; return CUDA_ERROR_INVALID_VALUE; }
void sim_ipc_drop_context(struct CUctx_st *ctx) { (void)ctx; }
void sim_module_drop_context(struct CUctx_st *ctx) { (void)ctx; }
