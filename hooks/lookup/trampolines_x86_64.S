/* trampolines_x86_64.S - the ways of unknown.h: note the call, and jump.
 *
 * No register is written, nor the stack; of the flags nobody may rely on any at a function's entry (System V ABI). The second note is a
 * locked instruction, so that it is seen before anything that the function does. */
        .text
        .globl  ms_trampolines
        .hidden ms_trampolines
        .hidden ms_trampoline_called
        .hidden ms_trampoline_reals
        .hidden ms_captures_unseen
        .type   ms_trampolines, @function
        .p2align 6
ms_trampolines:
        .set    way, 0
        .rept   16
        .p2align 6
        .cfi_startproc
        endbr64
        movl    $1, ms_trampoline_called + 4 * way(%rip)
        lock orl $1, ms_captures_unseen(%rip)
        jmpq    *ms_trampoline_reals + 8 * way(%rip)
        .cfi_endproc
        .set    way, way + 1
        .endr
        .p2align 6
        .size   ms_trampolines, . - ms_trampolines

        .section .note.GNU-stack, "", @progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 3, 0     /* indirect branch tracking and shadow stack are kept */
