/* chain.h - a chain of functions to measure below: each at an address of its own, and on the stack while what
 * it calls runs. Programs allocate from some way down, through functions that are not one and the same.
 *
 * Included once by a program, which sets `chain_last`: chain_0(n) calls it below n + 1 functions. */
#ifndef TESTS_BENCH_CHAIN_H
#define TESTS_BENCH_CHAIN_H

static void (*chain_last)(void);

#define CHAIN_LINK(number, next)                                                                             \
    static __attribute__((noinline)) unsigned chain_##number(unsigned left)                                  \
    {                                                                                                        \
        unsigned result = 1;                                                                                 \
        if (left == 0)                                                                                       \
            chain_last();                                                                                    \
        else                                                                                                 \
            result += next(left - 1);                                                                        \
        __asm__ volatile("" : "+r"(result)); /* not a tail call */                                           \
        return result;                                                                                       \
    }
#define CHAIN_FOUR(a, b, c, d, next)                                                                         \
    CHAIN_LINK(d, next) CHAIN_LINK(c, chain_##d) CHAIN_LINK(b, chain_##c) CHAIN_LINK(a, chain_##b)

static unsigned chain_0(unsigned left);
CHAIN_FOUR(28, 29, 30, 31, chain_0)
CHAIN_FOUR(24, 25, 26, 27, chain_28)
CHAIN_FOUR(20, 21, 22, 23, chain_24)
CHAIN_FOUR(16, 17, 18, 19, chain_20)
CHAIN_FOUR(12, 13, 14, 15, chain_16)
CHAIN_FOUR(8, 9, 10, 11, chain_12)
CHAIN_FOUR(4, 5, 6, 7, chain_8)
CHAIN_FOUR(0, 1, 2, 3, chain_4)

#endif
