/* programs_inner.c - the record of inner blocks: pieces of the program's blocks that an allocator of its own
 * gave on, and the heaps that they are of. */
#include <stddef.h>

#include "book.h"
#include "engine.h"
#include "programs.h"
#include "record/live/shards.h"

enum { OWN = 8 /* blocks of the book for each task */ };

static void prepare(void)
{
    book_start(true, "MEMSHIM_TIMELINE=2048");
}

/* As a thread that had to wait often. */
static void choose_shard(unsigned shard)
{
    ms_shard_mine.shard = (uint8_t)shard;
}

/* Pieces of a segment come and go while it does: the first lies at the segment's own address. */
enum { PIECES = 4 };

static void prepare_inner(void)
{
    prepare();
    for (unsigned i = 0; i < PIECES; i++) {
        struct ms_block *block = book_block(OWN + i);
        block->key = book_block(0)->key + 4096 * i;
        block->space = MS_SPACE_INNER;
        block->kind = MS_KIND_INNER;
        block->device = (int16_t)ms_device_inner(0);
        block->context = 0;
        block->outlives_context = true;
    }
    book_take(0, 0, false);
}

static void give_pieces(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    choose_shard(me);
    for (unsigned turn = 0; turn < 2; turn++) {
        book_take(OWN + 2 * me, turn, false);
        book_give(OWN + 2 * me);
    }
    book_take(OWN + 2 * me + 1, 3, false);
}

static void give_segment(void *arg)
{
    (void)arg;
    book_give(0);
    book_take(0, 1, true);
    book_give(0);
    book_take(1, 0, false);
}

static void start_inner(void)
{
    engine_task(give_pieces, (void *)0);
    engine_task(give_pieces, (void *)1);
    engine_task(give_segment, NULL);
}

/* Two arenas, each a task's own, in granules side by side; and a block without pieces in the first. */
enum { ARENA_BYTES = 1 << 16, ARENA_PIECES = 3 };

static void prepare_arenas(void)
{
    prepare();
    for (unsigned me = 0; me < 3; me++) {
        struct ms_block *whole = book_block(me * OWN);
        whole->key = (UINT64_C(1) << 40) + (me == 1 ? UINT64_C(2) << 20 : me * ARENA_BYTES);
        whole->bytes = whole->requested = ARENA_BYTES;
        for (unsigned i = 1; i <= ARENA_PIECES; i++) {
            struct ms_block *block = book_block(me * OWN + i);
            block->key = whole->key + 4096 * (i - 1);
            block->bytes = block->requested = 2048 + 16 * i + 1024 * me;
            block->space = MS_SPACE_INNER;
            block->kind = MS_KIND_INNER;
            block->device = (int16_t)ms_device_inner(0);
            block->context = 0;
            block->stream = 0;
            block->outlives_context = true;
        }
    }
}

/* Carved, given back whole with its pieces in it, and carved anew: by the pool's word, or the vendor's. */
static void use_arena(void *arg)
{
    unsigned me = (unsigned)(size_t)arg, first = me * OWN;
    choose_shard(me);
    book_take(first, me, me == 0);
    for (unsigned i = 1; i <= ARENA_PIECES; i++)
        book_carve(first + i, 3);
    book_give(first + 1);
    book_give_whole(first);
    book_take(first, me, me == 0);
    book_carve(first + 2, me);
}

static void use_block(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        book_take(2 * OWN, 2, true);
        book_give(2 * OWN);
    }
}

static void start_arenas(void)
{
    engine_task(use_arena, (void *)0);
    engine_task(use_arena, (void *)1);
    engine_task(use_block, NULL);
}

/* Each opens heaps that others open too, and says how much they have. */
static void open_heaps(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    book_heap(me % 2, 1000 * (me + 1));
    book_heap(2, 100 * (3 - me));
}

static void start_heaps(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(open_heaps, (void *)i);
}

const struct program inner_programs[] = {
    {"inner", "two give and take pieces of a segment that a third frees and allocates", prepare_inner,
     start_inner, ledger_program_check, RIGHT},
    {"arenas", "two give back blocks with pieces in them, beside a third's without", prepare_arenas,
     start_arenas, ledger_program_check, RIGHT},
    {"heaps", "three open the same heaps of allocators, and say how much they have", prepare, start_heaps,
     ledger_program_check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
