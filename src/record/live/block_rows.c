/* block_rows.c - the rows of blocks: what a live block looks like in the record.
 *
 * Floor 2. A slot belongs to the shard that took it, for good, and changes under that shard's lock. Its state
 * is written last: a process may end at any instruction, and whatever the slots say then is in the totals. */
#include "config.h"

#include "record/live/internal.h"

void ms_block_row_read(const struct ms_block_row *slot, struct ms_block *block_p)
{
    const struct ms_site *site = ms_site_at(slot->site);
    *block_p = (struct ms_block){
        .key = slot->key,
        .bytes = slot->bytes,
        .requested = slot->requested,
        .context = slot->context,
        .stream = slot->stream,
        .born_ns = slot->born_ns,
        .stack = site ? site->stack : 0,
        .site = slot->site,
        .thread = slot->thread,
        .device = slot->device,
        .api = slot->api,
        .space = (uint8_t)ms_block_row_space(slot),
        .kind = ms_block_row_kind(slot),
        .outlives_context = slot->tags & MS_BLOCK_ROW_OUTLIVES,
        .is_served = slot->tags & MS_BLOCK_ROW_SERVED,
    };
}

bool ms_blocks_read(uint32_t record_id, struct ms_block *block_p)
{
    if (!record_id || record_id > ms_table_rows(MS_TABLE_BLOCKS) ||
        !ms_block_row_is_live(ms_block_row_at(record_id - 1)))
        return false;
    ms_block_row_read(ms_block_row_at(record_id - 1), block_p);
    return true;
}

void ms_blocks_each(void (*visit)(void *arg, const struct ms_block *block), void *arg)
{
    uint64_t slots = ms_table_rows(MS_TABLE_BLOCKS);
    for (uint64_t i = 0; i < slots; i++) {
        const struct ms_block_row *slot = ms_block_row_at((uint32_t)i);
        struct ms_block block;
        if (!ms_block_row_is_live(slot))
            continue;
        ms_block_row_read(slot, &block);
        visit(arg, &block);
    }
}

uint64_t ms_blocks_count(void)
{
    uint64_t slots = ms_table_rows(MS_TABLE_BLOCKS), count = 0;
    for (uint64_t i = 0; i < slots; i++)
        count += ms_block_row_is_live(ms_block_row_at((uint32_t)i));
    return count;
}

uint64_t ms_blocks_dropped(void)
{
    return ms_table_dropped(MS_TABLE_BLOCKS);
}
