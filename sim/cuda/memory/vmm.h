/*
 * Physical memory handles, between vmm.c (making), vmmmap.c (mapping) and vmmshare.c (other processes). Under
 * the memory lock.
 */
#ifndef MEMSIM_CUDA_VMM_H
#define MEMSIM_CUDA_VMM_H

#include "sim/cuda/sim.h"

struct sim_phys {
    struct sim_phys *next;
    CUmemGenericAllocationHandle number;
    unsigned refs, maps;
    size_t bytes;
    CUmemAllocationProp prop;
    struct sim_arena *arena; /* the device's, or own */
    struct sim_arena own;
    size_t offset;
    bool charged; /* against its device's capacity */
};

struct sim_phys *sim_phys_find(CUmemGenericAllocationHandle number);
void sim_phys_settle(struct sim_phys *phys);
void sim_phys_enter(struct sim_phys *phys);
CUresult sim_phys_check(const CUmemAllocationProp *prop);

#endif
