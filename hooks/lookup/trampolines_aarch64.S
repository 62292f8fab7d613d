/* trampolines_aarch64.S - the ways of unknown.h: note the call, and jump.
 *
 * x16 and x17 are nobody's at a function's entry (AAPCS64); all else is left as it came. The barrier has the notes seen before anything
 * that the function does. */
        .text
        .globl  ms_trampolines
        .hidden ms_trampolines
        .hidden ms_trampoline_called
        .hidden ms_trampoline_reals
        .hidden ms_captures_unseen
        .type   ms_trampolines, %function
        .p2align 6
ms_trampolines:
        .set    way, 0
        .rept   16
        .p2align 6
        .cfi_startproc
        hint    34                      /* bti c */
        mov     w17, #1
        adrp    x16, ms_trampoline_called + 4 * way
        str     w17, [x16, #:lo12:ms_trampoline_called + 4 * way]
        adrp    x16, ms_captures_unseen
        str     w17, [x16, #:lo12:ms_captures_unseen]
        dmb     ish
        adrp    x16, ms_trampoline_reals + 8 * way
        ldr     x16, [x16, #:lo12:ms_trampoline_reals + 8 * way]
        br      x16
        .cfi_endproc
        .set    way, way + 1
        .endr
        .p2align 6
        .size   ms_trampolines, . - ms_trampolines

        .section .note.GNU-stack, "", %progbits
