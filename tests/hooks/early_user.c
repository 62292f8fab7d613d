/* early_user.c - prints what early.c's constructor got; the library is linked in, or opened when a path is
 * given. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef EARLY_LINKED
extern int early_results[4];
#endif

int main(int argc, char **argv)
{
    int *results = NULL;

#ifdef EARLY_LINKED
    results = early_results;
#endif
    if (argc > 1) {
        void *handle = dlopen(argv[1], RTLD_NOW);

        if (!handle) {
            printf("%s\n", dlerror());
            return 1;
        }
        results = dlsym(handle, "early_results");
    }
    if (!results)
        return 1;
    printf("constructor %d, its thread %d, create %d\n", results[0], results[1], results[2]);
    return 0;
}
