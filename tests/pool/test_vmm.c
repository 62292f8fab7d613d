/* test_vmm.c - memory that is mapped by handle (MEMSHIM_BACKING=vmm): growth in place, pages that move, what
 * must not move, peers, a driver without, the end of a context. */
#include "config.h"

#include <string.h>

#include "vmm.h"

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
    ok(ms_pool_find(c, &block) && block.vmm && !block.whole && block.tier == MS_TIER_DEDICATED,
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

int main(void)
{
    plan(0);
    test_driver();
    test_growth();
    test_moving();
    test_behind();
    test_habit();
    test_limits();
    test_captures();
    test_pins();
    test_peers();
    test_without();
    return done();
}
