/* atomics.c - what the compiler calls for each atomic operation under -fsanitize=thread: a point, and then
 * the operation.
 *
 * The memory itself has the latest store of each place, as read-modify-write operations see it; what a
 * load, or a comparison that fails, sees of older ones is weak.c's to say. */
#include <stdint.h>

#include "engine.h"
#include "order.h"
#include "weak.h"

/* The compiler declares none of these. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define PC() __builtin_return_address(0)

#define READ_MODIFY_WRITE(bits, name, expression)                                                            \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t value,           \
                                                int order)                                                   \
    {                                                                                                        \
        engine_point(PC());                                                                                  \
        order_access(at, bits / 8, true);                                                                    \
        uint##bits##_t old = *at;                                                                            \
        *at = (uint##bits##_t)(expression);                                                                  \
        if (weak_is_on)                                                                                      \
            weak_update(at, bits / 8, old, *at, order, PC());                                                \
        return old;                                                                                          \
    }

/* What it finds; it has stored `value` where that is what was expected. */
#define COMPARE(bits)                                                                                        \
    static uint##bits##_t compare##bits(volatile uint##bits##_t *at, uint##bits##_t expected,                \
                                        uint##bits##_t value, int order, int failure, const void *pc)        \
    {                                                                                                        \
        engine_point(pc);                                                                                    \
        uint##bits##_t seen = *at;                                                                           \
        order_access(at, bits / 8, seen == expected);                                                        \
        if (weak_is_on)                                                                                      \
            seen = (uint##bits##_t)weak_compare(at, bits / 8, seen, expected, failure, pc);                  \
        if (seen == expected)                                                                                \
            *at = value;                                                                                     \
        if (seen == expected && weak_is_on)                                                                  \
            weak_update(at, bits / 8, expected, value, order, pc);                                           \
        return seen;                                                                                         \
    }

#define COMPARE_EXCHANGE(bits, strength)                                                                     \
    int __tsan_atomic##bits##_compare_exchange_##strength(                                                   \
        volatile uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, int order, int failure) \
    {                                                                                                        \
        uint##bits##_t old = compare##bits(at, *expected, value, order, failure, PC());                      \
        int same = old == *expected;                                                                         \
        *expected = old;                                                                                     \
        return same;                                                                                         \
    }

#define OPERATIONS(bits)                                                                                     \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)                  \
    {                                                                                                        \
        engine_point(PC());                                                                                  \
        order_access(at, bits / 8, false);                                                                   \
        return weak_is_on ? (uint##bits##_t)weak_load(at, bits / 8, *at, order, PC()) : *at;                 \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order)           \
    {                                                                                                        \
        engine_point(PC());                                                                                  \
        order_access(at, bits / 8, true);                                                                    \
        if (weak_is_on)                                                                                      \
            weak_store(at, bits / 8, *at, value, order, PC());                                               \
        *at = value;                                                                                         \
    }                                                                                                        \
    READ_MODIFY_WRITE(bits, exchange, value)                                                                 \
    READ_MODIFY_WRITE(bits, fetch_add, old + value)                                                          \
    READ_MODIFY_WRITE(bits, fetch_sub, old - value)                                                          \
    READ_MODIFY_WRITE(bits, fetch_and, old &value)                                                           \
    READ_MODIFY_WRITE(bits, fetch_or, old | value)                                                           \
    READ_MODIFY_WRITE(bits, fetch_xor, old ^ value)                                                          \
    COMPARE(bits)                                                                                            \
    COMPARE_EXCHANGE(bits, strong)                                                                           \
    COMPARE_EXCHANGE(bits, weak)                                                                             \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                               \
        volatile uint##bits##_t *at, uint##bits##_t expected, uint##bits##_t value, int order, int failure)  \
    {                                                                                                        \
        return compare##bits(at, expected, value, order, failure, PC());                                     \
    }

OPERATIONS(8)
OPERATIONS(16)
OPERATIONS(32)
OPERATIONS(64)
