/* torch_model.h - the parts of the model of PyTorch's allocator; torch.h is what others call.
 *
 * Floor 5. Blocks are rows of one array and know their neighbours (torch_blocks.c). Free ones stand in a list
 * of their pool by size and then address, stretches of address space without memory in one by address. A pool
 * is of one stream and of small or large blocks. Segments come from the device and go back to it in
 * torch_device.c; torch.c serves requests. Where there is no memory for the model, `failed` is set, and all
 * go on to the end. */
#ifndef MS_CLI_TORCH_MODEL_H
#define MS_CLI_TORCH_MODEL_H

#include "cli/torch/torch.h"

/* The constants of c10/core/AllocatorConfig.h, in bytes. */
#define MS_TORCH_LEAST_BLOCK   UINT64_C(512)
#define MS_TORCH_SMALL_MOST    (UINT64_C(1) << 20)
#define MS_TORCH_SMALL_SEGMENT (UINT64_C(2) << 20)
#define MS_TORCH_LARGE_LEAST   (UINT64_C(10) << 20)
#define MS_TORCH_LARGE_ROUND   (UINT64_C(2) << 20)

enum { MS_TORCH_NONE = UINT32_MAX, MS_TORCH_POOLS = 2 * MS_COURSE_STREAMS };

struct ms_torch_block {
    uint64_t address, size;
    uint64_t calls_before; /* of the device, when it became free: its age */
    uint32_t previous, next;
    uint32_t pool;
    bool allocated, mapped, expandable; /* `mapped` is false of addresses without memory */
};

struct ms_torch_order {
    uint32_t *blocks;
    size_t count, room;
    bool by_size; /* and by address among equals; else by address alone */
};

struct ms_torch_pool {
    struct ms_torch_order free, unmapped;
    uint8_t device;
    bool used, small;
};

struct ms_torch_model {
    const struct ms_torch_settings *settings;
    struct ms_torch_result *result;
    uint64_t capacity;
    struct ms_torch_block *blocks;
    size_t block_count, block_room;
    uint32_t spare; /* rows that are free, by `next` */
    struct ms_torch_pool pools[MS_TORCH_POOLS];
    uint64_t next_address;
    uint64_t reserved[MS_COURSE_DEVICES], all_reserved, allocated;
    uint64_t calls[MS_COURSE_DEVICES]; /* requests that looked for a large block, where these are collected */
    bool failed;                       /* there is no memory for the model itself */
};

struct ms_torch_request {
    struct ms_torch_pool *pool;
    uint32_t pool_number;
    uint64_t size;
};

/** A row for a block; MS_TORCH_NONE where there is no memory. */
uint32_t ms_torch_block_new(struct ms_torch_model *model, struct ms_torch_block block);
void ms_torch_block_drop(struct ms_torch_model *model, uint32_t row);
/** The first place in the order whose block does not come before one of this size and address. */
size_t ms_torch_order_find(const struct ms_torch_model *model, const struct ms_torch_order *order,
                           uint64_t size, uint64_t address);
void ms_torch_order_put(struct ms_torch_model *model, struct ms_torch_order *order, uint32_t row);
void ms_torch_order_take(struct ms_torch_model *model, struct ms_torch_order *order, uint32_t row);
void ms_torch_order_take_at(struct ms_torch_order *order, size_t place);
/** A block becomes free: it is as old as the requests that look for one from now on. */
void ms_torch_free_put(struct ms_torch_model *model, uint32_t row);
/** The free neighbours become parts of the block, which stands in no order. */
void ms_torch_join_both(struct ms_torch_model *model, uint32_t row);
/** A block of its own for the last `bytes` of one that stands in no order. */
uint32_t ms_torch_cut_end(struct ms_torch_model *model, uint32_t row, uint64_t bytes);
/** True of a block that is a whole segment. */
bool ms_torch_is_whole(const struct ms_torch_block *block);
/** The segment that a request has made where no expandable one serves it. */
uint64_t ms_torch_segment_size(const struct ms_torch_model *model, const struct ms_torch_request *request);
/** A segment as the device gives it: a block in no order, or MS_TORCH_NONE. */
uint32_t ms_torch_segment_new(struct ms_torch_model *model, const struct ms_torch_request *request);
/** A free segment goes back. */
void ms_torch_segment_free(struct ms_torch_model *model, uint32_t row);
/** A block of expandable segments that is long enough: more memory is mapped. */
uint32_t ms_torch_expand(struct ms_torch_model *model, const struct ms_torch_request *request);
/** All that is free of a device goes back, as far as whole segments and pages are. */
void ms_torch_device_release(struct ms_torch_model *model, uint8_t device);
/** Blocks that may not be split go back first; false where that is too little. */
bool ms_torch_release_unsplittable(struct ms_torch_model *model, const struct ms_torch_request *request);
/** True where old segments are collected. */
bool ms_torch_collects(const struct ms_torch_model *model);
/** Old segments go back where more than the threshold is reserved. */
void ms_torch_collect(struct ms_torch_model *model, uint8_t device);

static inline uint64_t ms_torch_round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

#endif
