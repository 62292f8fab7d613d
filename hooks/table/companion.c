/* companion.c - libmemshim-uses.so: the functions of cuda_uses.def under their own names, for programs that
 * call them by name.
 *
 * Each jumps to its wrapper in libmemshim.so, with every register and the stack as they came, so that the
 * caller is the program. It is a library of its own because what libmemshim.so does not export it does not
 * hook: `memshim run` preloads this one, before libmemshim.so, where MEMSHIM_USES is on, and else nobody. */
#if defined(__x86_64__)
#define JUMP(symbol) "endbr64\n\tjmp *memshim_use_" #symbol "@GOTPCREL(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(symbol)                                                                                         \
    "hint #34\n\tadrp x16, :got:memshim_use_" #symbol "\n\tldr x16, [x16, #:got_lo12:memshim_use_" #symbol   \
    "]\n\tbr x16\n"
#endif

/* By this libmemshim.so knows that it is here (hooks/follow/layouts.c). */
__asm__("\t.section .rodata\n\t.globl memshim_uses_companion\n\t.type memshim_uses_companion, %object\n"
        "memshim_uses_companion:\n\t.byte 1\n\t.size memshim_uses_companion, 1\n");

#define MS_HOOK(result, symbol, ...)                                                                         \
    __asm__("\t.text\n\t.balign 16\n\t.globl " #symbol "\n\t.type " #symbol ", %function\n" #symbol          \
            ":\n\t" JUMP(symbol) "\t.size " #symbol ", . - " #symbol "\n");
#include "hooks/table/cuda_uses.def"
