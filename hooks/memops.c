/* memops.c - the blocks of the pool whose copies the program wants to be synchronous
 * (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS).
 *
 * Owns a hash table of block numbers, which are never given twice, in chunks of the arena; one lock
 * (MS_RANK_OBJECT). Programs set the attribute for what they register with a network card: rows are not taken
 * out, and there is an end to their number. */
#include "hooks/answer.h"

#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"

#define BUCKETS 1024
#define CHUNK   256
#define MOST    65536

struct wish {
    struct wish *next;
    uint64_t block_id;
    bool on;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct wish *wishes[BUCKETS], *fresh;
static unsigned fresh_left, count;
static _Atomic bool any;

static struct wish *find_locked(uint64_t block_id)
{
    struct wish *wish = wishes[block_id % BUCKETS];

    while (wish && wish->block_id != block_id)
        wish = wish->next;
    return wish;
}

static struct wish *make_locked(uint64_t block_id)
{
    struct wish *wish;

    if (!fresh_left && count < MOST && (fresh = ms_arena_alloc(CHUNK * sizeof(*fresh))) != NULL)
        fresh_left = CHUNK;
    if (!fresh_left)
        return NULL;
    fresh_left--;
    count++;
    wish = fresh++;
    *wish = (struct wish){.next = wishes[block_id % BUCKETS], .block_id = block_id};
    wishes[block_id % BUCKETS] = wish;
    return wish;
}

void ms_memops_set(uint64_t block_id, bool on)
{
    struct wish *wish;

    ms_lock(&lock);
    wish = find_locked(block_id);
    if (!wish && on)
        wish = make_locked(block_id);
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
    wish = find_locked(block_id);
    on = wish && wish->on;
    ms_unlock(&lock);
    return on;
}

static void memops_reset(void)
{
    ms_lock_reset(&lock);
    memset(wishes, 0, sizeof(wishes));
    fresh = NULL;
    fresh_left = count = 0;
    atomic_store(&any, false);
}
MS_AT_FORK(MS_FORK_SERVICE, memops_reset);
