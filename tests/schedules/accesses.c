/* accesses.c - what the compiler calls under -fsanitize=thread beside atomic operations: nothing is done of
 * it.
 *
 * Plain accesses are no points. A fence is one. */
#include <stddef.h>
#include <string.h>

#include "engine.h"

/* The compiler declares none of these. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define ACCESS(bytes)                                                                                        \
    void __tsan_read##bytes(void *at)                                                                        \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_write##bytes(void *at)                                                                       \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_read_write##bytes(void *at)                                                                  \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_unaligned_read##bytes(void *at)                                                              \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_unaligned_write##bytes(void *at)                                                             \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_unaligned_read_write##bytes(void *at)                                                        \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_volatile_read##bytes(void *at)                                                               \
    {                                                                                                        \
        (void)at;                                                                                            \
    }                                                                                                        \
    void __tsan_volatile_write##bytes(void *at)                                                              \
    {                                                                                                        \
        (void)at;                                                                                            \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void *at, size_t bytes)
{
    (void)at, (void)bytes;
}

void __tsan_write_range(void *at, size_t bytes)
{
    (void)at, (void)bytes;
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    return memmove(to, from, bytes);
}

void *__tsan_memset(void *at, int byte, size_t bytes)
{
    return memset(at, byte, bytes);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    engine_point(__builtin_return_address(0));
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
