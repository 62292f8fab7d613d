/*
 * Programs that allocate as models do, with no kernel and no copy: what they ask for is what tests/traces
 * keeps, so each makes the same calls in every run. They know nothing of memshim.
 *
 * Usage: shapes transformer|convnet|decode|dataframe|pipeline [BATCH]. BATCH is of the first two. Prints
 * "calls N" and "peak_live_bytes N", its own account.
 *
 * transformer  training steps of a small language model, whose sequences differ in length: activations kept
 * for the way back convnet      training steps of an image network: few large maps, workspaces that live for
 * one call decode       serving: a cache for each request, which grows by being allocated anew; requests come
 * and go dataframe    columns of all sizes, joined and filtered: results outlive what they were made from, in
 * no order pipeline     stages on three streams, with stream-ordered memory that is handed on
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

enum { HELD_MAX = 4096 };

struct block {
    void *address;
    size_t bytes;
    cudaStream_t stream; /* NULL: cudaMalloc's */
};

static struct block held[HELD_MAX]; /* what a program holds on to, as a stack or a heap of its own */
static size_t held_count, live, peak;
static unsigned long calls;
static uint64_t random_state = 0x853c49e6748fea9b;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % limit);
}

static void check(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "shapes: %s: %s\n", what, cudaGetErrorString(status));
    exit(1);
}

static struct block take_on(size_t bytes, cudaStream_t stream)
{
    struct block block = {NULL, bytes, stream};

    if (stream)
        check(cudaMallocAsync(&block.address, bytes, stream), "cudaMallocAsync");
    else
        check(cudaMalloc(&block.address, bytes), "cudaMalloc");
    calls++;
    live += bytes;
    peak = live > peak ? live : peak;
    return block;
}

static struct block take(size_t bytes)
{
    return take_on(bytes, NULL);
}

static void give(struct block block)
{
    if (block.stream)
        check(cudaFreeAsync(block.address, block.stream), "cudaFreeAsync");
    else
        check(cudaFree(block.address), "cudaFree");
    calls++;
    live -= block.bytes;
}

static void keep(struct block block)
{
    if (held_count == HELD_MAX) {
        fprintf(stderr, "shapes: too much is held\n");
        exit(1);
    }
    held[held_count++] = block;
}

static void give_kept(size_t down_to)
{
    while (held_count > down_to)
        give(held[--held_count]);
}

static void give_any(void)
{
    size_t which = random_below((unsigned)held_count);
    struct block block = held[which];

    held[which] = held[--held_count];
    give(block);
}

/* --- transformer ---------------------------------------------------------------------------------------- */

enum { LAYERS = 8, HIDDEN = 768, HEADS = 12, VOCABULARY = 16000 };
static size_t batch; /* 0: the shape's own */

static void parameters(unsigned copies)
{
    for (unsigned copy = 0; copy < copies; copy++) {
        keep(take((size_t)VOCABULARY * HIDDEN * 4));
        for (int layer = 0; layer < LAYERS; layer++) {
            keep(take((size_t)HIDDEN * HIDDEN * 3 * 4));
            keep(take((size_t)HIDDEN * 3 * 4));
            keep(take((size_t)HIDDEN * HIDDEN * 4));
            keep(take((size_t)HIDDEN * HIDDEN * 4 * 4));
            keep(take((size_t)HIDDEN * HIDDEN * 4 * 4));
            keep(take((size_t)HIDDEN * 4));
        }
    }
}

static void layer_forward(size_t tokens, size_t length)
{
    size_t scores = batch * HEADS * length * length * 2;

    keep(take(tokens * HIDDEN * 2));
    keep(take(tokens * 4)); /* what the normalization needs on the way back */
    keep(take(tokens * HIDDEN * 3 * 2));
    struct block raw = take(scores);
    keep(take(scores));
    give(raw);
    keep(take(tokens * HIDDEN * 2));
    struct block sum = take(tokens * HIDDEN * 2);
    keep(take(tokens * HIDDEN * 4 * 2));
    keep(take(tokens * HIDDEN * 4 * 2));
    give(sum);
}

static void layer_backward(size_t tokens, size_t length, size_t down_to)
{
    struct block gradient = take(tokens * HIDDEN * 2);

    while (held_count > down_to) {
        struct block wide = take(tokens * HIDDEN * (held_count % 3 ? 1 : 4) * 2);
        give_kept(held_count - 1);
        give(wide);
    }
    struct block scores = take(batch * HEADS * length * length * 2);
    give(gradient);
    give(scores);
}

static void transformer(void)
{
    static const size_t lengths[] = {512, 384, 512, 448, 320, 512};

    batch = batch ? batch : 8;
    parameters(1);
    for (size_t step = 0; step < sizeof lengths / sizeof *lengths; step++) {
        size_t length = lengths[step], tokens = batch * length, marks[LAYERS + 1];

        for (int layer = 0; layer < LAYERS; layer++) {
            marks[layer] = held_count;
            layer_forward(tokens, length);
        }
        marks[LAYERS] = held_count;
        struct block logits = take(tokens * VOCABULARY * 2);
        give(take(tokens * VOCABULARY * 4));
        give(logits);
        for (int layer = LAYERS; layer-- > 0;)
            layer_backward(tokens, length, marks[layer]);
        if (step == 0)
            parameters(3); /* gradients, and what the optimizer keeps */
    }
    give_kept(0);
}

/* --- convnet -------------------------------------------------------------------------------------------- */

static void convnet(void)
{
    enum { STAGES = 5, BLOCKS = 3, STEPS = 6 };
    size_t whole = batch ? batch : 32, images = whole;

    for (size_t stage = 0; stage < STAGES; stage++)
        for (int i = 0; i < 2 * BLOCKS; i++)
            keep(take((size_t)9 * (64u << stage) * (64u << stage) * 4));
    size_t weights = held_count;
    for (int step = 0; step < STEPS; step++) {
        if (step == STEPS - 1)
            images = whole * 5 / 8; /* what is left of the data */
        for (size_t stage = 0; stage < STAGES; stage++) {
            size_t side = 112u >> stage, map = images * (64u << stage) * side * side * 4;
            for (int i = 0; i < BLOCKS; i++) {
                struct block workspace = take(map / 2 + random_below(4) * 8 * MIB + MIB);
                keep(take(map));
                give(workspace);
                keep(take(map));
                keep(take((size_t)(64u << stage) * 8));
            }
        }
        while (held_count > weights) {
            struct block gradient = take(held[held_count - 1].bytes),
                         workspace = take(24 * MIB + random_below(3) * 5 * MIB);
            give_kept(held_count - 1);
            give(workspace);
            give(gradient);
        }
    }
    give_kept(0);
}

/* --- decode --------------------------------------------------------------------------------------------- */

static void decode(void)
{
    enum { REQUESTS = 24, ROUNDS = 400, PAGE = 32 };
    static struct {
        struct block keys, values;
        unsigned tokens, room, end;
    } requests[REQUESTS];
    const size_t token_bytes = 24 * KIB;

    for (int i = 0; i < 60; i++)
        keep(take((i % 3 ? 18 : 6) * MIB + (size_t)i * 512));
    for (int round = 0; round < ROUNDS; round++) {
        struct block logits = take((size_t)REQUESTS * 32000 * 4);
        for (int i = 0; i < REQUESTS; i++) {
            if (!requests[i].room && random_below(8) == 0) {
                requests[i].tokens = 20 + random_below(400);
                requests[i].end = requests[i].tokens + 30 + random_below(300);
                requests[i].room = (requests[i].tokens / PAGE + 1) * PAGE;
                requests[i].keys = take(requests[i].room * token_bytes);
                requests[i].values = take(requests[i].room * token_bytes);
                give(take(requests[i].tokens * token_bytes)); /* the prompt at once */
            } else if (requests[i].room && ++requests[i].tokens == requests[i].room) {
                struct block keys = take((requests[i].room + PAGE) * token_bytes);
                struct block values = take((requests[i].room + PAGE) * token_bytes);
                requests[i].room += PAGE;
                give(requests[i].keys);
                give(requests[i].values);
                requests[i].keys = keys;
                requests[i].values = values;
            }
            if (requests[i].room && requests[i].tokens >= requests[i].end) {
                give(requests[i].keys);
                give(requests[i].values);
                requests[i].room = 0;
            }
        }
        give(take((size_t)REQUESTS * 4 + 512));
        give(logits);
    }
}

/* --- dataframe ------------------------------------------------------------------------------------------ */

static size_t column(void)
{
    return ((size_t)4 * KIB << random_below(14)) + random_below(4096) * (size_t)16;
}

static void dataframe(void)
{
    for (int i = 0; i < 40; i++)
        keep(take(column()));
    for (int query = 0; query < 500; query++) {
        size_t rows = column();
        struct block table = take(2 * rows), left = take(rows / 2 + 64), right = take(rows / 2 + 64);
        unsigned columns = 1 + random_below(4);

        for (unsigned i = 0; i < columns; i++)
            keep(take(rows / 8 + random_below((unsigned)(rows / 2))));
        give(table);
        give(right);
        give(left);
        while (held_count > 30 + random_below(40) || live > 1500 * MIB)
            give_any();
    }
    give_kept(0);
}

/* --- pipeline ------------------------------------------------------------------------------------------- */

static void pipeline(void)
{
    enum { STAGES = 3, ITEMS = 300 };
    cudaStream_t streams[STAGES];
    struct block under_way[STAGES] = {{NULL, 0, NULL}};

    for (int i = 0; i < STAGES; i++)
        check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    keep(take(96 * MIB));
    for (int item = 0; item < ITEMS + STAGES; item++) {
        for (int stage = STAGES; stage-- > 0;) {
            if (under_way[stage].address)
                give(under_way[stage]);
            under_way[stage].address = NULL;
            if (item - stage < 0 || item - stage >= ITEMS)
                continue;
            struct block scratch = take_on((1 + random_below(16)) * 512 * KIB, streams[stage]);
            under_way[stage] =
                take_on((1 + random_below(6)) * (size_t)(STAGES - stage) * 2 * MIB, streams[stage]);
            give(scratch);
        }
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    give_kept(0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } shapes[] = {{"transformer", transformer},
                  {"convnet", convnet},
                  {"decode", decode},
                  {"dataframe", dataframe},
                  {"pipeline", pipeline}};

    if (argc == 3)
        batch = strtoul(argv[2], NULL, 10);
    for (size_t i = 0; (argc == 2 || batch) && i < sizeof shapes / sizeof *shapes; i++) {
        if (strcmp(argv[1], shapes[i].name) != 0)
            continue;
        check(cudaSetDevice(0), "cudaSetDevice");
        shapes[i].run();
        printf("calls %lu\npeak_live_bytes %zu\n", calls, peak);
        return 0;
    }
    fprintf(stderr, "usage: shapes transformer|convnet|decode|dataframe|pipeline [BATCH]\n");
    return 2;
}
