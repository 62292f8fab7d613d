/* test_vmm.c - memory that is mapped by handle (MEMSHIM_BACKING=vmm): growth in place, pages that move, what
 * must not move, peers, failing calls, the end of a context. */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "calls.h"
#include "tap.h"

#define KIB  ((uint64_t)1 << 10)
#define MIB  ((uint64_t)1 << 20)
#define GIB  ((uint64_t)1 << 30)
#define PAGE (2 * MIB)

static const struct ms_gpu *gpu;
static struct fake_context *context;

static void fresh(uint64_t capacity)
{
    gpu = fake_fresh(capacity);
    fake_policy.vmm = true;
    context = fake_context(0);
    fake_set_current(context);
}

static int status_of(uint64_t bytes, uint64_t *address_p)
{
    struct ms_pool_block block = {0};
    int status = 0;
    enum ms_pool_verdict verdict = ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, &block, &status);
    *address_p = verdict == MS_POOL_SERVED ? block.address : 0;
    return verdict == MS_POOL_SERVED ? 0 : verdict == MS_POOL_PASSED ? -1 : status;
}

static uint64_t take(uint64_t bytes)
{
    uint64_t address;
    status_of(bytes, &address);
    return address;
}

static void sound(const char *when)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", when, wrong ? ": " : "", wrong ? wrong : "");
    is_u64(fake.vmm_errors, 0, "%s: the driver is used as it may be", when);
    is_u64(fake.blocking_frees, 0, "%s: nothing is unmapped while the device is busy", when);
}

static void end_context(const char *when)
{
    ms_pool_context_ending((uintptr_t)context);
    fake_kill(context);
    ms_pool_context_ended((uintptr_t)context, true);
    ok(!fake.handles && !fake.ranges && !fake.used[0] && !fake_segments,
       "%s: the context takes handles, addresses and segments with it", when);
}

/* What the tests rely on: the driver of theirs refuses what the vendor's does. */
static void test_driver(void)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc desc = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle long_one = 0, short_one = 0;
    CUdeviceptr at = 0;
    fresh(GIB);
    ok(!gpu->address_reserve(&at, 8 * PAGE, PAGE, 0, 0) &&
           !gpu->handle_create(&long_one, 3 * PAGE, &prop, 0) &&
           !gpu->handle_create(&short_one, PAGE, &prop, 0),
       "driver: addresses, a handle of three pages and one of one");
    is_int(gpu->handle_map(at, 2 * PAGE, 0, long_one, 0), CUDA_ERROR_INVALID_VALUE,
           "driver: none is mapped in part");
    is_int(gpu->handle_map(at, 3 * PAGE, PAGE, long_one, 0), CUDA_ERROR_INVALID_VALUE,
           "driver: nor from within");
    ok(!gpu->handle_map(at, 3 * PAGE, 0, long_one, 0) &&
           !gpu->handle_map(at + 3 * PAGE, PAGE, 0, short_one, 0),
       "driver: they are mapped beside each other");
    is_int(gpu->set_access(at, 4 * PAGE, &desc, 1), 0, "driver: access is set for both at once");
    is_int(gpu->set_access(at, 2 * PAGE, &desc, 1), CUDA_ERROR_INVALID_VALUE,
           "driver: not for the begin of one");
    is_int(gpu->set_access(at + PAGE, 3 * PAGE, &desc, 1), CUDA_ERROR_INVALID_VALUE,
           "driver: nor for its end");
    is_int(gpu->set_access(at, 5 * PAGE, &desc, 1), CUDA_ERROR_INVALID_VALUE,
           "driver: nor for what is not mapped");
    is_int(gpu->handle_unmap(at + 2 * PAGE, PAGE), CUDA_ERROR_INVALID_VALUE,
           "driver: an end is not unmapped");
    is_int(gpu->handle_unmap(at, PAGE), CUDA_ERROR_INVALID_VALUE, "driver: nor a begin");
    is_u64(fake.vmm_errors, 4, "driver: and all of that is counted, but access");
    ok(!gpu->handle_unmap(at, 3 * PAGE) && !gpu->handle_unmap(at + 3 * PAGE, PAGE) &&
           !gpu->handle_release(long_one) && !gpu->handle_release(short_one) &&
           !gpu->address_free(at, 8 * PAGE) && !fake.used[0],
       "driver: handle by handle all of it goes back");
}

static void test_growth(void)
{
    fresh(GIB);
    uint64_t a = take(20 * MIB), b = take(30 * MIB);
    is_u64(b, a + 20 * MIB, "memory grows in place: the next block lies beside the first");
    is_u64(figures().reserved_bytes, 50 * MIB, "by no more than what is asked for");
    is_u64(fake_segments, 1, "to the observer it is one segment");
    give(a);
    give(b);
    uint64_t c = take(60 * MIB);
    is_u64(c, a, "both together and what is missing are a larger one");
    is_u64(figures().reserved_bytes, 60 * MIB, "for which 5 pages were made");
    is_u64(fake.calls[FAKE_CREATE], 30, "and no other");
    is_u64(fake.unmaps, 0, "nothing was moved");
    struct ms_pool_block block;
    ok(ms_pool_find(c, &block) && block.vmm && !block.whole && block.tier == MS_TIER_SINGLE,
       "a large block is no allocation of the driver's");
    uint64_t small = take(100);
    ok(small && (small < c || small > c + GIB), "small blocks lie elsewhere");
    sound("growth");
    end_context("growth");
}

/* Free pages that lie apart: the sum suffices, no single piece does. */
static int scattered(uint64_t *got_p)
{
    uint64_t blocks[32], got;
    for (int i = 0; i < 32; i++)
        blocks[i] = take(PAGE);
    for (int i = 0; i < 32; i += 2)
        give(blocks[i]);
    int status = status_of(24 * MIB, &got);
    *got_p = got;
    for (int i = 1; i < 32; i += 2) {
        struct ms_pool_block block;
        if (!ms_pool_find(blocks[i], &block) || block.address != blocks[i])
            return -2;
    }
    return status;
}

static void test_moving(void)
{
    uint64_t got;
    fresh(64 * MIB);
    fake_policy.vmm = false;
    fake_sizes.prealloc = 64 * MIB;
    is_int(scattered(&got), CUDA_ERROR_OUT_OF_MEMORY,
           "one allocation of the driver's, in pieces: no room for a large block");
    fresh(64 * MIB);
    is_int(scattered(&got), 0, "pages: 12 of those that lie apart are put together, and no live block moves");
    is_u64(fake.unmaps, 12, "by unmapping and mapping as many");
    is_u64(figures().reserved_bytes, 64 * MIB, "which were all there are");
    sound("moving");
    is_int(give(got), 0, "what they make is freed like any block");
    sound("moved and freed");
    end_context("moving");

    fresh(64 * MIB);
    fake_policy.oom_wait_ms = 0;
    uint64_t blocks[32];
    for (int i = 0; i < 32; i++)
        blocks[i] = take(PAGE);
    for (int i = 0; i < 32; i += 2)
        give(blocks[i]);
    fake_issue(context);
    is_int(status_of(24 * MIB, &got), CUDA_ERROR_OUT_OF_MEMORY,
           "while the device is busy nothing moves, and there is no memory");
    is_u64(fake.unmaps, 0, "nothing was unmapped");
    fake_finish(context);
    is_int(status_of(24 * MIB, &got), 0, "as soon as it is idle there is");
    sound("busy");
    end_context("busy");
}

/* What a block does not need of the free memory behind it is moved in front of that. */
static void test_behind(void)
{
    fresh(GIB);
    uint64_t a = take(20 * MIB), b = take(8 * MIB), c = take(20 * MIB), d = take(PAGE);
    ok(b == a + 20 * MIB && c == b + 8 * MIB && d == c + 20 * MIB, "behind: four lie in a row");
    give(b);
    is_u64(ms_pool_trim(0, 0), 8 * MIB, "behind: the second one's pages go back");
    give(a);
    give(c);
    uint64_t handles = fake.calls[FAKE_CREATE];
    is_u64(take(30 * MIB), a, "behind: a block takes its place, and more on either side");
    is_u64(fake.calls[FAKE_CREATE], handles, "behind: no page is made for it");
    is_u64(fake.unmaps, 8, "behind: as many are moved as had gone back");
    is_int(give(d), 0, "behind: what was in use stayed where it was");
    sound("behind");
    end_context("behind");
}

/* Whatever lies free lies otherwise in every round. */
static void test_habit(void)
{
    uint64_t blocks[32], seed = 5, got;
    fresh(GIB);
    for (int i = 0; i < 32; i++)
        blocks[i] = take(PAGE);
    for (int round = 0; round < 600; round++) {
        bool out[32] = {0};
        for (int i = 0; i < 16;) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            int k = (int)(seed >> 59);
            if (!out[k]) {
                give(blocks[k]);
                out[k] = true;
                i++;
            }
        }
        status_of(24 * MIB, &got);
        give(got);
        for (int i = 0; i < 32; i++)
            blocks[i] = out[i] ? take(PAGE) : blocks[i];
    }
    ok(fake.unmaps < 2000, "moving is not a habit: %" PRIu64 " pages in 600 rounds", fake.unmaps);
    ok(figures().reserved_bytes <= 160 * MIB, "for some memory more (%" PRIu64 " MiB)",
       figures().reserved_bytes / MIB);
    sound("habit");
    end_context("habit");
}

/* Where much is mapped and there is as much left, a handle is as long as what is missing. */
static void test_long_handles(void)
{
    fresh(8 * GIB);
    uint64_t most = take(GIB), creates = fake.calls[FAKE_CREATE], reserved = figures().reserved_bytes;
    ok(creates <= 17, "long: a gigabyte is %" PRIu64 " handles", creates);
    uint64_t a = take(33 * MIB), b = take(39 * MIB);
    is_u64(figures().reserved_bytes, reserved + 72 * MIB, "long: two blocks more, to the page");
    is_u64(fake.calls[FAKE_CREATE], creates + 3,
           "long: one handle each, and one for the page that they share");
    give(a);
    is_u64(ms_pool_trim(0, 0), 32 * MIB, "long: all pages that were the first one's alone go back");
    is_u64(fake.unmaps, 1, "long: by one call");
    give(b);
    is_u64(ms_pool_trim(0, 0), 40 * MIB, "long: and the others with the second");
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
    fresh(2 * GIB);
    uint64_t most = take(GIB);
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
    is_u64(figures().reserved_bytes, 2 * GIB, "long: all there is, is reserved");
    ok(give(most) == 0 && give(rest) == 0, "long: what was in use stayed where it was");
    sound("long, at the end");
    end_context("long, at the end");
}

static void test_long_captures(void)
{
    fresh(8 * GIB);
    take(GIB);
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
    fresh(8 * GIB);
    uint64_t most = take(GIB), a = take(33 * MIB), b = take(31 * MIB), calls;
    give(a);
    ms_pool_trim(0, 0);
    calls = fake.calls[FAKE_ACCESS];
    ms_pool_peer((uintptr_t)context, 1, true);
    is_u64(fake_access(most) & fake_access(most + GIB - PAGE) & fake_access(b) & fake_access(b + 30 * MIB), 3,
           "long: a peer is let to every page");
    is_u64(fake.calls[FAKE_ACCESS], calls + 2, "long: by one call for each stretch");
    uint64_t c = take(200 * MIB);
    is_u64(fake_access(c) & fake_access(c + 199 * MIB), 3, "long: and to what comes");
    ms_pool_peer((uintptr_t)context, 1, false);
    is_u64(fake_access(most) | fake_access(b) | fake_access(c + 199 * MIB), 1, "long: and no longer");
    sound("long, peers");
    end_context("long, peers");
}

static void test_limits(void)
{
    uint64_t got;
    fresh(GIB);
    is_int(status_of(2 * GIB, &got), CUDA_ERROR_OUT_OF_MEMORY, "more than there is");
    is_u64(figures().reserved_bytes, 0, "takes nothing first");
    fresh(GIB);
    fake_sizes.limit = 40 * MIB;
    is_int(status_of(30 * MIB, &got), 0, "within a limit");
    is_int(status_of(20 * MIB, &got), CUDA_ERROR_OUT_OF_MEMORY, "and beyond it");
    is_u64(figures().reserved_bytes, 30 * MIB, "is refused as a whole");
    fresh(GIB);
    fake_sizes.prealloc = 64 * MIB;
    fake_sizes.keep = 0;
    uint64_t a = take(4 * MIB);
    is_u64(figures().reserved_bytes, 64 * MIB, "what is preallocated is there with the first block");
    give(a);
    ms_pool_trim(0, 0);
    is_u64(figures().reserved_bytes, 64 * MIB, "and stays");
    a = take(100 * MIB);
    give(a);
    is_u64(ms_pool_trim(0, 0), 36 * MIB, "what came beyond it goes back");
    sound("limits");
    end_context("limits");
}

/* A graph may know what was in use while it was captured: no page of that is unmapped. */
static void test_captures(void)
{
    fresh(GIB);
    uint64_t a = take(8 * MIB), b = take(8 * MIB);
    give(b);
    ms_pool_capture_enter((uintptr_t)context);
    context->captures = 1;
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, true);
    uint64_t c = take(6 * MIB);
    ms_pool_graph_alive((uintptr_t)context, 1);
    ms_pool_capture_enter((uintptr_t)context);
    context->captures = 0;
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, false);
    give(a);
    give(c);
    uint64_t before = figures().reserved_bytes;
    ms_pool_trim(0, 0);
    ok(before - figures().reserved_bytes <= 8 * MIB,
       "what was in use during a capture keeps its pages (%" PRIu64 " MiB stay)",
       figures().reserved_bytes / MIB);
    ok(take(64 * MIB) && fake.unmaps <= 4, "and is not moved either");
    ms_pool_graph_alive((uintptr_t)context, -1);
    sound("captures");
    ms_pool_trim(0, 0);
    is_u64(figures().reserved_bytes, 64 * MIB, "without the graph it goes back");
    end_context("captures");
}

static void test_pins(void)
{
    fresh(64 * MIB);
    uint64_t a = take(30 * MIB), got;
    ok(ms_pool_pin(a), "a block that was registered");
    give(a);
    is_int(status_of(40 * MIB, &got), CUDA_ERROR_OUT_OF_MEMORY, "keeps its pages after its free");
    is_u64(fake.unmaps, 0, "and none was moved");
    ms_pool_unpin(a);
    is_int(status_of(40 * MIB, &got), 0, "until it is registered no more");
    sound("pins");
    end_context("pins");
}

static void test_peers(void)
{
    fresh(GIB);
    uint64_t a = take(10 * MIB);
    is_u64(fake_access(a), 1, "memory is its own device's");
    ms_pool_peer((uintptr_t)context, 1, true);
    is_u64(fake_access(a) & fake_access(a + 8 * MIB), 3, "a peer is let to what is there");
    uint64_t b = take(30 * MIB), c = take(100);
    is_u64(fake_access(b) & fake_access(b + 28 * MIB) & fake_access(c), 3, "and to what comes");
    ms_pool_peer((uintptr_t)context, 1, true);
    ms_pool_peer((uintptr_t)context, 1, false);
    is_u64(fake_access(a), 3, "as long as one of its contexts has access");
    ms_pool_peer((uintptr_t)context, 1, false);
    is_u64(fake_access(a) | fake_access(b) | fake_access(c), 1, "and no longer");
    sound("peers");
    struct fake_context *first = context;
    context = fake_context(0);
    fake_set_current(context);
    ms_pool_peer((uintptr_t)context, 1, true);
    uint64_t d = take(4 * MIB);
    is_u64(fake_access(d), 3, "access that was given before there was memory counts too");
    ms_pool_context_ending((uintptr_t)context);
    fake_kill(context);
    ms_pool_context_ended((uintptr_t)context, true);
    ok(!ms_pool_owns(d) && ms_pool_owns(a) && fake.ranges == 1,
       "a context ends, and the other one's memory is not touched");
    context = first;
    fake_set_current(first);
    end_context("peers");
}

static void test_without(void)
{
    uint64_t got;
    fresh(GIB);
    fake.fail_at = 1;
    fake.fail_status = CUDA_ERROR_OUT_OF_MEMORY;
    is_int(status_of(20 * MIB, &got), 0, "a driver without addresses");
    ok(fake.failed_call == FAKE_RESERVE, "which are asked for first");
    is_int(status_of(20 * MIB, &got), 0, "is asked for fewer");
    fresh(GIB);
    struct ms_gpu lacking = *gpu;
    lacking.handle_map = NULL;
    gpu = &lacking;
    is_int(status_of(20 * MIB, &got), 0, "a driver that cannot map at all");
    ok(fake.calls[FAKE_ALLOC] == 1 && !fake.ranges, "is asked for an allocation");
    ok(fake_notes == 1 && strstr(fake_last_note, "goes on as malloc"), "and one line says so: %s",
       fake_last_note);
    sound("without");
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
    test_driver();
    test_growth();
    test_moving();
    test_behind();
    test_habit();
    test_long_handles();
    test_long_at_the_end();
    test_long_captures();
    test_long_peers();
    test_limits();
    test_captures();
    test_pins();
    test_peers();
    test_without();
    test_failing_calls(CUDA_ERROR_OUT_OF_MEMORY, 0, "out of memory");
    test_failing_calls(CUDA_ERROR_NOT_SUPPORTED, 0, "not supported");
    test_failing_calls(CUDA_ERROR_INVALID_VALUE, 0, "invalid value");
    test_failing_calls(CUDA_ERROR_OUT_OF_MEMORY, GIB, "out of memory, long handles");
    test_failing_calls(CUDA_ERROR_INVALID_VALUE, GIB, "invalid value, long handles");
    test_threads(0, 200 * MIB, "threads");
    test_threads(GIB, 1700 * MIB, "threads, long handles");
    return done();
}
