/* together SHAPE THREADS [ROUNDS]: threads that allocate and free at the same time, with nothing queued on
 * the device but in `grow`. Prints the most that was live by the program's own book, from before each call to
 * after it, and what the device had given at most, in MiB.
 *
 * plain: blocks of 20 to 59 MiB, one a thread. large: of 100 to 400 MiB. short: as plain, freed at once.
 * mixed: eight blocks a thread of 4 KiB to 32 MiB. grow: a workspace as a library's handle has it, allocated
 * anew when a larger one is wanted, with work in a stream. turns, random: blocks of 20 to 59 MiB in slots,
 * one after the other or by chance. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

enum { THREADS_MOST = 16, SLOTS = 16, HELD_US = 200 };
static long long live, most;
static int rounds;
static void (*play)(unsigned long thread);

static void *take(size_t bytes)
{
    void *block;
    long long now = __atomic_add_fetch(&live, bytes, __ATOMIC_SEQ_CST);
    long long seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);

    while (now > seen &&
           !__atomic_compare_exchange_n(&most, &seen, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    if (cudaMalloc(&block, bytes))
        exit(2);
    return block;
}

static void give(void *block, size_t bytes)
{
    if (cudaFree(block))
        exit(3);
    __atomic_sub_fetch(&live, bytes, __ATOMIC_SEQ_CST);
}

static unsigned next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33);
}

static void one_a_thread(unsigned long thread, size_t least_mib, size_t step_mib, int held_us)
{
    for (int round = 0; round < rounds; round++) {
        size_t bytes = (least_mib + (thread * 7 + (unsigned)round * 11) % 40 * step_mib) * MIB;
        void *block = take(bytes);

        if (held_us)
            usleep((useconds_t)held_us);
        give(block, bytes);
    }
}

static void plain(unsigned long thread)
{
    one_a_thread(thread, 20, 1, HELD_US);
}

static void at_once(unsigned long thread)
{
    one_a_thread(thread, 20, 1, 0);
}

static void large(unsigned long thread)
{
    one_a_thread(thread, 100, 8, HELD_US);
}

static void mixed(unsigned long thread)
{
    void *blocks[8] = {NULL};
    size_t bytes[8];
    uint64_t seed = thread + 1;

    for (int round = 0; round < rounds * 4; round++) {
        unsigned i = next(&seed) % 8, doublings = next(&seed) % 14;

        if (blocks[i])
            give(blocks[i], bytes[i]);
        bytes[i] = ((size_t)4096 << doublings) - next(&seed) % 2048;
        blocks[i] = take(bytes[i]);
    }
    for (unsigned i = 0; i < 8; i++)
        if (blocks[i])
            give(blocks[i], bytes[i]);
}

static void grow(unsigned long thread)
{
    for (int round = 0; round < rounds / 20 + 1; round++) {
        size_t bytes = 32 * MIB;
        cudaStream_t stream;
        void *workspace = take(bytes);

        if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
            exit(4);
        for (unsigned k = 0; k < 6; k++) {
            size_t wanted = (1 + (thread * 7 + (unsigned)round * 5 + k * 11) % 60) * MIB;

            if (wanted > bytes) {
                give(workspace, bytes);
                workspace = take(bytes = wanted);
            }
            cudaMemsetAsync(workspace, 1, 4096, stream);
        }
        cudaStreamSynchronize(stream);
        give(workspace, bytes);
        cudaStreamDestroy(stream);
    }
}

static void slots(unsigned long count, int by_chance)
{
    void *blocks[SLOTS] = {NULL};
    size_t bytes[SLOTS];
    uint64_t seed = 1;

    for (unsigned k = 0; k < count * (unsigned)rounds; k++) {
        unsigned i = by_chance ? next(&seed) % (unsigned)count : k % (unsigned)count;

        if (blocks[i])
            give(blocks[i], bytes[i]);
        bytes[i] = (20 + (i * 7 + k / (unsigned)count * 11) % 40) * MIB;
        blocks[i] = take(bytes[i]);
    }
}

static void turns(unsigned long count)
{
    slots(count, 0);
}

static void by_chance(unsigned long count)
{
    slots(count, 1);
}

static const struct {
    const char *name;
    void (*play)(unsigned long thread);
    int alone; /* its number is of slots */
} shapes[] = {{"plain", plain, 0}, {"short", at_once, 0}, {"large", large, 0},     {"mixed", mixed, 0},
              {"grow", grow, 0},   {"turns", turns, 1},   {"random", by_chance, 1}};

static void *start(void *thread)
{
    play((unsigned long)thread);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 4;
    pthread_t threads[THREADS_MOST];
    int alone = 0;

    rounds = argc > 3 ? atoi(argv[3]) : 200;
    for (size_t i = 0; argc > 1 && i < sizeof(shapes) / sizeof(*shapes); i++)
        if (!strcmp(argv[1], shapes[i].name)) {
            play = shapes[i].play;
            alone = shapes[i].alone;
        }
    if (!play || !count || count > THREADS_MOST)
        return 1;
    for (unsigned long i = 0; !alone && i < count; i++)
        pthread_create(&threads[i], NULL, start, (void *)i);
    for (unsigned long i = 0; !alone && i < count; i++)
        pthread_join(threads[i], NULL);
    if (alone)
        play(count);
    say("live %lld given %lld", most >> 20, counted("peak_bytes") >> 20);
    return 0;
}
