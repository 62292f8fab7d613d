/* memops.c - the blocks of the pool whose copies the program wants to be synchronous
 * (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS).
 *
 * Owns a table of block numbers, which are never given twice; one lock (MS_RANK_OBJECT). Programs set the
 * attribute for what they register with a network card: rows are not taken out, and there is an end to their
 * number. */
#include "hooks/serve/answer.h"

#include <stdatomic.h>

#include "base/keyed.h"
#include "base/lock.h"

enum { MOST = 1 << 16 };

/* Of a block, by its number. */
struct wish {
    struct ms_keyed by;
    bool on;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table wishes = MS_KEYED_TABLE(struct wish, 256, 256);
static _Atomic bool any;

void ms_memops_set(uint64_t block_id, bool on)
{
    struct wish *wish;

    ms_lock(&lock);
    wish = *ms_keyed_find(&wishes, block_id);
    if (!wish && on && wishes.count < MOST)
        wish = ms_keyed_add(&wishes, block_id);
    if (wish)
        wish->on = on;
    atomic_store(&any, true);
    ms_unlock(&lock);
}

bool ms_memops_get(uint64_t block_id)
{
    struct wish *wish;
    bool on;

    if (!atomic_load(&any))
        return false;
    ms_lock(&lock);
    wish = *ms_keyed_find(&wishes, block_id);
    on = wish && wish->on;
    ms_unlock(&lock);
    return on;
}

static void memops_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&wishes);
    atomic_store(&any, false);
}
MS_AT_FORK(MS_FORK_SERVICE, memops_reset);
