/* steps.c - a program to be watched: steps BOOK [SEED]. It allocates and frees until it is killed, and keeps
 * a book of it: a line for each change, with the times between which that was made, what is live then, the
 * most that ever was, and how many allocations there were. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/program.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { SLOTS = 24, MIB = 1 << 20 };

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *blocks[SLOTS];
static uint64_t sizes[SLOTS], live, peak, count;

/* The two functions that allocate are call sites of their own. */
__attribute__((noinline)) static int load_weights(void **pointer, uint64_t bytes)
{
    return cudaMalloc(pointer, bytes);
}

__attribute__((noinline)) static int make_activations(void **pointer, uint64_t bytes)
{
    return cudaMalloc(pointer, bytes);
}

static void change(unsigned slot, uint64_t bytes)
{
    if (blocks[slot]) {
        cudaFree(blocks[slot]);
        live -= sizes[slot];
        blocks[slot] = NULL;
    } else if ((slot % 3 ? make_activations : load_weights)(&blocks[slot], bytes) == 0) {
        sizes[slot] = bytes;
        live += bytes;
        peak = live > peak ? live : peak;
        count++;
    }
}

int main(int argc, char **argv)
{
    int book = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600) : -1;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    if (book < 0)
        return 2;
    for (;;) {
        uint64_t begun_ns = now_ns();

        state = state * 6364136223846793005u + 1442695040888963407u;
        change((unsigned)(state >> 33) % SLOTS, (1 + (state >> 40) % 16) * MIB);
        dprintf(book, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", begun_ns, now_ns(),
                live, peak, count);
        if (count == 1)
            say("ready");
        usleep(20000 + (state >> 50) % 200000);
    }
}
