/* chain.h - what libchain.so tells of the calls that went through it; for chain.c and the programs that use
 * it. */
#ifndef MS_TESTS_HOOKS_CHAIN_H
#define MS_TESTS_HOOKS_CHAIN_H

struct chain_seen {
    int malloc_calls;
    int atol_calls;
    const char *malloc_next; /* the object that holds the next cudaMalloc */
    const char *atol_next;
};

const struct chain_seen *chain_seen(void);

#endif
