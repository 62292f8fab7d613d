/*
 * The names of the exported functions, for MEMSIM_COST, MEMSIM_FAIL and memsim_count. No lock, no memory of
 * its own.
 */
#include "sim/acl/acl.h"

static const char *const names[] = {
#define X(name) #name,
#include "sim/acl/exports.def"
#undef X
    SIM_RULES_WORK};

static const char *const foreign[] = {"cu", "nccl", "hip", NULL};

const struct sim_rules sim_front = {names, ACL_FN_COUNT, 999999, foreign, "runtime"};
