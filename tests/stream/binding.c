/*
 * binding.c - cudaMemPoolCreate as a binding of another language calls it: nothing is linked, every function
 * is found at run time, by dlsym in the runtime or in the driver, or by cuGetProcAddress; the properties are
 * a zeroed block of bytes that is filled by offset and passed by pointer; a pool is a number. Prints "what
 * value" lines. The argument says by which way: runtime, driver, lookup or hip; with "12" behind it by the
 * runtime of CUDA 12, with
 * "_ptsz" by the twins whose default stream is the thread's own, which is the stream then.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uintptr_t word_t;
/* what is more than a function takes is not looked at */
typedef int (*func_t)(word_t, word_t, word_t, word_t, word_t);

static void *library;
static func_t lookup; /* cuGetProcAddress_v2, or NULL */
static const char *prefix;
static int twins;

/* Only what has a stream has a twin. */
static int has_twin(const char *name)
{
    return strstr(name, "Async") || !strcmp(name, "StreamSynchronize");
}

static func_t find(const char *name)
{
    char whole[80];
    void *p = NULL;
    int found = 0;

    snprintf(whole, sizeof whole, "%s%s%s", prefix, name, twins && !lookup && has_twin(name) ? "_ptsz" : "");
    if (lookup)
        lookup((word_t)whole, (word_t)&p, 13000, twins ? 2 : 0, (word_t)&found);
    else
        p = dlsym(library, whole);
    if (!p) {
        printf("%s is not there\n", whole);
        exit(1);
    }
    return (func_t)(uintptr_t)p;
}

#define W(x)                   ((word_t)(x))
#define CALL(name, a, b, c, d) find(name)(W(a), W(b), W(c), W(d), 0)

static void say(const char *what, long long value)
{
    printf("%s %lld\n", what, value);
}

/* 88 bytes: type, handle types, place, security, most, usage, reserved. */
static void properties(unsigned char *bytes, int type, int handles, int place, int device, uint64_t most)
{
    memset(bytes, 0, 88);
    memcpy(bytes, &type, 4);
    memcpy(bytes + 4, &handles, 4);
    memcpy(bytes + 8, &place, 4);
    memcpy(bytes + 12, &device, 4);
    memcpy(bytes + 24, &most, 8);
}

static uintptr_t stream_for(const char *way)
{
    uintptr_t stream = 0;

    if (twins && !strncmp(way, "runtime", 7))
        return 0;
    if (!strncmp(way, "runtime", 7) || !strcmp(way, "hip")) {
        CALL("StreamCreateWithFlags", &stream, 1, 0, 0);
        return stream;
    }
    void *context = NULL;
    CALL("Init", 0, 0, 0, 0);
    CALL("DevicePrimaryCtxRetain", &context, 0, 0, 0);
    CALL("CtxSetCurrent", context, 0, 0, 0);
    if (!twins)
        CALL("StreamCreate", &stream, 1, 0, 0);
    return stream;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "runtime";
    int hip = !strcmp(way, "hip"), runtime = hip || !strncmp(way, "runtime", 7);
    unsigned char props[88];
    uintptr_t pool = 0, stream;
    uint64_t value = UINT64_MAX;
    void *p[64] = {NULL};

    twins = strstr(way, "_ptsz") != NULL;
    library = dlopen(hip                 ? "libamdhip64.so.7"
                     : !runtime          ? "libcuda.so.1"
                     : strstr(way, "12") ? "libcudart.so.12"
                                         : "libcudart.so.13",
                     RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    prefix = hip ? "hip" : runtime ? "cuda" : "cu";
    if (!strncmp(way, "lookup", 6))
        lookup = (func_t)(uintptr_t)dlsym(library, "cuGetProcAddress_v2");
    stream = stream_for(way);
    say("create.null", CALL("MemPoolCreate", &pool, NULL, 0, 0));
    properties(props, 1, 0, 4, 0, 0);
    say("create.host_numa_current", CALL("MemPoolCreate", &pool, props, 0, 0));
    properties(props, 1, 1, 2, 0, 0);
    say("create.host_with_handles", CALL("MemPoolCreate", &pool, props, 0, 0));
    properties(props, 1, 0, 1, 0, 0);
    props[40] = 1;
    say("create.reserved", CALL("MemPoolCreate", &pool, props, 0, 0));
    properties(props, 1, 0, 1, 0, 0);
    say("create", CALL("MemPoolCreate", &pool, props, 0, 0));
    say("threshold", CALL("MemPoolSetAttribute", pool, 4, &value, 0));
    for (int i = 0; i < 64; i++)
        if (CALL(runtime ? "MallocFromPoolAsync" : "MemAllocFromPoolAsync", &p[i], (size_t)(1000 * (i + 1)),
                 pool, stream))
            say("alloc", i);
    value = 0;
    CALL("MemPoolGetAttribute", pool, 7, &value, 0);
    say("used", (long long)value);
    for (int i = 0; i < 64; i++)
        if (CALL(runtime ? "FreeAsync" : "MemFreeAsync", p[i], stream, 0, 0))
            say("free", i);
    say("synchronize", CALL("StreamSynchronize", stream, 0, 0, 0));
    CALL("MemPoolGetAttribute", pool, 7, &value, 0);
    say("used.freed", (long long)value);
    CALL("MemPoolGetAttribute", pool, 8, &value, 0);
    say("used.high", (long long)value);
    say("trim", CALL("MemPoolTrimTo", pool, 0, 0, 0));
    CALL("MemPoolGetAttribute", pool, 5, &value, 0);
    say("reserved.trimmed", (long long)value);
    say("destroy", CALL("MemPoolDestroy", pool, 0, 0, 0));
    return 0;
}
