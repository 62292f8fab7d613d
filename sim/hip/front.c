/*
 * The library as MEMSIM_* knows it: its names, which are those of its exports, and those of work on streams
 * behind them. A body for every export that no other file has, which answers "not supported" and is counted,
 * is in stubs.c.
 */
#include "sim/hip/hip.h"

static const char *const names[] = {
#define X(name) #name,
#include "sim/hip/version.def"
#undef X
    SIM_RULES_WORK,
};

static const char *const foreign[] = {"cu", "nccl", "pnccl", "acl", "hip", NULL};

const struct sim_rules sim_front = {
    .names = names, .count = HIP_FN_COUNT, .status_most = 1999, .foreign = foreign, .owner = "HIP"};

int hip_enter(enum hip_fn fn)
{
    return sim_front_enter(fn);
}
