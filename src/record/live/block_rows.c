/* block_rows.c - the rows of blocks: what a live block looks like in the record.
 *
 * Floor 2. A row belongs to the shard that took it, for good, and changes under that shard's lock. Its state
 * is written last: a process may end at any instruction, and whatever the rows say then is in the totals. */
#include "record/live/internal.h"

void ms_block_row_read(const struct ms_block_row *row, struct ms_block *block_p)
{
    const struct ms_site *site = ms_site_at(row->site);
    *block_p = (struct ms_block){
        .key = row->key,
        .bytes = row->bytes,
        .requested = row->requested,
        .context = row->context,
        .stream = row->stream,
        .born_ns = row->born_ns,
        .stack = site ? site->stack : 0,
        .site = row->site,
        .thread = row->thread,
        .device = (int16_t)ms_block_row_device(row),
        .api = row->api,
        .space = (uint8_t)ms_block_row_space(row),
        .kind = ms_block_row_kind(row),
        .outlives_context = row->tags & MS_BLOCK_ROW_OUTLIVES,
        .is_served = row->tags & MS_BLOCK_ROW_SERVED,
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
    uint64_t rows = ms_table_rows(MS_TABLE_BLOCKS);
    for (uint64_t i = 0; i < rows; i++) {
        const struct ms_block_row *row = ms_block_row_at((uint32_t)i);
        struct ms_block block;
        if (!ms_block_row_is_live(row))
            continue;
        ms_block_row_read(row, &block);
        visit(arg, &block);
    }
}

uint64_t ms_blocks_count(enum ms_layer layer)
{
    uint64_t rows = ms_table_rows(MS_TABLE_BLOCKS), count = 0;
    for (uint64_t i = 0; i < rows; i++) {
        const struct ms_block_row *row = ms_block_row_at((uint32_t)i);
        count += ms_block_row_is_live(row) && ms_device_layer(ms_block_row_device(row)) == layer;
    }
    return count;
}

uint64_t ms_blocks_dropped(void)
{
    return ms_table_dropped(MS_TABLE_BLOCKS);
}
