/* record.c - what the record alone costs: nanoseconds of processor time per block that comes and goes,
 * without hooks and without a vendor.
 *
 * A measuring program, not a test. Usage: record [MILLISECONDS]. Columns: a block that is followed, one that
 * is served, and a call that is counted; rows: threads, and how many blocks are alive besides. The least of
 * several rounds is printed. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/at_fork.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/options/options.h"
#include "record/live/ledger.h"

enum { ROUNDS = 5, THREADS_MAX = 16, PAIRS_PER_LOOK = 256, SITES = 100, APIS = 8 };

static uint64_t duration_ns = 30000000, live_blocks;
static pthread_barrier_t begin;

typedef void pair_func_t(uint64_t *random, uint64_t thread);

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct ms_block make_block(uint64_t number, uint64_t thread)
{
    return (struct ms_block){.key = thread << 40 | number << 9,
                             .bytes = 512,
                             .requested = 500,
                             .context = 1,
                             .stack = (ms_stack_id)(number % SITES)};
}

static uint64_t any_of(uint64_t *random)
{
    return live_blocks ? next_random(random) % live_blocks : 0;
}

static void pair_followed(uint64_t *random, uint64_t thread)
{
    struct ms_block block = make_block(any_of(random), thread), old;
    ms_ledger_free_begin(MS_SPACE_ADDRESS, block.key, &old);
    ms_ledger_alloc(&block);
}

static _Thread_local uint32_t *tickets;

static void pair_served(uint64_t *random, uint64_t thread)
{
    uint64_t number = any_of(random);
    struct ms_block block = make_block(number, thread);
    ms_ledger_unserve(tickets[number], block.key, NULL);
    tickets[number] = ms_ledger_serve(&block);
}

static void count_call(uint64_t *random, uint64_t thread)
{
    (void)thread;
    ms_ledger_call((uint16_t)(next_random(random) % APIS), true, false, 512);
}

static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct work {
    pair_func_t *pair;
    uint64_t thread;
    double ns;
};

static void *worker(void *arg)
{
    struct work *work = arg;
    uint64_t random = work->thread * 88172645463325252u, pairs = 0, count = live_blocks ? live_blocks : 1;
    tickets = calloc(count, sizeof *tickets);
    for (uint64_t i = 0; i < count && work->pair != count_call; i++) {
        struct ms_block block = make_block(i, work->thread);
        if (work->pair == pair_served)
            tickets[i] = ms_ledger_serve(&block);
        else
            ms_ledger_alloc(&block);
    }
    pthread_barrier_wait(&begin);
    uint64_t start = thread_ns(), now;
    do {
        for (unsigned i = 0; i < PAIRS_PER_LOOK; i++)
            work->pair(&random, work->thread);
        pairs += PAIRS_PER_LOOK;
        now = thread_ns();
    } while (now - start < duration_ns);
    work->ns = (double)(now - start) / (double)pairs;
    free(tickets);
    return NULL;
}

static double measure(pair_func_t *pair, unsigned threads)
{
    static const struct ms_api_info apis[APIS] = {{"a", "b"}, {"a", "b"}, {"a", "b"}, {"a", "b"},
                                                  {"a", "b"}, {"a", "b"}, {"a", "b"}, {"a", "b"}};
    double least = 1e9;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct work works[THREADS_MAX];
        pthread_t ids[THREADS_MAX];
        double sum = 0;
        ms_store_reset();
        ms_at_fork_run(MS_FORK_RECORD);
        ms_ledger_init(apis, APIS);
        pthread_barrier_init(&begin, NULL, threads);
        for (unsigned i = 0; i < threads; i++) {
            works[i] = (struct work){pair, i + 1, 0};
            pthread_create(&ids[i], NULL, worker, &works[i]);
        }
        for (unsigned i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
            sum += works[i].ns;
        }
        pthread_barrier_destroy(&begin);
        least = sum / threads < least ? sum / threads : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    static const struct {
        unsigned threads;
        uint64_t live;
    } cases[] = {{1, 0}, {1, 100}, {1, 10000}, {1, 1000000}, {2, 100}, {4, 100}};
    if (argc > 1)
        duration_ns = strtoull(argv[1], NULL, 10) * 1000000;
    ms_options_load(NULL, NULL, NULL);
    ms_clock_start();
    printf("%8s %9s %9s %9s %9s\n", "threads", "live", "followed", "served", "call");
    for (unsigned i = 0; i < MS_ARRAY_LEN(cases); i++) {
        live_blocks = cases[i].live;
        double followed = measure(pair_followed, cases[i].threads),
               served = measure(pair_served, cases[i].threads);
        printf("%8u %9llu %9.1f %9.1f %9.1f\n", cases[i].threads, (unsigned long long)live_blocks, followed,
               served, measure(count_call, cases[i].threads));
    }
    return 0;
}
