/* test_model.c - random requests and frees against a book that the test keeps itself.
 *
 * After each step the pool's own invariants are looked at, and the book says what the pool must not do: hand
 * out memory that is in use, or that work which was issued before its free may still touch. Under
 * MS_POOL_IMMEDIATE the book must catch exactly that. */
#include "config.h"

#include "fake.h"
#include "tests/tap.h"

#define MIB ((uint64_t)1 << 20)
enum { LIVE_MOST = 300, DEAD_KEPT = 4096 };

struct block {
    uint64_t address, bytes, granted;
    uint32_t record_id;
};

/* Memory that was freed while work was pending. */
struct dead {
    uint64_t address, bytes, target;
};

struct book {
    struct block live[LIVE_MOST];
    uint32_t live_count;
    struct dead dead[DEAD_KEPT];
    uint32_t dead_at;
    uint64_t seed, requested;
    uint64_t overlaps, early, misaligned, lies, refusals, served;
    char wrong[256];
    struct fake_context *context;
    const struct ms_gpu *gpu;
};

struct config {
    const char *name;
    uint64_t capacity, sizes, limit, prealloc, single_min;
    enum ms_pool_free_rule rule;
    enum ms_pool_pack pack;
    bool whole, captures, work, no_context_event, vmm;
    uint32_t steps;
};

static uint64_t next(struct book *b)
{
    b->seed ^= b->seed << 13;
    b->seed ^= b->seed >> 7;
    b->seed ^= b->seed << 17;
    return b->seed;
}

/* Sizes of every scale up to the largest, and some sizes again and again. */
static uint64_t size_of(struct book *b, uint64_t most)
{
    static const uint64_t favourites[] = {1,       512,     513,     4096,          65536,   65537,
                                          1000000, 1 << 20, 2 << 20, (2 << 20) + 1, 5 << 20, 16 << 20};
    if (next(b) % 3 == 0) {
        uint64_t size = favourites[next(b) % (sizeof(favourites) / sizeof(*favourites))];
        return size <= most ? size : most;
    }
    uint64_t bits = 64 - (uint64_t)__builtin_clzll(most), scale = (uint64_t)1 << next(b) % bits;
    uint64_t size = scale + next(b) % scale;
    return size <= most ? size : most;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static void look_at(struct book *b, const struct ms_pool_block *block, uint64_t bytes, const struct config *c)
{
    for (uint32_t i = 0; i < b->live_count; i++)
        b->overlaps += overlap(block->address, block->granted, b->live[i].address, b->live[i].granted);
    for (uint32_t i = 0; i < DEAD_KEPT; i++)
        b->early += b->dead[i].target > b->context->done &&
                    overlap(block->address, bytes, b->dead[i].address, b->dead[i].bytes);
    b->misaligned +=
        block->address % 512 != 0 || (bytes >= 2 * MIB && c->pack != MS_POOL_PACK_ALL &&
                                      block->address % (2 * MIB) != 0 && !(c->vmm && bytes % (2 * MIB)));
    b->lies += block->requested != bytes || block->granted < bytes ||
               block->address < block->segment_address ||
               block->address + block->granted > block->segment_address + block->segment_bytes;
}

static void allocate(struct book *b, const struct config *c)
{
    struct ms_pool_block block, found;
    int status = 0;
    uint64_t bytes = size_of(b, c->sizes);
    enum ms_pool_verdict verdict =
        ms_pool_alloc(b->gpu, (uintptr_t)b->context, 0, bytes, MS_POOL_ANYHOW, &block, &status);
    if (verdict != MS_POOL_SERVED) {
        b->refusals++;
        b->lies += verdict == MS_POOL_REFUSED && status != CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    b->served++;
    look_at(b, &block, bytes, c);
    uint32_t record_id = (uint32_t)next(b);
    ms_pool_set_record_id(&block, record_id);
    b->lies += !ms_pool_find(block.address + bytes - 1, &found) || found.address != block.address ||
               found.record_id != record_id || found.id != block.id;
    b->live[b->live_count++] = (struct block){block.address, bytes, block.granted, record_id};
    b->requested += bytes;
}

static void misuse(struct book *b)
{
    struct ms_pool_block block;
    int status = 0;
    const struct block *victim = &b->live[next(b) % b->live_count];
    b->lies += ms_pool_free_begin(victim->address + 1, MS_POOL_ANYHOW, &block, &status) != MS_POOL_REFUSED ||
               status != CUDA_ERROR_INVALID_VALUE;
    b->lies += ms_pool_free_begin((uint64_t)1 << 46, MS_POOL_ANYHOW, &block, &status) != MS_POOL_PASSED;
}

static void release(struct book *b, uint32_t i)
{
    struct ms_pool_block block;
    int status = 0;
    struct block victim = b->live[i];
    if (ms_pool_free_begin(victim.address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED) {
        b->lies++;
        return;
    }
    b->lies += block.requested != victim.bytes || block.record_id != victim.record_id ||
               block.granted != victim.granted;
    b->lies += ms_pool_find(victim.address, &block) && block.address == victim.address;
    struct ms_pool_block again;
    b->lies += ms_pool_free_begin(victim.address, MS_POOL_ANYHOW, &again, &status) != MS_POOL_REFUSED;
    b->lies += ms_pool_free_end(&block) != CUDA_SUCCESS;
    b->live[i] = b->live[--b->live_count];
    b->dead[b->dead_at++ % DEAD_KEPT] = (struct dead){victim.address, victim.bytes, b->context->issued};
    b->requested -= victim.bytes;
}

static void step(struct book *b, const struct config *c)
{
    uint64_t what = next(b) % 100;
    if (c->work && what < 20)
        fake_issue(b->context);
    if (c->work && what % 50 == 3)
        fake_finish(b->context);
    if (what == 99) {
        uint64_t mark = ms_pool_sync_begin((uintptr_t)b->context);
        fake_finish(b->context);
        ms_pool_sync_end((uintptr_t)b->context, mark, 0);
    }
    if (c->captures && what == 98) {
        int change = b->context->captures ? -1 : 1;
        ms_pool_capture_enter((uintptr_t)b->context);
        b->context->captures += change;
        ms_pool_capture_leave((uintptr_t)b->context, A_STREAM, change > 0);
    }
    if (what == 97)
        ms_pool_trim(0, next(b) % (64 * MIB));
    bool full = b->live_count == LIVE_MOST || next(b) % 1000 < 3;
    if (full)
        for (uint32_t i = b->live_count / 2; i-- > 0;)
            release(b, (uint32_t)(next(b) % b->live_count));
    else if (b->live_count && next(b) % 100 < 45)
        release(b, (uint32_t)(next(b) % b->live_count));
    else
        allocate(b, c);
    if (b->live_count && what == 42)
        misuse(b);
}

static void check(struct book *b)
{
    struct ms_pool_figures f;
    const char *wrong = ms_pool_check();
    if (wrong && !b->wrong[0])
        snprintf(b->wrong, sizeof(b->wrong), "%s", wrong);
    ms_pool_figures(0, &f);
    if (f.parts.requested != b->requested && !b->wrong[0])
        snprintf(b->wrong, sizeof(b->wrong), "requested %" PRIu64 ", the book has %" PRIu64,
                 f.parts.requested, b->requested);
    if (f.reserved_bytes > fake.used[0] && !b->wrong[0])
        snprintf(b->wrong, sizeof(b->wrong), "reserved %" PRIu64 ", the driver gave %" PRIu64,
                 f.reserved_bytes, fake.used[0]);
}

static struct book *run(const struct config *c, uint64_t seed)
{
    struct book *b = calloc(1, sizeof(*b));
    b->gpu = fake_fresh(c->capacity ? c->capacity : (uint64_t)1 << 40);
    if (c->no_context_event)
        b->gpu = fake_start(c->capacity ? c->capacity : (uint64_t)1 << 40, false);
    fake_policy.vmm = c->vmm;
    fake_policy.free_rule = c->rule;
    fake_policy.pack = c->pack;
    fake_policy.export_whole = c->whole;
    fake_policy.oom_wait_ms = 0;
    fake_sizes.limit = c->limit ? c->limit : UINT64_MAX;
    fake_sizes.prealloc = c->prealloc;
    fake_sizes.single_min = c->single_min ? c->single_min : 16 * MIB;
    fake_sizes.keep = 64 * MIB;
    fake.moves = c->rule == MS_POOL_STRICT; /* whoever waits looks at it */
    b->context = fake_context(0);
    b->seed = seed;
    fake_set_current(b->context);
    for (uint32_t i = 0; i < c->steps && !b->wrong[0]; i++) {
        step(b, c);
        check(b);
    }
    return b;
}

static const struct config configs[] = {
    {.name = "small blocks", .sizes = 64 << 10, .steps = 6000},
    {.name = "all scales", .sizes = 64 << 20, .steps = 6000},
    {.name = "all scales, work pending", .sizes = 64 << 20, .steps = 6000, .work = true},
    {.name = "small blocks, work pending", .sizes = 256 << 10, .steps = 6000, .work = true},
    {.name = "captures", .sizes = 8 << 20, .steps = 6000, .work = true, .captures = true},
    {.name = "little memory", .sizes = 32 << 20, .capacity = 512 << 20, .steps = 6000, .work = true},
    {.name = "hardly any memory", .sizes = 4 << 20, .capacity = 64 << 20, .steps = 6000},
    {.name = "a limit", .sizes = 32 << 20, .limit = 300 << 20, .steps = 6000},
    {.name = "preallocation", .sizes = 32 << 20, .prealloc = 256 << 20, .steps = 6000, .work = true},
    {.name = "strict", .sizes = 32 << 20, .rule = MS_POOL_STRICT, .steps = 4000, .work = true},
    {.name = "pack all", .sizes = 64 << 20, .pack = MS_POOL_PACK_ALL, .steps = 6000, .work = true},
    {.name = "pack none", .sizes = 4 << 20, .pack = MS_POOL_PACK_NONE, .steps = 4000, .work = true},
    {.name = "whole for export", .sizes = 4 << 20, .whole = true, .steps = 4000},
    {.name = "singles from 2 MiB", .sizes = 16 << 20, .single_min = 2 << 20, .steps = 6000, .work = true},
    {.name = "no event over a context",
     .sizes = 8 << 20,
     .no_context_event = true,
     .steps = 6000,
     .work = true},
    {.name = "vmm, small blocks", .vmm = true, .sizes = 256 << 10, .steps = 4000, .work = true},
    {.name = "vmm, all scales", .vmm = true, .sizes = 64 << 20, .steps = 6000},
    {.name = "vmm, work pending", .vmm = true, .sizes = 64 << 20, .steps = 6000, .work = true},
    {.name = "vmm, captures", .vmm = true, .sizes = 8 << 20, .steps = 6000, .work = true, .captures = true},
    {.name = "vmm, little memory",
     .vmm = true,
     .sizes = 32 << 20,
     .capacity = 512 << 20,
     .steps = 6000,
     .work = true},
    {.name = "vmm, hardly any memory", .vmm = true, .sizes = 4 << 20, .capacity = 64 << 20, .steps = 6000},
    {.name = "vmm, a limit", .vmm = true, .sizes = 32 << 20, .limit = 300 << 20, .steps = 6000},
    {.name = "vmm, preallocation",
     .vmm = true,
     .sizes = 32 << 20,
     .prealloc = 256 << 20,
     .steps = 6000,
     .work = true},
    {.name = "vmm, pack none",
     .vmm = true,
     .sizes = 4 << 20,
     .pack = MS_POOL_PACK_NONE,
     .steps = 2000,
     .work = true},
};

/* A context that ends takes its allocations with it, but no handles. */
static void look_at_the_end(struct book *b, const struct config *c)
{
    ms_pool_context_ending((uintptr_t)b->context);
    fake_kill(b->context);
    ms_pool_context_ended((uintptr_t)b->context, true);
    ok(fake.vmm_errors == 0 && (fake.unmaps > 0 || c->pack == MS_POOL_PACK_NONE),
       "%s: %" PRIu64 " mappings, and none is made or undone as it may not be", c->name, fake.unmaps);
    ok(fake.handles == 0 && fake.ranges == 0 && fake.used[0] == 0,
       "%s: when the context is gone, so are its handles and addresses", c->name);
    ok(!fake_segments && !ms_pool_check(), "%s: and nobody knows of them", c->name);
}

static void test_config(const struct config *c, uint64_t seed)
{
    struct book *b = run(c, seed);
    ok(!b->wrong[0], "%s: every invariant holds after each step%s%s", c->name, b->wrong[0] ? ": " : "",
       b->wrong);
    ok(b->overlaps == 0 && b->early == 0,
       "%s: no block overlaps another, or work that was issued before its free", c->name);
    ok(b->misaligned == 0 && b->lies == 0, "%s: alignment, sizes, tickets and answers to misuse are right",
       c->name);
    ok(b->served > 100, "%s: %" PRIu64 " served, %" PRIu64 " refused", c->name, b->served, b->refusals);
    ok(fake.destroyed_captures == 0 && fake.unknown_frees == 0 && fake.wrong_context == 0,
       "%s: the driver is used as it may be", c->name);
    ok(fake.small_allocs == 0 && fake.calls[FAKE_SYNC] == 0, "%s: nothing waits for the device", c->name);
    ok(fake.loud_calls == 0, "%s: no call could destroy another thread's capture", c->name);
    ok(fake.blocking_frees == 0, "%s: memory goes back only where the driver does not wait", c->name);
    if (c->vmm)
        look_at_the_end(b, c);
    if (b->lies || b->overlaps || b->early || b->misaligned)
        diag("seed %" PRIu64 ": lies %" PRIu64 ", overlaps %" PRIu64 ", early %" PRIu64
             ", misaligned %" PRIu64,
             seed, b->lies, b->overlaps, b->early, b->misaligned);
    free(b);
}

int main(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261;
    plan(0);
    for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++)
        test_config(&configs[i], seed + i);

    struct config immediate = {
        .name = "immediate", .sizes = 256 << 10, .rule = MS_POOL_IMMEDIATE, .steps = 4000, .work = true};
    struct book *b = run(&immediate, seed);
    ok(!b->wrong[0], "immediate: every invariant holds all the same %s", b->wrong);
    ok(b->early > 0, "immediate: the book catches blocks that are used again too early (%" PRIu64 " times)",
       b->early);
    free(b);
    return done();
}
