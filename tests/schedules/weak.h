/* weak.h - memory as C11 has it, for tasks of which one runs at a time (rule `weak`).
 *
 * A load may see any store that no later one of the same place hides from its task: what came before it, in
 * the order that the memory_order arguments of the sources make. Plain accesses that nothing orders, of which
 * one writes, are a data race, and a finding. Used by atomics.c, accesses.c and world.c alone; allocates
 * once. */
#ifndef MS_TESTS_SCHEDULES_WEAK_H
#define MS_TESTS_SCHEDULES_WEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Once, before anything is frozen. */
void weak_prepare(void);
/** Whether the schedule that runs is one of those: else nothing but weak_prepare() and weak_begin() need be
 * called, which is what the callers ask for at each access. */
extern bool weak_is_on;
/** A schedule begins; what was there before it is seen by all. Else memory is sequentially consistent. */
void weak_begin(bool weak);

/** An atomic operation on a place that holds `value`; `order` is the compiler's __ATOMIC_*. A load says what
 * it sees, of what may differ from `value`; the others are told what they have stored. */
uint64_t weak_load(const volatile void *at, unsigned bytes, uint64_t value, int order, const void *pc);
/** As a comparison sees it: if that is what is expected, then `value` is, and the comparison succeeds. */
uint64_t weak_compare(const volatile void *at, unsigned bytes, uint64_t value, uint64_t expected, int failure,
                      const void *pc);
void weak_store(const volatile void *at, unsigned bytes, uint64_t old, uint64_t value, int order,
                const void *pc);
void weak_update(const volatile void *at, unsigned bytes, uint64_t old, uint64_t value, int order,
                 const void *pc);
void weak_fence(int order);
/** A fence in every task. */
void weak_fence_all(void);
/** The calling task sees what all have done: the others are no more. */
void weak_see_all(void);
void weak_plain(const volatile void *at, size_t bytes, bool writes, const void *pc);

#endif
