/* entry_aarch64.S - dlsym, dlvsym, dlopen, dlmopen, dlclose: ask entry.h, then return or leave by a tail jump.
 *
 * x0-x2 carry the arguments and x30 the return address; x16 is free for the jump. */
        .text

        .macro ENTRY name
        .globl  \name
        .type   \name, %function
        .p2align 4
\name:
        .cfi_startproc
        hint    34                      /* bti c */
        stp     x29, x30, [sp, #-48]!
        .cfi_adjust_cfa_offset 48
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        .endm

        .macro RESTORE
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_adjust_cfa_offset -48
        .cfi_restore x29
        .cfi_restore x30
        .endm

        .macro LEAVE real
        adrp    x16, \real
        ldr     x16, [x16, #:lo12:\real]
        br      x16
        .endm

        .macro END name
        .cfi_endproc
        .size   \name, . - \name
        .endm

ENTRY dlsym
        mov     x2, #0
        mov     x3, x30
        bl      ms_enter_dlsym
        cbnz    x0, 1f
        .cfi_remember_state
        RESTORE
        LEAVE   ms_real_dlsym
1:      .cfi_restore_state
        mov     x0, x1
        ldp     x29, x30, [sp], #48
        .cfi_adjust_cfa_offset -48
        ret
END dlsym

ENTRY dlvsym
        mov     x3, x30
        bl      ms_enter_dlsym
        cbnz    x0, 1f
        .cfi_remember_state
        RESTORE
        LEAVE   ms_real_dlvsym
1:      .cfi_restore_state
        mov     x0, x1
        ldp     x29, x30, [sp], #48
        .cfi_adjust_cfa_offset -48
        ret
END dlvsym

ENTRY dlopen
        bl      ms_enter_dlopen
        mov     w16, w0
        ldp     x0, x1, [sp, #16]
        mov     w1, w16
        ldp     x29, x30, [sp], #48
        .cfi_adjust_cfa_offset -48
        .cfi_restore x29
        .cfi_restore x30
        LEAVE   ms_real_dlopen
END dlopen

ENTRY dlmopen
        bl      ms_enter_dlmopen
        RESTORE
        LEAVE   ms_real_dlmopen
END dlmopen

ENTRY dlclose
        bl      ms_enter_dlclose
        RESTORE
        LEAVE   ms_real_dlclose
END dlclose

        .section .note.GNU-stack, "", %progbits
