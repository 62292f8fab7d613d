#include "sim.h"
CUresult sim_external_unmap(struct sim_block *block) { (void)block; return CUDA_ERROR_INVALID_VALUE; }
void sim_ipc_drop_context(struct CUctx_st *ctx) { (void)ctx; }
