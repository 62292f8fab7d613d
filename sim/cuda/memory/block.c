/*
 * The table of blocks: what lies at an address, and who may touch it. Every copy asks here before it touches
 * anything, so that a bad device pointer is an error and never a crash. All of it under the memory lock.
 */
#include <stdlib.h>

#include "sim/cuda/sim.h"

struct sim_range *sim_blocks;
struct sim_range *sim_windows;

/** Enters a block; NULL if memory ran out or the range meets another block. Reachable for all until told
 * otherwise. */
struct sim_block *sim_block_new(enum sim_block_kind kind, uintptr_t start, size_t bytes)
{
    struct sim_block *block = calloc(1, sizeof *block);

    if (!block)
        return NULL;
    block->range.start = start;
    block->range.bytes = bytes;
    block->kind = kind;
    block->device = SIM_HOST;
    block->id = sim_next_id();
    block->readable = block->writable = ~0U;
    if (sim_range_insert(&sim_blocks, &block->range))
        return block;
    free(block);
    return NULL;
}

struct sim_block *sim_block_at(CUdeviceptr address)
{
    return (struct sim_block *)sim_range_find(sim_blocks, (uintptr_t)address);
}

bool sim_block_is_idle_node(const struct sim_block *block)
{
    return block->kind == SIM_BLOCK_GRAPH && !block->readable;
}

/** The block that begins at this address and that nobody frees, or NULL. */
struct sim_block *sim_block_base(CUdeviceptr address)
{
    struct sim_block *block = sim_block_at(address);

    return block && block->range.start == address && !block->freed && !block->claimed ? block : NULL;
}

struct sim_block *sim_block_next(struct sim_block *block)
{
    uintptr_t after = block ? block->range.start + block->range.bytes : 0;

    return (struct sim_block *)sim_range_above(sim_blocks, after);
}

/** True if an address is one that only the driver hands out. */
bool sim_block_in_windows(CUdeviceptr address)
{
    return sim_range_find(sim_windows, (uintptr_t)address) != NULL;
}

/**
 * True if bytes from address on are live and each device in the mask may touch them. Mapped handles may join
 * up. With no device in the mask the question is that of a call's arguments, with one it is that of work
 * whose turn has come.
 */
bool sim_block_covers(CUdeviceptr address, size_t bytes, unsigned devices, bool write)
{
    struct sim_block *block = sim_block_at(address);

    while (block && !block->freed && !(devices & ~(write ? block->writable : block->readable))) {
        size_t rest = block->range.bytes - (size_t)(address - block->range.start);
        if (rest >= bytes)
            return true;
        if (block->kind != SIM_BLOCK_MAPPED)
            break;
        address += rest;
        bytes -= rest;
        block = sim_block_at(address);
        if (block && block->kind != SIM_BLOCK_MAPPED)
            return false;
    }
    return devices && sim_pool_covers(address, bytes, devices, write);
}

/** Takes a block out of the table and frees its entry; what it stood for is the caller's business. */
void sim_block_drop(struct sim_block *block)
{
    sim_range_remove(&sim_blocks, &block->range);
    free(block);
}
