/* recorded.h - calls of the pool's with the record beside it, as the hooks make them: for calls.c.
 *
 * Lies in the program's variables: put back with them. What is counted here is read and written without
 * points. */
#ifndef MS_TESTS_SCHEDULES_RECORDED_H
#define MS_TESTS_SCHEDULES_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/api/pool.h"

/** Whether anything is recorded: else all below do nothing. */
bool recorded_is_on(void);
/** A new record; and threads may keep the time by themselves, as where the processor's counter is trusted. */
void recorded_start(void);

/** A request, or a free, out of what the thread has at hand (fastpath/fastpath.h): 0, or false, for all else.
 * `in_turn`: pool and record need not change at once. */
uint64_t recorded_hit(uint64_t context, uint64_t bytes, bool in_turn);
bool recorded_free_hit(uint64_t address);
/** Any other call: the pool changes first or last, and the record by itself, between the two. */
void recorded_begin(void);
void recorded_end(void);
/** What that used is at hand from now on, if it may be. */
void recorded_learn(void);
/** The pool has given it: its record id. */
uint32_t recorded_serve(const struct ms_pool_block *block, uint64_t bytes);
/** It goes; false if the record does not have it. */
bool recorded_unserve(const struct ms_pool_block *block);
/** A context has ended, and what lay in it. */
void recorded_died(uint64_t context);

/** The pool stands still, with so many bytes live: fails where the record has others, though nobody is
 * between the two. */
void recorded_expect_live(uint64_t bytes);
/** At the end: the block of this record id lies there; and in all so many are live. */
void recorded_expect(uint32_t record_id, uint64_t address, uint64_t bytes);
void recorded_expect_count(unsigned count);

#endif
