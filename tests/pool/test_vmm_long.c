/* test_vmm_long.c - memory that is mapped by handles of several pages: how long they are, what they keep,
 * near the end of the device's memory, captures, peers, limits; and, of pages as well, whichever call of the
 * driver's fails, and threads. */
#include "config.h"

#include <pthread.h>

#include "vmm.h"

/* Where much is mapped and there is as much left, a handle is as long as what is missing. */
static void test_long_handles(void)
{
    fresh(4 * MUCH);
    uint64_t most = take(MUCH), creates = fake.calls[FAKE_CREATE], reserved = figures().reserved_bytes;
    is_u64(creates, 64, "long: so many handles are four gigabytes");
    uint64_t a = take(33 * MIB), b = take(39 * MIB);
    is_u64(figures().reserved_bytes, reserved + 72 * MIB, "long: two blocks more, to the page");
    is_u64(fake.calls[FAKE_CREATE], creates + 2, "long: one handle each");
    give(a);
    is_u64(ms_pool_trim(0, 0), 0, "long: the first stays while the second block begins in its last page");
    give(b);
    is_u64(ms_pool_trim(0, 0), 72 * MIB, "long: both go back with that");
    is_u64(fake.unmaps, 2, "long: by a call each");
    sound("long");

    a = take(64 * MIB);
    reserved = figures().reserved_bytes;
    give(a);
    b = take(6 * MIB);
    is_u64(b, a, "long: a part of a long handle is used again");
    is_u64(ms_pool_trim(0, 0), 0, "long: then it stays, all of it");
    ok(take(58 * MIB) == a + 6 * MIB, "long: and the rest is there for others");
    is_u64(figures().reserved_bytes, reserved, "long: without a page more");
    sound("long, in part");
    give(most);
    end_context("long");

    fresh(8 * GIB);
    fake.handle_most_bytes = 6 * MIB;
    ok(take(GIB) && take(33 * MIB), "long: a driver that has no handles of more than 3 pages");
    is_u64(figures().reserved_bytes, GIB + 34 * MIB, "long: has shorter ones");
    is_u64(fake.longest_handle_bytes, 4 * MIB, "long: of two pages");
    sound("long, refused");
    end_context("long, refused");

    fresh(GIB + 100 * MIB);
    fake_policy.oom_wait_ms = 0;
    uint64_t got;
    take(GIB);
    is_u64(fake.longest_handle_bytes, PAGE, "long: near the end of the device's memory they are pages");
    is_int(status_of(24 * MIB, &got), 0, "long: there is some left");
    is_int(status_of(90 * MIB, &got), CUDA_ERROR_OUT_OF_MEMORY, "long: but not as much");
    is_u64(fake.used[0], GIB + 24 * MIB, "long: what was made on the way has gone back");
    is_u64(figures().reserved_bytes, fake.used[0], "long: and is counted nowhere");
    sound("long, no memory");
    end_context("long, no memory");
}

/* Free handles that lie apart and fit no request just so: a request takes what fits, and what is too long
 * goes back before memory is refused. */
static void test_long_at_the_end(void)
{
    uint64_t got, blocks[8];
    fresh(2 * MUCH);
    uint64_t most = take(MUCH);
    for (int i = 0; i < 8; i++)
        blocks[i] = take(48 * MIB);
    uint64_t rest = take(fake.capacity - fake.used[0]);
    for (int i = 0; i < 8; i += 2)
        give(blocks[i]);
    uint64_t handles = fake.calls[FAKE_CREATE];
    is_int(status_of(72 * MIB, &got), 0,
           "long: where nothing is left, a block of one and a half handles fits");
    ok(fake.calls[FAKE_CREATE] > handles, "long: a handle was made for it");
    is_int(status_of(120 * MIB, &got), 0, "long: and so does what remains");
    is_int(status_of(PAGE, &got), CUDA_ERROR_OUT_OF_MEMORY, "long: to the last page");
    is_u64(figures().reserved_bytes, 2 * MUCH, "long: all there is, is reserved");
    ok(give(most) == 0 && give(rest) == 0, "long: what was in use stayed where it was");
    sound("long, at the end");
    end_context("long, at the end");
}

static void test_long_captures(void)
{
    fresh(4 * MUCH);
    take(MUCH);
    uint64_t a = take(64 * MIB), b = take(64 * MIB);
    give(a);
    uint64_t d = take(PAGE);
    ms_pool_capture_enter((uintptr_t)context);
    context->captures = 1;
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, true);
    uint64_t c = take(6 * MIB);
    ms_pool_graph_alive((uintptr_t)context, 1);
    ms_pool_capture_enter((uintptr_t)context);
    context->captures = 0;
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, false);
    give(c);
    give(d);
    give(b);
    uint64_t before = fake.unmaps;
    ms_pool_trim(0, 0);
    ok(d == a && c >= a && c < a + 64 * MIB, "long: a graph knows a part of a handle");
    is_u64(fake.unmaps, before, "long: neither that is unmapped, nor what was in use");
    ms_pool_graph_alive((uintptr_t)context, -1);
    is_u64(ms_pool_trim(0, 0), 128 * MIB, "long: without the graph both go back");
    sound("long, captures");
    end_context("long, captures");
}

/* Access is set for whole mappings, wherever a stretch of them begins. */
static void test_long_peers(void)
{
    fresh(4 * MUCH);
    uint64_t most = take(MUCH), a = take(32 * MIB), b = take(31 * MIB), calls;
    give(a);
    ms_pool_trim(0, 0);
    calls = fake.calls[FAKE_ACCESS];
    ms_pool_peer((uintptr_t)context, 1, true);
    is_u64(fake_access(most) & fake_access(most + MUCH - PAGE) & fake_access(b) & fake_access(b + 30 * MIB),
           3, "long: a peer is let to every page");
    is_u64(fake.calls[FAKE_ACCESS], calls + 2, "long: by one call for each stretch");
    uint64_t c = take(200 * MIB);
    is_u64(fake_access(c) & fake_access(c + 199 * MIB), 3, "long: and to what comes");
    ms_pool_peer((uintptr_t)context, 1, false);
    is_u64(fake_access(most) | fake_access(b) | fake_access(c + 199 * MIB), 1, "long: and no longer");
    sound("long, peers");
    end_context("long, peers");
}

/* A limit is in bytes, however long the handles are. */
static void test_long_limit(void)
{
    uint64_t got;
    fresh(8 * MUCH);
    fake_sizes.limit = 2 * MUCH;
    take(MUCH);
    uint64_t a = take(64 * MIB), reserved = figures().reserved_bytes, handles = fake.handles;
    is_u64(fake.longest_handle_bytes, 64 * MIB, "long: within a limit a handle is as long as a block");
    is_int(status_of(MUCH, &got), CUDA_ERROR_OUT_OF_MEMORY, "long: a block beyond it is refused");
    ok(figures().reserved_bytes == reserved && fake.handles == handles && fake.used[0] == reserved,
       "long: as a whole");
    is_int(status_of(MUCH - 64 * MIB, &got), 0, "long: what is left of it is there");
    is_int(status_of(PAGE, &got), CUDA_ERROR_OUT_OF_MEMORY, "long: and not a page more");
    give(a);
    is_int(status_of(MUCH, &got), CUDA_ERROR_OUT_OF_MEMORY, "long: what was freed is as much as it was");
    ok(take(40 * MIB) && take(24 * MIB) && fake.used[0] == 2 * MUCH, "long: for others");
    sound("long, limit");
    end_context("long, limit");
}

/* Requests of every size and frees, with work and waits between; frees everything. */
static uint64_t program(uint64_t more, uint64_t *strange)
{
    uint64_t held[40] = {0}, seed = 11, refused = 0, first = more ? take(more) : 0;
    for (int i = 0; i < 300; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &held[(seed >> 33) % 40];
        if (*slot) {
            *strange += give(*slot) != 0;
            *slot = 0;
        } else {
            int status = status_of(((uint64_t)1 << (seed >> 40) % 26) + (seed >> 50), slot);
            refused += status != 0;
            *strange += status > 0 && status != fake.fail_status && status != CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (i % 16 == 3)
            fake_issue(context);
        if (i % 32 == 5) {
            uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
            fake_finish(context);
            ms_pool_sync_end((uintptr_t)context, mark, 0);
        }
        if (i % 64 == 9)
            ms_pool_trim(0, 16 * MIB);
    }
    for (int i = 0; i < 40; i++)
        if (held[i])
            *strange += give(held[i]) != 0;
    if (first)
        *strange += give(first) != 0;
    return refused + (more && !first);
}

/* What the driver failed to take back may stay with it; nothing else may. With `more` in use, from the first
 * request on, handles are long. */
static void test_failing_calls(int fail_status, uint64_t more, const char *name)
{
    uint64_t calls, broken = 0, strange = 0, lost = 0, refused = 0, misused = 0, told = 0, longest = PAGE;
    fresh(GIB + 4 * more);
    fake_sizes.keep = 8 * MIB;
    program(more, &strange);
    calls = fake.all_calls;
    for (uint64_t n = 1; n <= calls; n += n > 200 ? 5 : 1) {
        fresh(GIB + 4 * more);
        fake_sizes.keep = 8 * MIB;
        fake.fail_at = n;
        fake.fail_status = fail_status;
        refused += program(more, &strange);
        broken += ms_pool_check() != NULL;
        lost += figures().parts.requested != 0 ||
                (figures().reserved_bytes != fake.used[0] && fake.failed_call != FAKE_FREE &&
                 fake.failed_call != FAKE_RELEASE);
        if (lost && !told++)
            diag("the %" PRIu64 "th call, number %d: reserved %" PRIu64 ", the driver gave %" PRIu64
                 ", requested %" PRIu64,
                 n, (int)fake.failed_call, figures().reserved_bytes, fake.used[0], figures().parts.requested);
        misused += fake.vmm_errors;
        fake.fail_at = 0;
        ms_pool_context_ending((uintptr_t)context);
        fake_kill(context);
        ms_pool_context_ended((uintptr_t)context, true);
        longest = longest > fake.longest_handle_bytes ? longest : fake.longest_handle_bytes;
        lost += fake.used[0] > (fake.failed_call == FAKE_RELEASE ? fake.longest_handle_bytes : 0);
    }
    ok(calls > 200 && fake.calls[FAKE_MAP] > 0, "%s: the program makes %" PRIu64 " calls to the driver", name,
       calls);
    is_u64(broken, 0, "%s: every invariant holds, whichever of them fails", name);
    is_u64(strange, 0, "%s: the program sees the driver's errors only", name);
    is_u64(misused, 0, "%s: and the driver no call that is never right", name);
    is_u64(lost, 0, "%s: no memory is lost", name);
    ok(more ? longest > 8 * PAGE : longest == PAGE, "%s: handles of up to %" PRIu64 " pages", name,
       longest / PAGE);
    if (fail_status == CUDA_ERROR_NOT_SUPPORTED)
        is_u64(refused, 0, "%s: an allocation of the driver's takes the place of what cannot be mapped",
               name);
}

static void *thread(void *arg)
{
    uint64_t held[24] = {0}, seed = (uintptr_t)arg, wrong = 0;
    fake_set_current(context);
    for (int i = 0; i < 4000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &held[(seed >> 33) % 24];
        if (*slot) {
            wrong += give(*slot) != 0;
            *slot = 0;
        } else {
            status_of(((uint64_t)1 << (seed >> 40) % 25) + 1, slot);
        }
        if ((seed >> 20) % 256 == 0)
            ms_pool_trim(0, 0);
        if ((seed >> 20) % 512 == 1)
            ms_pool_peer((uintptr_t)context, 1, seed >> 50 & 1);
    }
    for (int i = 0; i < 24; i++)
        if (held[i])
            wrong += give(held[i]) != 0;
    return (void *)(uintptr_t)wrong;
}

static void test_threads(uint64_t more, uint64_t capacity, const char *name)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t wrong = 0;
    fresh(capacity);
    fake_policy.oom_wait_ms = 1;
    uint64_t first = more ? take(more) : 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (uintptr_t)result;
    }
    if (first)
        wrong += give(first) != 0;
    is_u64(wrong, 0, "%s: every free is the program's own", name);
    ok(fake.unmaps > 0, "%s: %" PRIu64 " handles were unmapped", name, fake.unmaps);
    ok((fake.longest_handle_bytes > PAGE) == (more > 0), "%s: of up to %" PRIu64 " pages", name,
       fake.longest_handle_bytes / PAGE);
    is_u64(figures().reserved_bytes, fake.used[0], "%s: what is reserved is what the driver gave", name);
    sound(name);
    end_context(name);
}

int main(void)
{
    plan(0);
    test_long_handles();
    test_long_at_the_end();
    test_long_captures();
    test_long_peers();
    test_long_limit();
    test_failing_calls(CUDA_ERROR_OUT_OF_MEMORY, 0, "out of memory");
    test_failing_calls(CUDA_ERROR_NOT_SUPPORTED, 0, "not supported");
    test_failing_calls(CUDA_ERROR_INVALID_VALUE, 0, "invalid value");
    test_failing_calls(CUDA_ERROR_OUT_OF_MEMORY, MUCH / 2, "out of memory, long handles");
    test_failing_calls(CUDA_ERROR_INVALID_VALUE, MUCH / 2, "invalid value, long handles");
    test_threads(0, 200 * MIB, "threads");
    test_threads(MUCH / 2, 3200 * MIB, "threads, long handles");
    return done();
}
