/* slow_path.h - whether anything makes the calls of this process out of the ordinary, in one word.
 *
 * Floor 0. Rooms that each have something to look at in every call say by a bit of theirs whether there is
 * anything. A bit is set behind what it tells of, and taken back before what it tells of is looked at once
 * more, so that nothing that comes meanwhile is missed. No lock, no allocation; signal handlers may set
 * bits. */
#ifndef MS_BASE_THREAD_SLOW_PATH_H
#define MS_BASE_THREAD_SLOW_PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum ms_slow_path {
    /* hooks: nothing is served yet, or the driver has to be asked before memshim answers (serve.h) */
    MS_SLOW_PATH_SERVICE = 1,
    /* ledger: the record has no file yet, or has something to say, or was said to have ended (journal.c) */
    MS_SLOW_PATH_RECORD = 2,
    /* ledger: something of the trace is to be written to its file, or said (trace.c) */
    MS_SLOW_PATH_TRACE = 4,
    /* ledger: it is reported, and frees are late (blocks.c) */
    MS_SLOW_PATH_REPORTED = 8,
    /* ledger: each block is a life, whose uses are noted (uses.c) */
    MS_SLOW_PATH_USES = 16,
    /* ledger: pieces of blocks end with them (inner.c) */
    MS_SLOW_PATH_INNER = 32
};
/** The bits, and above all of them how often what threads have learned of loaded objects has become void: who
 * learns something while no bit is set keeps the word with it, and as long as it is the same that holds, and
 * nothing is out of the ordinary. */
extern MS_HIDDEN _Atomic uint64_t ms_slow_path_word;
#define MS_SLOW_PATH_VOID (UINT64_C(1) << 32)

static inline uint64_t ms_slow_path_now(void)
{
    return atomic_load_explicit(&ms_slow_path_word, memory_order_acquire);
}
/** True if any bit is set in a word. */
static inline bool ms_slow_path_any(uint64_t word)
{
    return MS_UNLIKELY((uint32_t)word);
}
/** True if any of these bits is set. */
static inline bool ms_slow_path(uint32_t bits)
{
    return MS_UNLIKELY(ms_slow_path_now() & bits);
}
static inline void ms_slow_path_set(uint32_t bits)
{
    atomic_fetch_or(&ms_slow_path_word, bits);
}
static inline void ms_slow_path_clear(uint32_t bits)
{
    atomic_fetch_and(&ms_slow_path_word, ~(uint64_t)bits);
}
/** Makes void what was learned. */
static inline void ms_slow_path_forget(void)
{
    atomic_fetch_add(&ms_slow_path_word, MS_SLOW_PATH_VOID);
}

#endif
