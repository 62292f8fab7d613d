/* front LIBRARY FUNCTION [BEFORE]... - calls one function of a runtime's, all of whose arguments are 0, and
 * prints its status. The simulator refuses it before it reads any. What stands behind is called first, each
 * with an address, 0 and a size. */
#include <dlfcn.h>
#include <stdint.h>

#include "tests/program.h"

typedef int (*call_t)(void *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static int call(void *library, const char *name, void *first, uint64_t second)
{
    call_t function = (call_t)dlsym(library, name);

    return function ? function(first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) : -1;
}

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL, *block = NULL;
    int status = 0;

    if (!library)
        return 1;
    for (int i = 3; i < argc && !status; i++)
        status = call(library, argv[i], i == argc - 1 ? (void *)&block : NULL, i == argc - 1 ? 4096 : 0);
    if (status)
        return 1;
    say("status %d", call(library, argv[2], NULL, 0));
    return 0;
}
