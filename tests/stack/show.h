/* show.h - prints the stack that our walk finds, for a debugger to be compared with. For programs under
 * tests/stack alone. */
#ifndef MS_TESTS_STACK_SHOW_H
#define MS_TESTS_STACK_SHOW_H

#ifdef __cplusplus
extern "C" {
#endif

/** Prints "frame ADDRESS" for each frame from the caller outwards, then calls stop_here. */
void show_stack(void);

/** Does nothing; where to stop. Its caller is show_stack, and the caller of that is the first frame
 * printed. */
void stop_here(void);

#ifdef __cplusplus
}
#endif

#endif
