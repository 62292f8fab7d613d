/* test_arena.c - the arena hands out zeroed, aligned, disjoint memory to many threads at once. */
#include "config.h"

#include <pthread.h>

#include "base/arena.h"
#include "tests/tap.h"

enum { THREADS = 8, PIECES = 4000, HUGE_PAGE = 2 << 20, MUCH = 8 << 20 };

struct piece {
    unsigned char *memory;
    size_t bytes;
};

static struct piece pieces[THREADS][PIECES];
static atomic_int bad_content, bad_alignment;

static void *take_pieces(void *arg)
{
    struct piece *mine = arg;
    unsigned seed = (unsigned)(mine - pieces[0]) + 1;
    for (int i = 0; i < PIECES; i++) {
        seed = seed * 1103515245 + 12345;
        mine[i].bytes = i % 500 == 0 ? 100000 : 1 + (seed >> 16) % 300;
        mine[i].memory = ms_arena_alloc(mine[i].bytes);
        for (size_t j = 0; j < mine[i].bytes; j++)
            bad_content += mine[i].memory[j] != 0;
        bad_alignment += (uintptr_t)mine[i].memory % 64 != 0;
        memset(mine[i].memory, (int)(mine - pieces[0]) % 251 + 1, mine[i].bytes);
    }
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return (x->memory > y->memory) - (x->memory < y->memory);
}

static int count_overlaps(void)
{
    int overlaps = 0;
    struct piece *all = pieces[0];
    qsort(all, THREADS * PIECES, sizeof *all, by_address);
    for (int i = 1; i < THREADS * PIECES; i++)
        overlaps += all[i - 1].memory + all[i - 1].bytes > all[i].memory;
    return overlaps;
}

int main(void)
{
    pthread_t threads[THREADS];
    plan(12);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_pieces, pieces[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    is_int(bad_content, 0, "memory comes zeroed");
    is_int(bad_alignment, 0, "memory is aligned to 64 bytes");
    is_int(count_overlaps(), 0, "no two pieces overlap");
    size_t before = ms_arena_bytes();
    ok(before > 0, "what was taken from the system is counted");
    ok(ms_arena_alloc(SIZE_MAX - 10) == NULL, "an impossible size is refused");
    ok(ms_arena_alloc(SIZE_MAX - MUCH) == NULL, "... and one that could not be rounded up");
    unsigned char *large = ms_arena_alloc(MUCH + 1);
    ok(large && large[0] == 0 && large[MUCH] == 0, "a large piece is there to its end");
    is_u64((uintptr_t)large % HUGE_PAGE, 0, "... in huge pages, where the system has any");
    take_pieces(pieces[0]);
    ok(bad_content == 0 && bad_alignment == 0, "small pieces of what is large are as they were");
    is_int(count_overlaps(), 0, "... also that no two overlap");
    ok(ms_arena_alloc(0) != NULL, "nothing is still something");
    ms_arena_reset();
    is_u64(ms_arena_bytes(), 0, "a reset arena has taken nothing");
    return done();
}
