/* torch_blocks.c - blocks of the model and the orders that they stand in; see torch_model.h.
 *
 * Floor 5. */
#include "cli/torch/torch_model.h"

#include <stdlib.h>
#include <string.h>

uint32_t ms_torch_block_new(struct ms_torch_model *model, struct ms_torch_block block)
{
    uint32_t row = model->spare;

    if (row != MS_TORCH_NONE) {
        model->spare = model->blocks[row].next;
    } else {
        if (model->block_count == model->block_room) {
            size_t room = model->block_room ? 2 * model->block_room : 4096;
            struct ms_torch_block *blocks = realloc(model->blocks, room * sizeof(*blocks));

            if (!blocks) {
                model->failed = true;
                return MS_TORCH_NONE;
            }
            model->blocks = blocks;
            model->block_room = room;
        }
        row = (uint32_t)model->block_count++;
    }
    model->blocks[row] = block;
    return row;
}

void ms_torch_block_drop(struct ms_torch_model *model, uint32_t row)
{
    model->blocks[row].next = model->spare;
    model->spare = row;
}

static bool comes_before(const struct ms_torch_order *order, const struct ms_torch_block *block,
                         uint64_t size, uint64_t address)
{
    if (order->by_size && block->size != size)
        return block->size < size;
    return block->address < address;
}

/* The first place in the order whose block does not come before these. */
size_t ms_torch_order_find(const struct ms_torch_model *model, const struct ms_torch_order *order,
                           uint64_t size, uint64_t address)
{
    size_t low = 0, high = order->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (comes_before(order, &model->blocks[order->blocks[middle]], size, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void ms_torch_order_put(struct ms_torch_model *model, struct ms_torch_order *order, uint32_t row)
{
    const struct ms_torch_block *block = &model->blocks[row];
    size_t place = ms_torch_order_find(model, order, block->size, block->address);

    if (order->count == order->room) {
        size_t room = order->room ? 2 * order->room : 64;
        uint32_t *blocks = realloc(order->blocks, room * sizeof(*blocks));

        if (!blocks) {
            model->failed = true;
            return;
        }
        order->blocks = blocks;
        order->room = room;
    }
    memmove(&order->blocks[place + 1], &order->blocks[place],
            (order->count - place) * sizeof(*order->blocks));
    order->blocks[place] = row;
    order->count++;
}

void ms_torch_order_take_at(struct ms_torch_order *order, size_t place)
{
    order->count--;
    memmove(&order->blocks[place], &order->blocks[place + 1],
            (order->count - place) * sizeof(*order->blocks));
}

void ms_torch_order_take(struct ms_torch_model *model, struct ms_torch_order *order, uint32_t row)
{
    const struct ms_torch_block *block = &model->blocks[row];

    ms_torch_order_take_at(order, ms_torch_order_find(model, order, block->size, block->address));
}

/* A block becomes free: it is as old as the requests that look for one from now on. */
void ms_torch_free_put(struct ms_torch_model *model, uint32_t row)
{
    struct ms_torch_pool *pool = &model->pools[model->blocks[row].pool];

    model->blocks[row].calls_before = model->calls[pool->device];
    ms_torch_order_put(model, &pool->free, row);
}

static void link_between(struct ms_torch_model *model, uint32_t row, uint32_t previous, uint32_t next)
{
    model->blocks[row].previous = previous;
    model->blocks[row].next = next;
    if (previous != MS_TORCH_NONE)
        model->blocks[previous].next = row;
    if (next != MS_TORCH_NONE)
        model->blocks[next].previous = row;
}

bool ms_torch_is_whole(const struct ms_torch_block *block)
{
    return block->previous == MS_TORCH_NONE && block->next == MS_TORCH_NONE;
}

/* The neighbour becomes a part of the block, if both are free and both have memory, or none. */
static void join(struct ms_torch_model *model, uint32_t row, uint32_t neighbour)
{
    struct ms_torch_block *block = &model->blocks[row], *gone;
    struct ms_torch_pool *pool = &model->pools[block->pool];

    if (neighbour == MS_TORCH_NONE || model->blocks[neighbour].allocated ||
        model->blocks[neighbour].mapped != block->mapped)
        return;
    gone = &model->blocks[neighbour];
    ms_torch_order_take(model, gone->mapped ? &pool->free : &pool->unmapped, neighbour);
    if (block->previous == neighbour) {
        block->address = gone->address;
        block->previous = gone->previous;
        if (block->previous != MS_TORCH_NONE)
            model->blocks[block->previous].next = row;
    } else {
        block->next = gone->next;
        if (block->next != MS_TORCH_NONE)
            model->blocks[block->next].previous = row;
    }
    block->size += gone->size;
    ms_torch_block_drop(model, neighbour);
}

void ms_torch_join_both(struct ms_torch_model *model, uint32_t row)
{
    join(model, row, model->blocks[row].previous);
    join(model, row, model->blocks[row].next);
}

/* A block of its own for the last `bytes` of one that stands in no order. */
uint32_t ms_torch_cut_end(struct ms_torch_model *model, uint32_t row, uint64_t bytes)
{
    struct ms_torch_block end = model->blocks[row];
    uint32_t made;

    end.address += end.size - bytes;
    end.size = bytes;
    made = ms_torch_block_new(model, end);
    if (made == MS_TORCH_NONE)
        return MS_TORCH_NONE;
    model->blocks[row].size -= bytes;
    link_between(model, made, row, model->blocks[row].next);
    return made;
}
