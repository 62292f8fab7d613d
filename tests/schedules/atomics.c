/* atomics.c - what the compiler calls for each atomic operation under -fsanitize=thread: a point, and then
 * the operation.
 *
 * Memory is sequentially consistent here: who stores is seen at once by all. */
#include <stdint.h>

#include "engine.h"

/* The compiler declares none of these. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define POINT() engine_point(__builtin_return_address(0))

#define READ_MODIFY_WRITE(bits, name, expression)                                                            \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t value,           \
                                                int order)                                                   \
    {                                                                                                        \
        (void)order;                                                                                         \
        POINT();                                                                                             \
        uint##bits##_t old = *at;                                                                            \
        *at = (uint##bits##_t)(expression);                                                                  \
        return old;                                                                                          \
    }

#define COMPARE_EXCHANGE(bits, strength)                                                                     \
    int __tsan_atomic##bits##_compare_exchange_##strength(                                                   \
        volatile uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, int order, int failure) \
    {                                                                                                        \
        (void)order, (void)failure;                                                                          \
        POINT();                                                                                             \
        uint##bits##_t old = *at;                                                                            \
        int same = old == *expected;                                                                         \
        *at = same ? value : old;                                                                            \
        *expected = old;                                                                                     \
        return same;                                                                                         \
    }

#define OPERATIONS(bits)                                                                                     \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)                  \
    {                                                                                                        \
        (void)order;                                                                                         \
        POINT();                                                                                             \
        return *at;                                                                                          \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order)           \
    {                                                                                                        \
        (void)order;                                                                                         \
        POINT();                                                                                             \
        *at = value;                                                                                         \
    }                                                                                                        \
    READ_MODIFY_WRITE(bits, exchange, value)                                                                 \
    READ_MODIFY_WRITE(bits, fetch_add, old + value)                                                          \
    READ_MODIFY_WRITE(bits, fetch_sub, old - value)                                                          \
    READ_MODIFY_WRITE(bits, fetch_and, old &value)                                                           \
    READ_MODIFY_WRITE(bits, fetch_or, old | value)                                                           \
    READ_MODIFY_WRITE(bits, fetch_xor, old ^ value)                                                          \
    COMPARE_EXCHANGE(bits, strong)                                                                           \
    COMPARE_EXCHANGE(bits, weak)                                                                             \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                               \
        volatile uint##bits##_t *at, uint##bits##_t expected, uint##bits##_t value, int order, int failure)  \
    {                                                                                                        \
        (void)order, (void)failure;                                                                          \
        POINT();                                                                                             \
        uint##bits##_t old = *at;                                                                            \
        if (old == expected)                                                                                 \
            *at = value;                                                                                     \
        return old;                                                                                          \
    }

OPERATIONS(8)
OPERATIONS(16)
OPERATIONS(32)
OPERATIONS(64)
