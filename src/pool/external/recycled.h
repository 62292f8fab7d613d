/* recycled.h - things of the vendor's that are recycled whole: physical memory by handle.
 *
 * Floor 2. A thing that the program gave back waits here until it asks for one of the same key again. The
 * vendor is never called from here: who takes out what must go gives it back. Nothing is known of addresses;
 * a thing is a number. Any thread; one short lock, memory from the arena, used again. */
#ifndef MS_POOL_EXTERNAL_RECYCLED_H
#define MS_POOL_EXTERNAL_RECYCLED_H

#include <stdbool.h>
#include <stdint.h>

struct ms_gpu;

/** The properties that must be equal for one recycled handle to stand for another. */
struct ms_recycled_key {
    const struct ms_gpu *gpu; /* whose it is */
    uint64_t what;            /* the properties that it was asked for with, packed */
    uint64_t bytes;
    int device;
};

struct ms_recycled {
    struct ms_recycled_key key;
    uint64_t thing;
    uint64_t place; /* stands for an address in the map of segments: no two that wait overlap */
};

/** A place for a thing of this size, of no other ever. */
uint64_t ms_recycled_place(uint64_t bytes);
/** Keep a thing. False if there is no memory to remember it by. */
bool ms_recycled_put(const struct ms_recycled *whole);
/** The one of this key that was put latest. */
bool ms_recycled_take(const struct ms_recycled_key *key, struct ms_recycled *whole_p);
/** Of a device, the one that was put first. */
bool ms_recycled_evict(int device, struct ms_recycled *whole_p);
/** True if the thing waits here: to the program it is gone. */
bool ms_recycled_has(uint64_t thing);
/** Bytes of a device that wait. */
uint64_t ms_recycled_bytes(int device);
/** Nothing comes or goes until ms_recycled_let_go, of the same thread; false if that is not to be had in
 * `timeout_ms`. In between: each. */
bool ms_recycled_hold(unsigned timeout_ms);
void ms_recycled_each(void (*tell)(void *arg, const struct ms_recycled *whole), void *arg);
void ms_recycled_let_go(void);
/** Invariant: the bytes of each device are those of its entries, and both lists hold the same ones. For
 * tests. */
bool ms_recycled_check(void);
/** In a fork child: nothing is here. */
void ms_recycled_reset(void);

#endif
