/* test_limits.c - what happens at the ends: no memory, limits, failing calls, captures, pins, contexts that
 * die, forks. */
#include "config.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool/api/internal.h" /* before it, whose names are others' parameters */

#include "one_context.h"

static void sync_context(void)
{
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    fake_finish(context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
}

/* The n-th call to the driver fails, for every n: the program sees the driver's own errors, and nothing is
 * lost. */
static uint64_t program(uint64_t *strange)
{
    uint64_t held[40] = {0}, seed = 7, refused = 0;
    for (int i = 0; i < 400; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &held[(seed >> 33) % 40];
        if (*slot) {
            int status = give(*slot);
            *strange += status != 0;
            *slot = 0;
        } else {
            struct ms_pool_block block;
            int status = 0;
            uint64_t bytes = ((uint64_t)1 << (seed >> 40) % 26) + (seed >> 50);
            enum ms_pool_verdict verdict =
                ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_ANYHOW, &block, &status);
            if (verdict == MS_POOL_SERVED)
                *slot = block.address;
            refused += verdict != MS_POOL_SERVED;
            *strange += verdict == MS_POOL_REFUSED && status != fake.fail_status &&
                        status != CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (i % 16 == 3)
            fake_issue(context);
        if (i % 64 == 5)
            sync_context();
    }
    for (int i = 0; i < 40; i++)
        if (held[i])
            *strange += give(held[i]) != 0;
    return refused;
}

static void test_failing_calls(int fail_status, const char *name)
{
    uint64_t calls, broken = 0, strange = 0, lost = 0, refused = 0, n;
    fresh(GIB);
    program(&strange);
    calls = fake.all_calls;
    for (n = 1; n <= calls; n += n > 300 ? 7 : 1) {
        fresh(GIB);
        fake.fail_at = n;
        fake.fail_status = fail_status;
        refused += program(&strange);
        broken += ms_pool_check() != NULL;
        struct ms_pool_figures f = figures();
        lost += f.parts.requested != 0 || (f.reserved_bytes != fake.used[0] && fake.failed_call != FAKE_FREE);
    }
    /* How many depends on what is ready when. */
    ok(calls > 50, "%s: the program makes %" PRIu64 " calls to the driver", name, calls);
    is_u64(broken, 0, "%s: every invariant holds, whichever of them fails", name);
    is_u64(strange, 0, "%s: the program sees the driver's errors only", name);
    is_u64(lost, 0, "%s: no memory is lost", name);
    diag("%" PRIu64 " requests were refused in %" PRIu64 " runs", refused, n - 1);
}

/* What the observer has heard of when the driver has something back. */
static uint64_t segments_before, returns, returns_told;

static void look_at_return(void)
{
    returns++;
    returns_told += fake_segments <= segments_before - returns;
}

static void test_out_of_memory(void)
{
    fresh(64 * MIB);
    uint64_t a = take(40 * MIB), b;
    ok(a != 0, "the first block fits");
    is_int(status_of(40 * MIB), CUDA_ERROR_OUT_OF_MEMORY,
           "the second does not, and the program gets the driver's error");
    is_int(give(a), 0, "the first is freed");
    b = take(50 * MIB);
    ok(b != 0, "what is vacant goes back to the driver to make room for another size");
    is_int(give(b), 0, "freed");
    for (int i = 0; i < 15; i++)
        ok(take(4 * MIB) != 0, "%d small blocks fit where the large one was", i + 1);
    sound("out of memory");

    fresh(64 * MIB);
    fake_policy.oom_wait_ms = 30;
    a = take(60 * MIB);
    fake_issue(context);
    give(a);
    is_int(status_of(40 * MIB), CUDA_ERROR_OUT_OF_MEMORY,
           "what work may still touch is not handed out, nor waited for without end");
    is_u64(fake.blocking_frees + fake.calls[FAKE_SYNC], 0, "and nothing waits for the device");
    fake_finish(context);
    ok(take(40 * MIB) != 0, "once the work is done, it is");
    sound("out of memory with work pending");

    uint64_t four[4];
    fresh(96 * MIB);
    for (int i = 0; i < 4; i++)
        four[i] = take(20 * MIB);
    for (int i = 0; i < 4; i++)
        give(four[i]);
    sync_context();
    fake_issue(context);
    segments_before = fake_segments;
    fake_on_return = look_at_return;
    ok(take(30 * MIB) != 0, "idle memory makes room for another size also while other work is pending");
    fake_on_return = NULL;
    ok(returns > 0 && returns_told == returns,
       "and it is told before the driver can give the same addresses to another thread");
    is_u64(fake.blocking_frees + fake.calls[FAKE_SYNC], 0, "without waiting for it");
    sound("given back in a stream");

    errno = 77;
    fresh(8 * MIB);
    status_of(40 * MIB);
    is_int(errno, 77, "errno is kept");
}

/* Small blocks of one size until there is no memory, all freed, and again. */
static void test_filling(void)
{
    static const uint64_t sizes[] = {700, 5000, 30000, 70000, 300000, 1500000};
    static uint64_t a[200000];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        fresh(64 * MIB);
        fake_policy.oom_wait_ms = 0;
        uint64_t first = 0, second = 0;
        while ((a[first] = take(sizes[i])) != 0)
            first++;
        for (uint64_t k = 0; k < first; k++)
            give(a[k]);
        while (take(sizes[i]) != 0)
            second++;
        ok(first * sizes[i] > 43 * MIB && second >= first - first / 100,
           "%" PRIu64 " blocks of %" PRIu64 " bytes fill the device, and the second time %" PRIu64, first,
           sizes[i], second);
    }
}

static void test_limit(void)
{
    fresh(GIB);
    fake_sizes.limit = 100 * MIB;
    is_u64(ms_quota_room(0), UINT64_MAX, "before the first allocation no limit is known");
    uint64_t a = take(60 * MIB);
    ok(a != 0, "below the limit");
    is_u64(ms_quota_room(0), 40 * MIB, "what the limit leaves");
    uint64_t calls = fake.calls[FAKE_ALLOC];
    is_int(status_of(60 * MIB), CUDA_ERROR_OUT_OF_MEMORY, "beyond the limit it is out of memory");
    is_u64(fake.calls[FAKE_ALLOC], calls, "and the driver is not asked");
    give(a);
    ok(take(90 * MIB) != 0, "within the limit again, by giving back");
    sound("limit");
}

static void test_preallocation(void)
{
    fresh(GIB);
    fake_sizes.prealloc = 256 * MIB;
    uint64_t a = take(KIB);
    is_u64(figures().reserved_bytes, 256 * MIB, "the first allocation takes what is preallocated");
    uint64_t b = take(10 * MIB);
    is_u64(fake.calls[FAKE_ALLOC], 1, "and others are served from it");
    fake.capacity = 256 * MIB;
    struct ms_pool_block block;
    uint64_t c = take(100 * MIB);
    ok(c != 0 && ms_pool_find(c, &block) && !block.whole, "large ones too, when the driver has nothing left");
    give(a);
    give(b);
    give(c);
    sync_context();
    ms_pool_trim(0, 0);
    is_u64(figures().reserved_bytes, 256 * MIB, "it is never given back");
    a = take(KIB);
    b = take(10 * MIB);
    ok(a != 0 && b != 0, "and it is there again when all of it was free");
    give(a);
    give(b);
    sync_context();
    ok((c = take(100 * MIB)) != 0, "for large ones too");
    give(c);
    sound("preallocation");
}

static void test_capture(void)
{
    fresh(GIB);
    uint64_t a = take(20 * MIB), b;
    begin_capture();
    fake_issue(context);
    fake_finish(context);
    give(a);
    b = take(20 * MIB);
    ok(b != 0 && b != a, "during a capture other memory is taken");
    is_u64(fake.calls[FAKE_CTX_RECORD] + fake.destroyed_captures, 0, "and no fence is recorded");
    ms_pool_graph_alive((uintptr_t)context, 1);
    end_capture();
    give(b);
    sync_context();
    ms_pool_trim(0, 0);
    is_u64(figures().reserved_bytes, 40 * MIB, "what was live during the capture stays while its graph does");
    ms_pool_graph_alive((uintptr_t)context, -1);
    ms_pool_trim(0, 0);
    is_u64(figures().reserved_bytes, 0, "and goes back after it");
    sound("capture");

    fresh(100 * MIB);
    a = take(40 * MIB);
    b = take(40 * MIB);
    begin_capture();
    ms_pool_graph_alive((uintptr_t)context, 1);
    end_capture();
    give(a);
    give(b);
    sync_context();
    a = take(90 * MIB);
    ok(a != 0, "where memory is short, what is free makes room for another size, whatever graphs there are");
    give(a);
    sync_context();
    is_u64(ms_keep_make_room(0, UINT64_MAX) >= 90 * MIB, 1, "and for memory of another kind");
    ms_pool_graph_alive((uintptr_t)context, -1);
    sound("short beside a graph");

    fresh(GIB);
    begin_capture();
    a = take(MIB);
    give(a);
    take(MIB);
    ms_pool_trim(0, 0);
    is_u64(fake.destroyed_captures, 0, "a capture that began before the first allocation is known as well");
}

static void test_pins(void)
{
    struct ms_pool_block block;
    fresh(GIB);
    uint64_t a = take(20 * MIB), b = take(100);
    ok(ms_pool_pin(a) && ms_pool_pin(a) && ms_pool_pin(b) && !ms_pool_pin(1),
       "live blocks are pinned, others not");
    ok(ms_pool_find(a, &block) && block.pinned, "a pinned block says so");
    give(a);
    give(b);
    sync_context();
    is_u64(figures().parts.pinned, 20 * MIB + 512, "pinned blocks stay when they are freed");
    ok(take(20 * MIB) != a, "and are not handed out");
    ms_pool_unpin(a);
    is_u64(figures().parts.pinned, 20 * MIB + 512, "until the last pin is undone");
    uint64_t frees = fake.calls[FAKE_FREE];
    ms_pool_unpin(a);
    ms_pool_unpin(b);
    sync_context();
    is_u64(figures().parts.pinned, 0, "then they are free");
    is_u64(fake.calls[FAKE_FREE], frees + 1, "and a whole one goes back to the driver");
    ok(!ms_pool_owns(a), "its address is the driver's again");
    sound("pins");

    a = take(32 * MIB);
    ms_pool_pin(a);
    ms_pool_unpin(a);
    frees = fake.calls[FAKE_FREE];
    give(a);
    ok(take(32 * MIB) != 0 && fake.calls[FAKE_FREE] == frees + 1,
       "a whole block that was exported once goes back as well");
    sound("pins that were undone");
}

static void test_driver_with_small_alignment(void)
{
    fresh(GIB);
    fake.small_align = true;
    is_int(status_of(MIB), -1, "a driver that does not align chunks is left alone");
    is_u64(fake.used[0], 0, "and gets its memory back");
    is_u64(fake_notes, 1, "one line says so: %s", fake_last_note);
}

static void test_driver_with_other_ranges(void)
{
    fresh(GIB);
    take(MIB);
    fake.other_range = true;
    ok(take(64 * MIB) != 0, "where memory begins and ends is asked once for a context");
    is_u64(fake.calls[FAKE_RANGE], 1, "and no more");
    is_u64(fake.calls[FAKE_FREE], 0, "nothing is tried out");
    fresh(GIB);
    fake.other_range = true;
    is_int(status_of(MIB), -1, "a driver that knows its allocations otherwise is left alone");
    is_u64(fake.used[0], 0, "and gets its memory back");
    is_u64(fake_notes, 1, "one line says so: %s", fake_last_note);
    is_int(status_of(MIB), -1, "from then on");
    is_u64(fake.calls[FAKE_ALLOC], 1, "without being asked");
    fresh(GIB);
    fake.other_range = true;
    fake_issue(context);
    is_int(status_of(MIB), -1, "the same while it is at work");
    is_u64(fake.blocking_frees, 0, "which is not waited for");
}

static void test_sticky_error(void)
{
    fresh(GIB);
    uint64_t a = take(MIB);
    fake.fail_at = fake.all_calls + 1;
    fake.fail_status = CUDA_ERROR_ILLEGAL_ADDRESS;
    is_int(status_of(64 * MIB), -1, "after an error that stays, the driver answers");
    is_int(status_of(100), -1, "from then on");
    is_int(give(a), 0, "what is live can still be freed");
    is_int(give(a), CUDA_ERROR_INVALID_VALUE, "once");
    ok(fake_notes == 1 && strstr(fake_last_note, "stays"), "one line says so: %s", fake_last_note);
    sound("sticky error");
}

static void test_streams(void)
{
    fresh(GIB);
    gpu = fake_start(GIB, false);
    ms_stream_born(gpu, (uintptr_t)context, 0x1000);
    uint64_t a = take(20 * MIB);
    ms_stream_born(gpu, (uintptr_t)context, 0x2000);
    give(a);
    is_u64(take(20 * MIB), a, "without an event over a context, events of all streams do");
    is_u64(fake.calls[FAKE_RECORD], 3, "one for each stream and the default one");
    end_stream(0x1000);
    fake_issue(context);
    give(a);
    uint64_t b = take(20 * MIB);
    ok(b != a, "pending work is respected");
    is_u64(fake.calls[FAKE_SYNC], 0, "without waiting");
    fake_finish(context);
    ms_pool_unreachable((uintptr_t)context);
    give(b);
    is_u64(fake.calls[FAKE_SYNC], 1,
           "with a stream that takes no event of ours, a free waits as the driver's does");
    sound("streams");
}

static void test_two_contexts(void)
{
    fresh(100 * MIB);
    struct fake_context *first = context, *second = fake_context(0);
    uint64_t a = take(80 * MIB), b;
    fake_issue(second);
    context = second;
    fake_set_current(second);
    is_int(give(a), 0, "freed while another context is current");
    b = take(80 * MIB);
    ok(b != 0, "memory that is vacant in one context makes room in another");
    is_u64(fake.wrong_context, 0, "each event belongs to the context that it is recorded over");
    ms_pool_context_ending((uintptr_t)second);
    is_int(status_of(100), -1, "a context that ends is not served");
    ms_pool_context_ended((uintptr_t)second, false);
    is_int(status_of(100), 0, "but is again if it lives after all");
    ms_pool_context_ending((uintptr_t)second);
    fake_kill(second);
    ms_pool_context_ended((uintptr_t)second, true);
    ok(!ms_pool_owns(b), "what lay in a dead context is nobody's");
    is_int(give(b), -1, "and a free of it is the driver's business");
    context = first;
    fake_set_current(first);
    ok(take(80 * MIB) != 0, "the other context goes on");
    fake_set_current(NULL);
    ok(take(5 * MIB) != 0, "calls are made in the context, whatever is current");
    is_u64(fake.unknown_frees, 0, "nothing was freed twice");
    sound("two contexts");
}

/* The first two, and the last two, of every interface. */
static void test_devices(void)
{
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        enum ms_maker maker = ms_device_maker(device);
        int index = ms_device_index(device), status = 0;
        if (index > 1 && index < ms_device_count(maker) - 2)
            continue;
        fresh(100 * MIB);
        context = fake_context(device);
        fake_set_current(context);
        enum ms_pool_verdict verdict =
            ms_pool_alloc(gpu, (uintptr_t)context, device, 3 * MIB, MS_POOL_ANYHOW, &latest, &status);
        struct ms_pool_figures figures;
        ms_pool_figures(device, &figures);
        ok(verdict == MS_POOL_SERVED && figures.parts.requested == 3 * MIB &&
               ms_quota_room(device) == UINT64_MAX,
           "%s device %d is served, and has figures", ms_device_api(device), index);
    }
    sound("devices");
}

static void test_fork(void)
{
    fresh(GIB);
    uint64_t a = take(MIB);
    pid_t child = fork();
    if (child == 0) {
        ms_at_fork_run(MS_FORK_POOL);
        bool forgot = !ms_pool_owns(a) && give(a) == -1;
        uint64_t b = take(MIB);
        _exit(forgot && b && !ms_pool_check() ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a fork child starts empty");
    is_int(give(a), 0, "and its parent goes on");
}

static void test_passed(void)
{
    fresh(GIB);
    is_int(status_of(0), -1, "nothing is asked for: the driver answers");
    is_int(status_of(UINT64_MAX), -1, "more than there can be: the driver answers");
    is_int(status_of((uint64_t)1 << 40), -1, "from a terabyte on as well");
    is_int(status_of((uint64_t)1 << 39), CUDA_ERROR_OUT_OF_MEMORY, "more than there is: out of memory");
    is_int(give(12345), -1, "an address of nobody's: the driver answers");
    fake_policy.export_whole = true;
    is_int(status_of(100), -1, "where all could be exported, small blocks are the driver's");
    struct ms_pool_block block;
    int status;
    ok(ms_pool_alloc(gpu, (uintptr_t)context, 0, 3 * MIB, MS_POOL_ANYHOW, &block, &status) ==
               MS_POOL_SERVED &&
           block.whole,
       "and larger ones are whole");
}

/* Events for a block that is freed and allocated again and again. */
static void test_events(void)
{
    static const uint64_t sizes[] = {512, 4 * KIB, 64 * KIB};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        fresh(GIB);
        for (int k = 0; k < 20000; k++) {
            if (k == 10000)
                fake.calls[FAKE_CTX_RECORD] = 0;
            give(take(sizes[i]));
        }
        ok(fake.calls[FAKE_CTX_RECORD] <= 320, "%" PRIu64 " bytes: %" PRIu64 " events for 10000 frees",
           sizes[i], fake.calls[FAKE_CTX_RECORD]);
    }
}

/* The driver hands the addresses of a context that has ended to another before the pool hears of the end. */
static void test_addresses_of_the_dead(void)
{
    fresh(64 * MIB);
    struct fake_context *first = context, *second = fake_context(0);
    uint64_t dead = take(40 * MIB);
    ms_pool_context_ending((uintptr_t)first);
    fake_kill(first);
    context = second;
    fake_set_current(second);
    uint64_t living = take(40 * MIB);
    is_u64(living, dead, "the dead: another context gets the address");
    ms_pool_context_ended((uintptr_t)first, true);
    ok(ms_pool_owns(living), "the end of the one does not take it from the other");
    is_int(give(living), 0, "and it can be freed");
    sound("addresses of the dead");
}

/* The block that the memory was asked for is the program's at the peak, however it was served. */
static void test_peak(void)
{
    static const uint64_t sizes[] = {100 << 20, 5 << 20, 3 << 20, 40000};
    for (unsigned i = 0; i < MS_ARRAY_LEN(sizes); i++) {
        fresh(GIB);
        uint64_t address = take(sizes[i]), granted = latest.granted;
        struct ms_pool_figures f = figures();
        is_u64(f.peak_parts.requested, sizes[i],
               "a lone block of %llu bytes was requested when most was reserved",
               (unsigned long long)sizes[i]);
        ok(f.peak_parts.rounding == granted - sizes[i] &&
               f.peak_parts.stranded == f.peak_reserved_bytes - granted,
           "and nothing but the rest of its segment was stranded");
        /* A later growth finds the first block counted, once. */
        uint64_t other = take(200 * MIB);
        f = figures();
        is_u64(f.peak_parts.requested, sizes[i] + 200 * MIB, "with another one both were");
        give(address);
        give(other);
    }
}

/* A chunk is longer than the request that needs it, but no more than an eighth of what is carved, give or
 * take half a block: what is reserved follows what is live from the first block on. */
static void test_growth(void)
{
    uint64_t live = 0;
    bool close = true;
    fresh(16 * GIB);
    for (int i = 0; i < 128; i++) {
        close &= take(4 * MIB) != 0;
        live += 4 * MIB;
        close &= figures().reserved_bytes <= live + live / 8 + 4 * MIB;
    }
    uint64_t calls = fake.calls[FAKE_ALLOC];
    ok(close && calls < 48, "chunks follow what is live, in %" PRIu64 " calls for 128 blocks", calls);
    sound("growth");
}

int main(void)
{
    plan(0);
    test_peak();
    test_failing_calls(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    test_failing_calls(CUDA_ERROR_UNKNOWN, "unknown error");
    test_failing_calls(CUDA_ERROR_INVALID_VALUE, "invalid value");
    test_out_of_memory();
    test_filling();
    test_growth();
    test_limit();
    test_preallocation();
    test_capture();
    test_pins();
    test_driver_with_small_alignment();
    test_driver_with_other_ranges();
    test_sticky_error();
    test_streams();
    test_two_contexts();
    test_devices();
    test_addresses_of_the_dead();
    test_fork();
    test_passed();
    test_events();
    return done();
}
