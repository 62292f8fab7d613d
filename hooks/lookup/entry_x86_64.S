/* entry_x86_64.S - dlsym, dlvsym, dlopen, dlmopen, dlclose: ask entry.h, then return or leave by a tail jump.
 *
 * At entry the stack is 8 off a 16-byte boundary; three pushes put it back on one. */
        .text

        .macro ENTRY name
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        .endm

        .macro SAVE
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        .endm

        .macro RESTORE
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        .endm

        .macro END name
        .cfi_endproc
        .size   \name, . - \name
        .endm

/* void *dlsym(void *handle, const char *name) */
ENTRY dlsym
        SAVE
        xorl    %edx, %edx
        movq    24(%rsp), %rcx
        call    ms_enter_dlsym
        testq   %rax, %rax
        jne     1f
        RESTORE
        jmpq    *ms_real_dlsym(%rip)
        .cfi_adjust_cfa_offset 24
1:      movq    %rdx, %rax
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        ret
END dlsym

/* void *dlvsym(void *handle, const char *name, const char *version) */
ENTRY dlvsym
        SAVE
        movq    24(%rsp), %rcx
        call    ms_enter_dlsym
        testq   %rax, %rax
        jne     1f
        RESTORE
        jmpq    *ms_real_dlvsym(%rip)
        .cfi_adjust_cfa_offset 24
1:      movq    %rdx, %rax
        addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        ret
END dlvsym

/* void *dlopen(const char *file, int flags) */
ENTRY dlopen
        SAVE
        call    ms_enter_dlopen
        RESTORE
        movl    %eax, %esi
        jmpq    *ms_real_dlopen(%rip)
END dlopen

/* void *dlmopen(Lmid_t space, const char *file, int flags) */
ENTRY dlmopen
        SAVE
        call    ms_enter_dlmopen
        RESTORE
        jmpq    *ms_real_dlmopen(%rip)
END dlmopen

/* int dlclose(void *handle) */
ENTRY dlclose
        SAVE
        call    ms_enter_dlclose
        RESTORE
        jmpq    *ms_real_dlclose(%rip)
END dlclose

        .section .note.GNU-stack, "", @progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 3, 0     /* indirect branch tracking and shadow stack are kept */
