/* small_stacks_paint.h - threads whose stacks are painted, to see how much of them a call uses. Not for
 * several threads at once. */
#ifndef MS_TESTS_HOOKS_SMALL_STACKS_PAINT_H
#define MS_TESTS_HOOKS_SMALL_STACKS_PAINT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    STACK_BYTES = 16 << 10, /* PTHREAD_STACK_MIN of old */
    BELOW_BYTES = 112 << 10,
};

/** STACK_BYTES above BELOW_BYTES of memory where a stack has its guard page, all painted, shared with
 * children. Returns the stack. */
void *paint_stack(void);
void unpaint_stack(void);
/** The lowest byte of it that lost its paint, from the beginning of what lies below. */
size_t paint_first_used(void);
/** What the call uses below the frame of this function. */
size_t paint_used_by(void (*call)(void));
/** Runs the call in a thread that has the stack, after `before`, and prints "NAME BYTES within|beyond[
 * failed]"; *status_p is what the call leaves there. */
void paint_measure(const char *name, void (*before)(void), void (*call)(void), int *status_p);
void paint_tell(const char *name, size_t used, int status);
/** Starts a thread on a painted stack; false if that cannot be. */
bool paint_start(pthread_t *thread_p, void *stack, void *(*body)(void *), void *arg);

#endif
