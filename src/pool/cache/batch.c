/* batch.c - records of batches, which are used again. One lock, with none taken inside. */
#include "base/lock.h"
#include "base/records.h"
#include "pool/cache/batch.h"

enum { BATCH = 64 };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES);
static struct ms_records batches = MS_RECORDS(struct ms_batch, next, BATCH);

struct ms_batch *ms_batch_new(void)
{
    ms_lock(&lock);
    struct ms_batch *batch = ms_records_take(&batches);
    ms_unlock(&lock);
    if (batch) {
        batch->next = NULL;
        batch->count = 0;
        batch->epoch = 0;
    }
    return batch;
}

void ms_batch_drop(struct ms_batch *batch)
{
    ms_lock(&lock);
    ms_records_drop(&batches, batch);
    ms_unlock(&lock);
}

static void bags_reset(void)
{
    ms_lock_reset(&lock);
    batches.spare = NULL;
}
MS_AT_FORK(MS_FORK_POOL, bags_reset);
