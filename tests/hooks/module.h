/* module.h - what module.c's plugins offer; programs that link two of them reach each through dlopen and this
 * table. */
#ifndef MS_TESTS_HOOKS_MODULE_H
#define MS_TESTS_HOOKS_MODULE_H

#include <dlfcn.h>
#include <stddef.h>

int module_alloc(void **p, size_t bytes);
int module_free(void *p);
int module_fail(void);
int module_last(int clear);
int module_version(void);

struct module {
    void *handle;
    int (*alloc)(void **, size_t);
    int (*free)(void *);
    int (*fail)(void);
    int (*last)(int);
    int (*version)(void);
};

/** The plugin's functions, or a table of NULLs. */
static inline struct module module_bind(void *handle)
{
    struct module m = {handle, NULL, NULL, NULL, NULL, NULL};

    if (handle) {
        *(void **)&m.alloc = dlsym(handle, "module_alloc");
        *(void **)&m.free = dlsym(handle, "module_free");
        *(void **)&m.fail = dlsym(handle, "module_fail");
        *(void **)&m.last = dlsym(handle, "module_last");
        *(void **)&m.version = dlsym(handle, "module_version");
    }
    return m;
}

#endif
