/*
 * proxy_driver.c: a libcuda.so.1 that stands before the driver and notes which of its functions are called.
 *
 * A CUDA runtime opens libcuda.so.1 and takes everything through cuGetProcAddress. This library answers with
 * small pieces of code of its own, one per function, which note the call and go on to the function, whatever
 * its parameters. The driver itself is opened by the path in ROUTES_DRIVER. Only tests/gpu/routes is run with
 * it; calls are noted for one thread.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

#define PUBLIC     __attribute__((visibility("default")))
#define MOST       4096
#define PIECE      32
#define NAME_BYTES 64

static struct route {
    void *target;
    char name[NAME_BYTES];
    unsigned order; /* of its first call since the last beginning; 0: not called */
    unsigned calls;
} routes[MOST];
static unsigned route_count, calls_noted;
static unsigned char *pieces;

static const struct known {
    const char *name;
    int version;
    unsigned per_thread;
    const char *symbol;
} known[] = {
#define X(name, version, per_thread, symbol) {#name, version, per_thread, #symbol},
#include "sim/cuda/exports.def"
#undef X
};

/* Called by the common piece of code, between a caller and a driver function: the target of a route. */
void *routes_note(unsigned index);
void *routes_note(unsigned index)
{
    if (!routes[index].order)
        routes[index].order = ++calls_noted;
    routes[index].calls++;
    return routes[index].target;
}

#if defined(__x86_64__)
void routes_common(void);
/* Keeps every register that can carry an argument, and leaves the stack as it was. */
__asm__(".text\n"
        ".type routes_common, @function\n"
        "routes_common:\n"
        "    push %rdi\n    push %rsi\n    push %rdx\n    push %rcx\n"
        "    push %r8\n    push %r9\n    push %rax\n    push %r11\n"
        "    sub $136, %rsp\n"
        "    movups %xmm0, (%rsp)\n    movups %xmm1, 16(%rsp)\n"
        "    movups %xmm2, 32(%rsp)\n    movups %xmm3, 48(%rsp)\n"
        "    movups %xmm4, 64(%rsp)\n    movups %xmm5, 80(%rsp)\n"
        "    movups %xmm6, 96(%rsp)\n    movups %xmm7, 112(%rsp)\n"
        "    mov %r11d, %edi\n"
        "    call routes_note@PLT\n"
        "    mov %rax, %r10\n"
        "    movups (%rsp), %xmm0\n    movups 16(%rsp), %xmm1\n"
        "    movups 32(%rsp), %xmm2\n    movups 48(%rsp), %xmm3\n"
        "    movups 64(%rsp), %xmm4\n    movups 80(%rsp), %xmm5\n"
        "    movups 96(%rsp), %xmm6\n    movups 112(%rsp), %xmm7\n"
        "    add $136, %rsp\n"
        "    pop %r11\n    pop %rax\n    pop %r9\n    pop %r8\n"
        "    pop %rcx\n    pop %rdx\n    pop %rsi\n    pop %rdi\n"
        "    jmp *%r10\n"
        ".size routes_common, .-routes_common\n");

/* endbr64; mov index, %r11d; mov routes_common, %r10; jmp *%r10 */
static void write_piece(unsigned char *piece, unsigned index)
{
    static const unsigned char code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 0, 0, 0,    0,    0x49, 0xba,
                                         0,    0,    0,    0,    0,    0,    0, 0, 0x41, 0xff, 0xe2};
    uintptr_t common = (uintptr_t)routes_common;

    memcpy(piece, code, sizeof code);
    memcpy(piece + 6, &index, sizeof index);
    memcpy(piece + 12, &common, sizeof common);
}
#define CAN_NOTE 1
#else
static void write_piece(unsigned char *piece, unsigned index)
{
    (void)piece;
    (void)index;
}
#define CAN_NOTE 0
#endif

static void *driver(void)
{
    static void *handle;

    if (!handle && getenv("ROUTES_DRIVER"))
        handle = dlopen(getenv("ROUTES_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* The exported name behind a lookup, or name@version if the headers do not know it. */
static void name_route(char *text, const char *name, int version, bool per_thread)
{
    const struct known *best = NULL;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0 && known[i].version <= version &&
            known[i].per_thread <= per_thread &&
            (!best || known[i].per_thread > best->per_thread ||
             (known[i].per_thread == best->per_thread && known[i].version > best->version)))
            best = &known[i];
    if (best)
        snprintf(text, NAME_BYTES, "%s", best->symbol);
    else
        snprintf(text, NAME_BYTES, "%s@%d", name, version);
}

/* A piece of code for a function of the driver; the function itself where none can be made. */
static void *route_to(void *target, const char *name, int version, bool per_thread)
{
    const size_t bytes = (size_t)MOST * PIECE;

    if (!CAN_NOTE || route_count == MOST)
        return target;
    if (!pieces) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return target;
        pieces = memory;
    }
    struct route *route = &routes[route_count];
    unsigned char *piece = pieces + (size_t)route_count * PIECE;
    if (mprotect(pieces, bytes, PROT_READ | PROT_WRITE) != 0)
        return target;
    route->target = target;
    name_route(route->name, name, version, per_thread);
    write_piece(piece, route_count);
    if (mprotect(pieces, bytes, PROT_READ | PROT_EXEC) != 0)
        abort(); /* none of the pieces could run any more */
    route_count++;
    return piece;
}

PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **function_p, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *found_p)
{
    __typeof__(&cuGetProcAddress_v2) real = NULL;

    if (driver())
        *(void **)&real = dlsym(driver(), "cuGetProcAddress_v2");
    if (!real)
        return CUDA_ERROR_NOT_FOUND;
    CUresult status = real(name, function_p, version, flags, found_p);
    if (status != CUDA_SUCCESS || !name || !name[0] || !function_p || !*function_p)
        return status;
    if (strcmp(name, "cuGetProcAddress") == 0)
        *function_p =
            version >= 12000 ? (void *)(uintptr_t)cuGetProcAddress_v2 : (void *)(uintptr_t)cuGetProcAddress;
    else
        *function_p = route_to(*function_p, name, version,
                               (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
    return status;
}

PUBLIC CUresult cuGetProcAddress(const char *name, void **function_p, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(name, function_p, version, flags, NULL);
}

/** From here on calls are noted anew. */
PUBLIC void routes_begin(void);
PUBLIC void routes_begin(void)
{
    for (unsigned i = 0; i < route_count; i++)
        routes[i].order = 0;
    calls_noted = 0;
}

/** What was called since, in the order of the first calls, with commas. */
PUBLIC void routes_take(char *text, size_t size);
PUBLIC void routes_take(char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned order = 1; order <= calls_noted; order++)
        for (unsigned i = 0; i < route_count; i++)
            if (routes[i].order == order && used + NAME_BYTES < size)
                used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", routes[i].name);
    if (!used)
        snprintf(text, size, CAN_NOTE ? "none" : "- calls are noted on x86-64 only");
}

/** How often a function was called in all. */
PUBLIC unsigned routes_calls(const char *name);
PUBLIC unsigned routes_calls(const char *name)
{
    unsigned calls = 0;

    for (unsigned i = 0; i < route_count; i++)
        if (strcmp(routes[i].name, name) == 0)
            calls += routes[i].calls;
    return calls;
}
