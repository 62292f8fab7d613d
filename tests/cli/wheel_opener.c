/* wheel_opener.c - wheel_opener FUNCTION FILE...: opens each file, as an interpreter opens an extension
 * module, and prints what its function says: with "ask", ask(); with "beside", ask_beside(); with "version",
 * cudaRuntimeGetVersion. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        int (*ask)(void) = library ? (int (*)(void))dlsym(library, "ask") : NULL;
        int (*beside)(void) = library ? (int (*)(void))dlsym(library, "ask_beside") : NULL;
        int (*tell)(int *) = library ? (int (*)(int *))dlsym(library, "cudaRuntimeGetVersion") : NULL;
        int version = -1;

        if (!library)
            puts("cannot be opened");
        else if (!strcmp(argv[1], "ask") && ask)
            printf("%d\n", ask());
        else if (!strcmp(argv[1], "beside") && beside)
            printf("%d\n", beside());
        else if (!strcmp(argv[1], "version") && tell && tell(&version) == 0)
            printf("%d\n", version);
        else
            puts("has no such function");
    }
    return 0;
}
