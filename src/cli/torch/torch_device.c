/* torch_device.c - what the model takes of a device, and gives back; see torch_model.h.
 *
 * Floor 5. */
#include "cli/torch/torch_model.h"

#include <stdlib.h>
#include <string.h>

static bool reserve(struct ms_torch_model *model, uint8_t device, uint64_t bytes)
{
    struct ms_torch_result *result = model->result;
    uint64_t *reserved = &model->reserved[device];

    if (bytes > model->capacity || *reserved > model->capacity - bytes)
        return false;
    *reserved += bytes;
    model->all_reserved += bytes;
    if (*reserved > result->device_reserved[device])
        result->device_reserved[device] = *reserved;
    if (model->all_reserved > result->peak_reserved)
        result->peak_reserved = model->all_reserved;
    return true;
}

static void unreserve(struct ms_torch_model *model, uint8_t device, uint64_t bytes)
{
    model->reserved[device] -= bytes;
    model->all_reserved -= bytes;
}

/* Addresses of which nothing else lies beside, from a multiple of `align` on. */
static uint64_t address_space(struct ms_torch_model *model, uint64_t bytes, uint64_t align)
{
    uint64_t address = ms_torch_round_up(model->next_address, align);

    model->next_address = address + bytes + align;
    return address;
}

/* The segment that a request has made where no expandable one serves it. */
uint64_t ms_torch_segment_size(const struct ms_torch_model *model, const struct ms_torch_request *request)
{
    if (request->pool->small)
        return MS_TORCH_SMALL_SEGMENT;
    if (request->size < MS_TORCH_LARGE_LEAST)
        return model->settings->large_segment_bytes;
    return ms_torch_round_up(request->size, MS_TORCH_LARGE_ROUND);
}

uint32_t ms_torch_segment_new(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    uint64_t size = ms_torch_segment_size(model, request);
    uint32_t row;

    if (!reserve(model, request->pool->device, size))
        return MS_TORCH_NONE;
    row = ms_torch_block_new(
        model, (struct ms_torch_block){.address = address_space(model, size, MS_TORCH_SMALL_SEGMENT),
                                       .size = size,
                                       .previous = MS_TORCH_NONE,
                                       .next = MS_TORCH_NONE,
                                       .pool = request->pool_number,
                                       .mapped = true});
    model->result->segments++;
    model->result->taken_bytes += size;
    return row;
}

/* A segment of which everything is free. */
void ms_torch_segment_free(struct ms_torch_model *model, uint32_t row)
{
    struct ms_torch_block *block = &model->blocks[row];
    struct ms_torch_pool *pool = &model->pools[block->pool];

    unreserve(model, pool->device, block->size);
    model->result->given_bytes += block->size;
    ms_torch_order_take(model, &pool->free, row);
    ms_torch_block_drop(model, row);
    model->result->segments_freed++;
}

/* --- expandable segments --- */

static uint64_t page_bytes(const struct ms_torch_model *model, const struct ms_torch_pool *pool)
{
    return pool->small ? MS_TORCH_SMALL_SEGMENT : model->settings->large_segment_bytes;
}

/* Free and mapped, or not mapped at all: memory can be had there. */
static bool has_room_from(const struct ms_torch_model *model, uint32_t row, uint64_t size)
{
    uint64_t bytes = 0;

    for (; bytes < size && row != MS_TORCH_NONE && !model->blocks[row].allocated;
         row = model->blocks[row].next)
        bytes += model->blocks[row].size;
    return bytes >= size;
}

/* The stretch at the lowest address at which the request can be had, or a new segment's: PyTorch takes
 * addresses for nine eighths of the device. */
static uint32_t stretch_for(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    uint64_t most = model->capacity < UINT64_C(1) << 44 ? model->capacity : UINT64_C(1) << 44, bytes;
    uint64_t page = page_bytes(model, request->pool);
    const struct ms_torch_order *unmapped = &request->pool->unmapped;
    uint32_t row;

    for (size_t i = 0; i < unmapped->count; i++) {
        uint32_t previous = model->blocks[unmapped->blocks[i]].previous;
        uint32_t from =
            previous != MS_TORCH_NONE && !model->blocks[previous].allocated ? previous : unmapped->blocks[i];

        if (has_room_from(model, from, request->size))
            return from;
    }
    bytes = ms_torch_round_up(most + most / 8, page);
    row = ms_torch_block_new(model, (struct ms_torch_block){.address = address_space(model, bytes, page),
                                                            .size = bytes,
                                                            .previous = MS_TORCH_NONE,
                                                            .next = MS_TORCH_NONE,
                                                            .pool = request->pool_number,
                                                            .expandable = true});
    if (row != MS_TORCH_NONE)
        ms_torch_order_put(model, &request->pool->unmapped, row);
    return row;
}

/* Handles are made one by one, and given back where one is refused: the device has had these. */
static void reserve_briefly(struct ms_torch_model *model, uint8_t device, uint64_t page)
{
    uint64_t bytes = (model->capacity - model->reserved[device]) / page * page;

    if (reserve(model, device, bytes))
        unreserve(model, device, bytes);
}

/* Memory for the beginning of a stretch that has none, in whole pages. */
static bool map(struct ms_torch_model *model, uint32_t row, uint64_t size)
{
    struct ms_torch_block *block = &model->blocks[row];
    struct ms_torch_pool *pool = &model->pools[block->pool];
    uint64_t page = page_bytes(model, pool), bytes = ms_torch_round_up(size, page);

    if (!reserve(model, pool->device, bytes)) {
        reserve_briefly(model, pool->device, page);
        return false;
    }
    model->result->mapped += bytes / page;
    model->result->taken_bytes += bytes;
    ms_torch_order_take(model, &pool->unmapped, row);
    if (bytes < block->size) {
        uint32_t rest = ms_torch_cut_end(model, row, block->size - bytes);

        if (rest == MS_TORCH_NONE)
            return false;
        ms_torch_order_put(model, &pool->unmapped, rest);
    }
    model->blocks[row].mapped = true;
    ms_torch_join_both(model, row);
    ms_torch_free_put(model, row);
    return true;
}

uint32_t ms_torch_expand(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    uint32_t row = stretch_for(model, request);

    while (row != MS_TORCH_NONE && (!model->blocks[row].mapped || model->blocks[row].size < request->size)) {
        const struct ms_torch_block *block = &model->blocks[row];
        uint64_t wanted = request->size;

        if (block->mapped) { /* what follows has no memory yet, and joins it */
            wanted -= block->size;
            row = block->next;
        }
        if (row == MS_TORCH_NONE ||
            !map(model, row, wanted < model->blocks[row].size ? wanted : model->blocks[row].size))
            return MS_TORCH_NONE;
    }
    if (row != MS_TORCH_NONE)
        ms_torch_order_take(model, &request->pool->free, row);
    return row;
}

/* The whole pages of a free block lose their memory; what is left of it on both sides stays. */
static void unmap(struct ms_torch_model *model, uint32_t row)
{
    const struct ms_torch_block *block = &model->blocks[row];
    struct ms_torch_pool *pool = &model->pools[block->pool];
    uint64_t page = page_bytes(model, pool), first = ms_torch_round_up(block->address, page);
    uint64_t past = (block->address + block->size) / page * page, before = first - block->address;
    uint64_t behind = block->address + block->size - past;
    uint32_t cut;

    if (past <= first)
        return;
    ms_torch_order_take(model, &pool->free, row);
    if (behind && (cut = ms_torch_cut_end(model, row, behind)) != MS_TORCH_NONE)
        ms_torch_free_put(model, cut);
    if (before && (cut = ms_torch_cut_end(model, row, model->blocks[row].size - before)) != MS_TORCH_NONE) {
        ms_torch_free_put(model, row);
        row = cut;
    }
    if (model->failed)
        return;
    model->blocks[row].mapped = false;
    unreserve(model, pool->device, past - first);
    model->result->unmapped += (past - first) / page;
    model->result->given_bytes += past - first;
    ms_torch_join_both(model, row);
    if (ms_torch_is_whole(&model->blocks[row]))
        ms_torch_block_drop(model, row);
    else
        ms_torch_order_put(model, &pool->unmapped, row);
}

/* --- giving back --- */

static bool is_free_segment(const struct ms_torch_block *block)
{
    return !block->expandable && ms_torch_is_whole(block);
}

static void pool_release(struct ms_torch_model *model, struct ms_torch_pool *pool)
{
    size_t count = pool->free.count;
    uint32_t *rows = malloc((count + 1) * sizeof(*rows));

    if (!rows) {
        model->failed = true;
        return;
    }
    memcpy(rows, pool->free.blocks, count * sizeof(*rows));
    for (size_t i = 0; i < count; i++) {
        if (model->blocks[rows[i]].expandable)
            unmap(model, rows[i]);
        else if (ms_torch_is_whole(&model->blocks[rows[i]]))
            ms_torch_segment_free(model, rows[i]);
    }
    free(rows);
}

void ms_torch_device_release(struct ms_torch_model *model, uint8_t device)
{
    for (uint32_t i = 0; i < MS_TORCH_POOLS; i++)
        if (model->pools[i].used && model->pools[i].device == device)
            pool_release(model, &model->pools[i]);
}

/* Blocks that may not be split are given back first: the one that is long enough, or the longest ones.
 * Returns false where that is too little. */
bool ms_torch_release_unsplittable(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    uint64_t least = model->settings->max_split_bytes, released = 0;
    uint64_t wanted = request->size < least ? least : request->size;
    struct ms_torch_order *free_blocks = &request->pool->free;
    size_t place = ms_torch_order_find(model, free_blocks, wanted, 0);

    if (least == UINT64_MAX)
        return false;
    if (place < free_blocks->count && !model->blocks[free_blocks->blocks[place]].expandable) {
        ms_torch_segment_free(model, free_blocks->blocks[place]);
        return true;
    }
    while (place-- > 0 && released < wanted) {
        const struct ms_torch_block *block = &model->blocks[free_blocks->blocks[place]];

        if (block->size < least)
            break;
        if (block->expandable)
            continue;
        released += block->size;
        ms_torch_segment_free(model, free_blocks->blocks[place]);
    }
    return released >= wanted;
}

/* PyTorch's own bound, a share of the device, is asked before the device is. */
bool ms_torch_collects(const struct ms_torch_model *model)
{
    return model->settings->memory_fraction > 0 && model->settings->collection_threshold > 0;
}

/* The sum of the ages of a device's free segments of large blocks, and their number. */
static uint64_t ages(const struct ms_torch_model *model, uint8_t device, uint64_t *count_p)
{
    uint64_t sum = 0;

    *count_p = 0;
    for (uint32_t p = 0; p < MS_TORCH_POOLS; p++) {
        const struct ms_torch_pool *pool = &model->pools[p];

        for (size_t i = 0; pool->used && !pool->small && pool->device == device && i < pool->free.count;
             i++) {
            const struct ms_torch_block *block = &model->blocks[pool->free.blocks[i]];

            if (ms_torch_is_whole(block)) {
                sum += model->calls[device] - block->calls_before;
                (*count_p)++;
            }
        }
    }
    return sum;
}

/* One look through the free segments: those as old as `age` or older go. */
static uint64_t collect_from(struct ms_torch_model *model, uint8_t device, double age)
{
    uint64_t freed = 0;

    for (uint32_t p = 0; p < MS_TORCH_POOLS; p++) {
        struct ms_torch_pool *pool = &model->pools[p];

        for (size_t i = 0; pool->used && !pool->small && pool->device == device && i < pool->free.count;) {
            uint32_t row = pool->free.blocks[i];
            const struct ms_torch_block *block = &model->blocks[row];

            if (!is_free_segment(block) || (double)(model->calls[device] - block->calls_before) < age) {
                i++;
                continue;
            }
            freed += block->size;
            ms_torch_segment_free(model, row);
        }
    }
    return freed;
}

void ms_torch_collect(struct ms_torch_model *model, uint8_t device)
{
    double most =
        model->settings->collection_threshold * model->settings->memory_fraction * (double)model->capacity;
    uint64_t count, sum, target, freed = 0, now;

    if ((double)model->reserved[device] <= most)
        return;
    target = model->reserved[device] - (uint64_t)most;
    while (freed < target && (sum = ages(model, device, &count), count)) {
        now = collect_from(model, device, (double)sum / (double)count);
        if (!now)
            return;
        freed += now;
    }
}
