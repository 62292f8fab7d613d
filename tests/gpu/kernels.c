/*
 * kernels.c: the kernels, as PTX text, which every driver compiles for itself. Under their names the
 * simulator gives them a meaning too. The kernels end by themselves: a limit in nanoseconds is part of the
 * one that holds.
 */
#include "kernels.h"

const char kit_ptx[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    /* Runs until *flag == value, or for limit_ns (0: without limit). */
    ".visible .entry memsim_hold(.param .u64 flag, .param .u32 value, .param .u64 limit_ns)\n"
    "{\n"
    "    .reg .pred %p<4>;\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %d<6>;\n"
    "    ld.param.u64 %d1, [flag];\n"
    "    ld.param.u32 %r1, [value];\n"
    "    ld.param.u64 %d2, [limit_ns];\n"
    "    mov.u64 %d3, %globaltimer;\n"
    "AGAIN:\n"
    "    ld.volatile.u32 %r2, [%d1];\n"
    "    setp.eq.u32 %p1, %r2, %r1;\n"
    "    @%p1 bra OVER;\n"
    "    setp.eq.u64 %p2, %d2, 0;\n"
    "    @%p2 bra AGAIN;\n"
    "    mov.u64 %d4, %globaltimer;\n"
    "    sub.u64 %d5, %d4, %d3;\n"
    "    setp.lt.u64 %p3, %d5, %d2;\n"
    "    @%p3 bra AGAIN;\n"
    "OVER:\n"
    "    ret;\n"
    "}\n"
    /* Writes value to words words from address on. */
    ".visible .entry memsim_fill(.param .u64 address, .param .u32 value, .param .u64 words)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [address];\n"
    "    ld.param.u32 %r1, [value];\n"
    "    ld.param.u64 %d2, [words];\n"
    "MORE:\n"
    "    setp.eq.u64 %p1, %d2, 0;\n"
    "    @%p1 bra DONE;\n"
    "    st.volatile.u32 [%d1], %r1;\n"
    "    add.u64 %d1, %d1, 4;\n"
    "    sub.u64 %d2, %d2, 1;\n"
    "    bra MORE;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    /* Ends its context. */
    ".visible .entry memsim_trap()\n"
    "{\n"
    "    trap;\n"
    "    ret;\n"
    "}\n"
    /* Does nothing. */
    ".visible .entry memsim_nothing()\n"
    "{\n"
    "    ret;\n"
    "}\n";
