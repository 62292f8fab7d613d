/* torch.c - see torch.h.
 *
 * Floor 5. */
#include "cli/torch/torch_model.h"

#include <stdlib.h>

static uint64_t roundup_next(uint64_t size, uint32_t divisions)
{
    uint64_t power = UINT64_C(1) << (63 - __builtin_clzll(size)), part, floor;

    if ((size & (size - 1)) == 0)
        return size;
    part = power >> (31 - __builtin_clz(divisions));
    if (!part)
        return power << 1;
    floor = size & ~(part - 1);
    return floor == size ? size : floor + part;
}

static uint64_t block_size(const struct ms_torch_settings *settings, uint64_t bytes)
{
    int power, place;
    uint32_t divisions;

    if (bytes < MS_TORCH_LEAST_BLOCK)
        return MS_TORCH_LEAST_BLOCK;
    power = 63 - __builtin_clzll(bytes);
    place = power > 20 ? power - 20 : 0;
    divisions = settings->roundup_divisions[place < MS_TORCH_ROUNDUPS ? place : MS_TORCH_ROUNDUPS - 1];
    if (divisions > 1 && bytes > MS_TORCH_LEAST_BLOCK * divisions)
        return roundup_next(bytes, divisions);
    return ms_torch_round_up(bytes, MS_TORCH_LEAST_BLOCK);
}

/* To this size a block at the end of its mapped part could be brought. */
static uint64_t could_be(const struct ms_torch_model *model, uint32_t row)
{
    const struct ms_torch_block *block = &model->blocks[row];
    const struct ms_torch_block *next = block->next != MS_TORCH_NONE ? &model->blocks[block->next] : NULL;

    return block->size + (next && !next->mapped ? next->size : 0);
}

static uint32_t free_take(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    const struct ms_torch_settings *settings = model->settings;
    struct ms_torch_order *free_blocks = &request->pool->free;
    size_t place = ms_torch_order_find(model, free_blocks, request->size, 0);
    uint64_t size;
    uint32_t row;

    if (ms_torch_collects(model) && !request->pool->small)
        model->calls[request->pool->device]++;
    if (place == free_blocks->count)
        return MS_TORCH_NONE;
    while (model->blocks[free_blocks->blocks[place]].expandable && place + 1 < free_blocks->count &&
           could_be(model, free_blocks->blocks[place + 1]) < could_be(model, free_blocks->blocks[place]))
        place++;
    row = free_blocks->blocks[place];
    size = model->blocks[row].size;
    if (request->size < settings->max_split_bytes
            ? size >= settings->max_split_bytes
            : size >= request->size + settings->max_non_split_rounding_bytes)
        return MS_TORCH_NONE;
    ms_torch_order_take_at(free_blocks, place);
    return row;
}

/* PyTorch's own bound, a share of the device, is asked before the device is. */
static bool is_beyond_fraction(const struct ms_torch_model *model, const struct ms_torch_request *request)
{
    double most = model->settings->memory_fraction * (double)model->capacity;

    return most > 0 &&
           (double)(model->reserved[request->pool->device] + ms_torch_segment_size(model, request)) > most;
}

static uint32_t take_more(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    if (is_beyond_fraction(model, request))
        return MS_TORCH_NONE;
    return model->settings->expandable_segments ? ms_torch_expand(model, request)
                                                : ms_torch_segment_new(model, request);
}

static uint32_t request_serve(struct ms_torch_model *model, const struct ms_torch_request *request)
{
    uint32_t row = free_take(model, request);

    if (row != MS_TORCH_NONE)
        return row;
    if (ms_torch_collects(model))
        ms_torch_collect(model, request->pool->device);
    row = take_more(model, request);
    if (row == MS_TORCH_NONE && !model->failed && ms_torch_release_unsplittable(model, request))
        row = take_more(model, request);
    if (row == MS_TORCH_NONE && !model->failed) {
        model->result->retries++;
        ms_torch_device_release(model, request->pool->device);
        row = take_more(model, request);
    }
    return row;
}

/* The rest of a block that is too long goes back into its pool. */
static void split(struct ms_torch_model *model, uint32_t row, const struct ms_torch_request *request)
{
    uint64_t rest = model->blocks[row].size - request->size;
    bool is_split = request->pool->small || model->settings->expandable_segments
                        ? rest >= MS_TORCH_LEAST_BLOCK
                        : request->size < model->settings->max_split_bytes && rest > MS_TORCH_SMALL_MOST;
    uint32_t made = is_split ? ms_torch_cut_end(model, row, rest) : MS_TORCH_NONE;

    if (made != MS_TORCH_NONE)
        ms_torch_free_put(model, made);
}

static uint32_t model_alloc(struct ms_torch_model *model, const struct ms_course_event *event)
{
    struct ms_torch_request request = {.size = block_size(model->settings, event->bytes)};
    bool is_small = request.size <= MS_TORCH_SMALL_MOST;
    uint32_t row;

    request.pool_number = 2 * (uint32_t)event->stream + is_small;
    request.pool = &model->pools[request.pool_number];
    request.pool->free.by_size = true;
    request.pool->used = true;
    request.pool->small = is_small;
    request.pool->device = event->device;
    row = request_serve(model, &request);
    if (row == MS_TORCH_NONE || model->failed)
        return MS_TORCH_NONE;
    split(model, row, &request);
    model->blocks[row].allocated = true;
    model->allocated += model->blocks[row].size;
    if (model->allocated > model->result->peak_allocated)
        model->result->peak_allocated = model->allocated;
    return row;
}

static void model_free(struct ms_torch_model *model, uint32_t row)
{
    model->allocated -= model->blocks[row].size;
    model->blocks[row].allocated = false;
    ms_torch_join_both(model, row);
    ms_torch_free_put(model, row);
}

static void model_close(struct ms_torch_model *model)
{
    for (uint32_t i = 0; i < MS_TORCH_POOLS; i++) {
        free(model->pools[i].free.blocks);
        free(model->pools[i].unmapped.blocks);
    }
    free(model->blocks);
    free(model);
}

int ms_torch_replay(const struct ms_course *course, const struct ms_torch_settings *settings,
                    uint64_t capacity, struct ms_torch_result *result)
{
    struct ms_torch_model *model = calloc(1, sizeof(*model));
    uint32_t *rows = malloc(((size_t)course->block_count + 1) * sizeof(*rows)); /* by block of the course */
    int answer;

    *result = (struct ms_torch_result){.completed = true};
    if (!model || !rows) {
        free(model);
        free(rows);
        return -1;
    }
    model->settings = settings;
    model->result = result;
    model->capacity = capacity;
    model->spare = MS_TORCH_NONE;
    model->next_address = MS_TORCH_SMALL_SEGMENT;
    for (; result->completed && result->events < course->count; result->events += result->completed) {
        const struct ms_course_event *event = &course->events[result->events];

        if (event->bytes)
            result->completed = (rows[event->block] = model_alloc(model, event)) != MS_TORCH_NONE;
        else
            model_free(model, rows[event->block]);
    }
    answer = model->failed ? -1 : 0;
    model_close(model);
    free(rows);
    return answer;
}
