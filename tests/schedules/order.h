/* order.h - which steps of different tasks do not commute, and a name for what has happened so far (rule
 * `every`).
 *
 * Two steps depend on each other if both touch a word of memory and one writes, or if both ask the world
 * (memory, files, the vendor) and one changes it, or if one asks for the time that the other makes go on. Two
 * beginnings of schedules with the same steps, in which steps that depend on each other come in the same
 * order, have the same name and lead to the same state. A footprint is a number for the places that a step
 * touches and others touch too, and which of them it writes. Two steps race if they depend on each other, and
 * nothing that came between them has put them into that order. Used by atomics.c, accesses.c, engine.c,
 * world.c and every.c alone; allocates once. */
#ifndef MS_TESTS_SCHEDULES_ORDER_H
#define MS_TESTS_SCHEDULES_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whether accesses are wanted; put back with all variables after each schedule. */
extern bool order_is_on;
/** Once, before anything is frozen. */
void order_prepare(void);
/** A schedule begins. What was learned of places stays. */
void order_begin(bool on);
/** The step that is under way reads these bytes, or writes them. */
void order_note_access(const volatile void *at, size_t bytes, bool writes);
static inline void order_access(const volatile void *at, size_t bytes, bool writes)
{
    if (order_is_on)
        order_note_access(at, bytes, writes);
}
/** ... or asks the world; or only looks at it, which changes nothing for others. */
void order_note_world(bool changes);
static inline void order_world(void)
{
    if (order_is_on)
        order_note_world(true);
}
static inline void order_world_looked_at(void)
{
    if (order_is_on)
        order_note_world(false);
}
/** ... or asks for the time, or makes it go on. */
void order_note_time(bool goes);
static inline void order_time(bool goes)
{
    if (order_is_on)
        order_note_time(goes);
}
/** ... or ends other tasks, which depends on all steps before. */
void order_all(void);
/** A step that is over: the name of all that has happened, which places it touched, and whose latest steps it
 * could have come before as well. */
struct step_end {
    uint64_t name;
    unsigned apart;     /* a bit for each such task, of those that made a step */
    bool spins;         /* it looks again and again at the same, which is as it was, or makes the same steps
                         * again and again and asks for the time */
    uint32_t footprint; /* never 0 */
};
enum { ORDER_ANY = 1 }; /* the footprint of what depends on all steps */
void order_end_step(int task, struct step_end *end_p);
/** The next step of this task, with that footprint, is asleep until a step of another's depends on it. */
void order_sleep(int task, uint32_t footprint);
/** Whose next steps are, a bit each. */
unsigned order_asleep(void);
/** Whether a later step raced with the step of this number, counted from 0 by order_end_step. */
bool order_raced(uint32_t step);

#endif
