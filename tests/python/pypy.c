/* pypy.c - for pypy.bats: a library that exports what PyPy's does, under its names. Whoever calls any of it
 * ends the process. */
#include <stdlib.h>

int PyPyGILState_Ensure(void);
int PyPy_IsInitialized(void);
int PyPy_AtExit(void (*function)(void));
int _PyPy_IsFinalizing(void);
void *_PyPyThreadState_UncheckedGet(void);
char PyPyUnicode_Type[64];

int PyPyGILState_Ensure(void)
{
    abort();
}

int PyPy_IsInitialized(void)
{
    abort();
}

int PyPy_AtExit(void (*function)(void))
{
    (void)function;
    abort();
}

int _PyPy_IsFinalizing(void)
{
    abort();
}

void *_PyPyThreadState_UncheckedGet(void)
{
    abort();
}
