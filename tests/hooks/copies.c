/*
 * copies.c - several copies of one runtime in a process: which of them does each caller's call reach?
 *
 * usage: copies HOW=FILE...   in this order. HOW: local, global (open a copy of the runtime, or what brings
 * one), again (make an open one global), namespace (open one globally by dlmopen, in the only namespace),
 * calls (open a plugin and have it make its calls), pointers (call a plugin's pointers from here), close. A
 * call that fails is remembered by the copy that answered it: after each the copies are asked, by functions
 * that memshim has no wrapper of. Built also with calls of its own (COPIES_LINKED), which it makes first and
 * last.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hooks/copies_calls.h"

enum { COPIES_MAX = 8 };

static struct copy {
    char name[64]; /* the directory that it lies in */
    int (*last)(void);
} copies[COPIES_MAX];
static int copy_count;

/* The copy that a handle, or RTLD_DEFAULT, leads to, or none: each is noted once. */
static void note_copy(void *handle)
{
    struct copy copy;
    Dl_info info;
    char *slash;

    *(void **)&copy.last = dlsym(handle, "cudaGetLastError");
    if (!copy.last || !dladdr((void *)copy.last, &info))
        return;
    for (int i = 0; i < copy_count; i++) {
        if (copies[i].last == copy.last)
            return;
    }
    char *path = strdup(info.dli_fname);
    if ((slash = strrchr(path, '/')))
        *slash = '\0';
    slash = strrchr(path, '/');
    snprintf(copy.name, sizeof(copy.name), "%s", slash ? slash + 1 : path);
    free(path);
    copies[copy_count++] = copy;
}

static void tell(const char *caller, const char *function, int status)
{
    printf("%s: %s %d in", caller, function, status);
    for (int i = 0; i < copy_count; i++) {
        int last = copies[i].last();
        if (last)
            printf(" %s (%d)", copies[i].name, last);
    }
    printf("\n");
}

/* A pointer of the i-th function's type, called with what it refuses. */
static int fail_by(void *function, int i)
{
    size_t pitch = 0;
    void *nowhere = (void *)(unsigned long)0xdead0000;

    if (i == 1 || i == 3)
        return ((int (*)(void *))function)(nowhere);
    if (i == 4)
        return ((int (*)(void **, size_t *, size_t, size_t))function)(NULL, &pitch, 1, 1);
    if (i == 5)
        return ((int (*)(void **, size_t, unsigned))function)(NULL, 1, 0);
    return ((int (*)(void **, size_t))function)(NULL, 1);
}

static void call_plugin(const char *file, int by_pointer)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    int (*fail)(int), (*count)(void);
    void *(*pointer)(int);
    const char *(*name)(int);

    if (!handle) {
        printf("plugin: %s\n", dlerror());
        return;
    }
    *(void **)&fail = dlsym(handle, "copies_fail");
    *(void **)&count = dlsym(handle, "copies_count");
    *(void **)&name = dlsym(handle, "copies_name");
    *(void **)&pointer = dlsym(handle, "copies_pointer");
    for (int i = 0; i < count(); i++)
        tell(by_pointer ? "pointer" : "plugin", name(i), by_pointer ? fail_by(pointer(i), i) : fail(i));
}

/* What a lookup in one copy answers is that copy's. */
static void call_handle(void *handle)
{
    static const char *const names[] = {"cudaMalloc",   "cudaFree",        "cudaMallocHost",
                                        "cudaFreeHost", "cudaMallocPitch", "cudaHostAlloc"};

    for (int i = 0; i < 6; i++) {
        void *function = dlsym(handle, names[i]);
        if (function)
            tell("handle", names[i], fail_by(function, i));
    }
}

static void *open_as(const char *order, const char *file)
{
    int flags =
        RTLD_LAZY | (order[0] == 'l' ? RTLD_LOCAL : RTLD_GLOBAL) | (order[0] == 'a' ? RTLD_NOLOAD : 0);

    return order[0] == 'n' ? dlmopen(LM_ID_BASE, file, flags) : dlopen(file, flags);
}

static void obey(char *order)
{
    char *file = strchr(order, '=');
    void *handle;

    *file++ = '\0';
    if (strcmp(order, "calls") == 0 || strcmp(order, "pointers") == 0) {
        call_plugin(file, order[0] == 'p');
        return;
    }
    handle = open_as(order, file);
    printf("%s: %s\n", order, handle ? "open" : dlerror());
    if (!handle)
        return;
    if (strcmp(order, "close") == 0) {
        copy_count = 0;
        dlclose(handle);
        dlclose(handle);
        return;
    }
    note_copy(handle);
    call_handle(handle);
}

#ifdef COPIES_LINKED
static void call_own(void)
{
    note_copy(RTLD_DEFAULT);
    for (int i = 0; i < copies_count(); i++)
        tell("program", copies_name(i), copies_fail(i));
}
#else
static void call_own(void)
{
}
#endif

int main(int argc, char **argv)
{
    call_own();
    for (int i = 1; i < argc; i++) {
        char *order = strdup(argv[i]);
        obey(order);
        free(order);
    }
    call_own();
    return 0;
}
