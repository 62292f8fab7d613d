/* copies_calls.h - what a caller of the runtime offers copies.c: functions of the runtime as this object was
 * bound to them. */
#ifndef MS_TESTS_HOOKS_COPIES_CALLS_H
#define MS_TESTS_HOOKS_COPIES_CALLS_H

/** How many functions there are. */
int copies_count(void);
/** Makes the i-th fail, and returns its status: the copy of the runtime that answered remembers it. */
int copies_fail(int i);
const char *copies_name(int i);
/** The pointer that this object holds, for somebody else to call. */
void *copies_pointer(int i);

#endif
