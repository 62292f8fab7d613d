/* The image whose kernels do something in the simulator, and what they do on hardware: see
 * docs/internals/simulator.md.
 */
#ifndef MS_TESTS_SIM_KERNELS_H
#define MS_TESTS_SIM_KERNELS_H

static const char kernels_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n\n"
    ".visible .entry memsim_hold(.param .u64 flag, .param .u32 value, .param .u64 limit_ns)\n{\n\tret;\n}\n"
    ".visible .entry memsim_fill(.param .u64 words, .param .u32 value, .param .u64 count)\n{\n\tret;\n}\n"
    ".visible .entry memsim_sum(.param .u64 words, .param .u64 count, .param .u64 sum)\n{\n\tret;\n}\n"
    ".visible .entry memsim_trap()\n{\n\tret;\n}\n";

#endif
