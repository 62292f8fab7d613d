/*
 * opener.c - opens plugins in the way that each argument names, lets each allocate, and prints what came
 * back.
 *
 * usage: opener HOW=FILE...   HOW: local, global, deepbind, namespace
 * The plugins may sit on different runtimes: a failure must be remembered by the right one. Same output
 * natively and under memshim.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hooks/module.h"

static void *open_as(const char *how, const char *file)
{
    if (strcmp(how, "namespace") == 0)
        return dlmopen(LM_ID_NEWLM, file, RTLD_NOW);
    if (strcmp(how, "deepbind") == 0)
        return dlopen(file, RTLD_NOW | RTLD_DEEPBIND);
    if (strcmp(how, "global") == 0)
        return dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

static void exercise(struct module *all, int count, int i)
{
    void *p = NULL, *kept = NULL;
    int status = all[i].alloc(&p, 1 << 20);

    printf("%d: runtime %d, alloc %d %s\n", i, all[i].version(), status, p ? "pointer" : "none");
    printf("%d: free %d\n", i, all[i].free(p));
    status = all[i].fail();
    printf("%d: fail %d\n", i, status);
    for (int k = 0; k < count; k++)
        printf("%d: last of %d is %d\n", i, k, all[k].last(0));
    all[i].last(1);
    printf("%d: kept %d\n", i, all[i].alloc(&kept, (size_t)(i + 1) << 12));
}

int main(int argc, char **argv)
{
    struct module all[8];
    int count = 0;

    for (int i = 1; i < argc && count < 8; i++) {
        char *how = strdup(argv[i]), *file = strchr(how, '=');
        void *handle;

        *file++ = '\0';
        handle = open_as(how, file);
        printf("%s: %s\n", how, handle ? "open" : dlerror());
        if (handle)
            all[count++] = module_bind(handle);
        free(how);
    }
    for (int i = 0; i < count; i++)
        exercise(all, count, i);
    return 0;
}
