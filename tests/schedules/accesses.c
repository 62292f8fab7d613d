/* accesses.c - what the compiler calls under -fsanitize=thread beside atomic operations.
 *
 * Plain accesses are no points; a fence is one. weak.c hears of both. */
#include <stddef.h>
#include <string.h>

#include "engine.h"
#include "order.h"
#include "weak.h"

/* The compiler declares none of these. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define PC() __builtin_return_address(0)

static __attribute__((noinline)) void hear(const volatile void *at, size_t bytes, bool writes, const void *pc)
{
    if (weak_is_on)
        weak_plain(at, bytes, writes, pc);
    order_access(at, bytes, writes);
}

/* Of ten accesses nine are heard by nobody. */
static inline void note(const volatile void *at, size_t bytes, bool writes, const void *pc)
{
    if (__builtin_expect(engine_hears, false))
        hear(at, bytes, writes, pc);
}

#define ONE_ACCESS(name, bytes, writes)                                                                      \
    void __tsan_##name##bytes(void *at)                                                                      \
    {                                                                                                        \
        note(at, bytes, writes, PC());                                                                       \
    }
#define ACCESS(bytes)                                                                                        \
    ONE_ACCESS(read, bytes, false)                                                                           \
    ONE_ACCESS(write, bytes, true)                                                                           \
    ONE_ACCESS(read_write, bytes, true)                                                                      \
    ONE_ACCESS(unaligned_read, bytes, false)                                                                 \
    ONE_ACCESS(unaligned_write, bytes, true)                                                                 \
    ONE_ACCESS(unaligned_read_write, bytes, true)                                                            \
    ONE_ACCESS(volatile_read, bytes, false)                                                                  \
    ONE_ACCESS(volatile_write, bytes, true)
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void *at, size_t bytes)
{
    note(at, bytes, false, PC());
}

void __tsan_write_range(void *at, size_t bytes)
{
    note(at, bytes, true, PC());
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    note(from, bytes, false, PC());
    note(to, bytes, true, PC());
    return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    note(from, bytes, false, PC());
    note(to, bytes, true, PC());
    return memmove(to, from, bytes);
}

void *__tsan_memset(void *at, int byte, size_t bytes)
{
    note(at, bytes, true, PC());
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
    engine_point(PC());
    weak_fence(order);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* What is not compiled so, the vendor and the book, is built with -finstrument-functions. */
void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)function, (void)caller;
    order_world();
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function, (void)caller;
}
