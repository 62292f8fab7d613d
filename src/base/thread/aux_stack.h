/* aux_stack.h - stacks of memshim's own, for what needs more than a program's thread may have left.
 *
 * Floor 0. A hook runs in the program's threads, of which some have 16 KiB and some run a signal handler on
 * an alternate stack of 8. What keeps much on the stack, or nobody knows how much (an unwinder that
 * interprets tables, a regular expression that is compiled, a ledger that is made), runs on an auxiliary
 * stack instead, and a buffer that is needed for the moment lies in one. Each has a page below it that cannot
 * be touched. There are as many as were ever in use at once; they are never given to the system.
 *
 * No lock and no malloc; errno is kept. May be called from signal handlers. Never around a vendor's call, nor
 * any other that may end in the program's code: on an auxiliary stack all signals are blocked (but those that
 * the C library keeps to itself), so that no handler of the program's runs there, and nobody who stops
 * threads by signals, to look at their stacks, finds one where it is not expected. A shadow stack is not
 * switched and need not be: calls and returns stay nested. */
#ifndef MS_BASE_THREAD_AUX_STACK_H
#define MS_BASE_THREAD_AUX_STACK_H

#include <stdbool.h>
#include <stddef.h>

enum {
    /* Learning takes 4 KiB, the worst regular expression that options.c lets through 360
       (tests/unit/test_spare.c measures both). */
    MS_AUX_STACK_BYTES = 1 << 20,
    /* Of an auxiliary stack that is taken as a buffer. */
    MS_AUX_STACK_BUFFER_BYTES = 16 << 10,
};

/** Runs function(argument) on an auxiliary stack; false, and nothing was run, where none is to be had: there
 * is no memory, too many are in use, or this machine has no way to switch. On one already it is a plain
 * call. */
bool ms_aux_stack_call(void (*function)(void *), void *argument);
/** As ms_aux_stack_call, but on the caller's own stack where no auxiliary one is to be had. */
void ms_aux_stack_call_anyway(void (*function)(void *), void *argument);

/** MS_AUX_STACK_BUFFER_BYTES, aligned to 64, whose content is whatever it was; NULL where none is to be had.
 * In the same thread, before anything that it calls may end, it is given back. */
void *ms_aux_stack_take(void);
void ms_aux_stack_give(void *buffer);

/** In a fork child: those that other threads held are free. */
void ms_aux_stacks_reset(void);

#endif
