/* test_sample.c - sampling by bytes: how often a size is taken, and that estimates made from what was taken
 * are unbiased. */
#include "config.h"

#include <math.h>
#include <pthread.h>

#include "unwind/stack.h"
#include "tests/tap.h"

enum { CALLS = 2000000 };

/* The estimate of `calls` blocks of `bytes`, in standard deviations from the truth. */
static double deviation(uint64_t bytes, unsigned calls, unsigned *taken_p)
{
    double probability = (double)bytes / MS_SAMPLE_BYTES;
    unsigned taken = 0;
    for (unsigned i = 0; i < calls; i++)
        taken += ms_stack_sampled(bytes);
    *taken_p = taken;
    return (taken - calls * probability) / sqrt(calls * probability * (1 - probability));
}

static void *first_of_thread(void *arg)
{
    for (int i = 0; i < 64; i++)
        *(uint64_t *)arg = *(uint64_t *)arg << 1 | ms_stack_sampled(MS_SAMPLE_BYTES / 2);
    return NULL;
}

/* A site that makes blocks of many sizes: the sum of the weights against the sum of the bytes. */
static void test_estimate(void)
{
    double estimated_bytes = 0, estimated_count = 0, bytes = 0;
    unsigned seed = 7;
    for (unsigned i = 0; i < CALLS; i++) {
        seed = seed * 1103515245 + 12345;
        uint64_t size = (uint64_t)1 << (9 + (seed >> 16) % 14); /* 512 bytes to 4 MiB */
        bytes += (double)size;
        if (!ms_stack_sampled(size))
            continue;
        estimated_bytes += (double)ms_stack_sample_bytes(size);
        estimated_count += (double)ms_stack_sample_bytes(size) / (double)size;
    }
    double bytes_error = estimated_bytes / bytes - 1, count_error = estimated_count / CALLS - 1;
    ok(fabs(bytes_error) < 0.01, "bytes are estimated within 1 percent (%+.3f)", 100 * bytes_error);
    ok(fabs(count_error) < 0.10, "counts within 10 percent, though most blocks are tiny (%+.3f)",
       100 * count_error);
}

int main(void)
{
    static const uint64_t sizes[] = {512, 4096, 65536, MS_SAMPLE_BYTES / 2, MS_SAMPLE_BYTES - 4096};
    uint64_t threads[4] = {0};
    unsigned taken;
    plan(10);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double off = deviation(sizes[i], CALLS, &taken);
        ok(fabs(off) < 5, "%" PRIu64 " bytes: taken %u times of %d, %.1f standard deviations off", sizes[i],
           taken, CALLS, off);
    }
    deviation(MS_SAMPLE_BYTES, 1000, &taken);
    is_u64(taken, 1000, "from 1 MiB on every one is taken");
    deviation(0, 1000, &taken);
    is_u64(taken, 0, "nothing is never taken");
    test_estimate();
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, first_of_thread, &threads[i]);
        pthread_join(thread, NULL);
    }
    ok(threads[0] != threads[1] || threads[1] != threads[2] || threads[2] != threads[3],
       "threads sample independently");
    return done();
}
