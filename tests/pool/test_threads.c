/* test_threads.c - many threads in the pool at once, blocks that pass between them, and contexts that end
 * meanwhile.
 *
 * Each thread owns what it holds: it writes its number into a map of the blocks' addresses and must find it
 * there again, so a block that two threads hold is caught. Under ThreadSanitizer the test also looks for
 * races. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fake.h"
#include "pool/api/internal.h"
#include "tests/tap.h"

enum { THREADS = 8, HELD = 64, SHELF = 256, OWNERS = 1 << 20 };

static const struct ms_gpu *gpu;
static struct fake_context *contexts[2];
static _Atomic uint32_t
    owners[OWNERS]; /* by address / 512, modulo: collisions are told apart by the address itself */
static _Atomic uint64_t owner_addresses[OWNERS];
static _Atomic uint64_t twice, lost, served, refused;
static _Atomic(uint64_t) shelf[SHELF]; /* blocks that others may free */
static uint32_t rounds;

static void hold(uint64_t address, uint32_t thread)
{
    uint64_t at = address / 512 % OWNERS, nobody = 0;
    if (atomic_compare_exchange_strong(&owner_addresses[at], &nobody, address))
        atomic_store(&owners[at], thread);
    else if (nobody == address)
        atomic_fetch_add(&twice, 1);
}

static void let_go(uint64_t address)
{
    uint64_t at = address / 512 % OWNERS, ours = address;
    atomic_compare_exchange_strong(&owner_addresses[at], &ours, 0);
}

static void release(uint64_t address)
{
    struct ms_pool_block block;
    int status = 0;
    let_go(address);
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED ||
        ms_pool_free_end(&block) != 0)
        atomic_fetch_add(&lost, 1);
}

static void *worker(void *arg)
{
    uint32_t thread = (uint32_t)(uintptr_t)arg;
    uint64_t seed = thread * 977 + 12345, held[HELD] = {0};
    struct fake_context *context = contexts[thread % 2];
    fake_set_current(context);
    for (uint32_t i = 0; i < rounds; i++) {
        struct ms_pool_block block;
        int status = 0;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t at = (uint32_t)(seed >> 40) % HELD;
        if (held[at]) {
            if (seed >> 33 & 1) {
                release(held[at]);
            } else {
                uint64_t other = atomic_exchange(&shelf[(seed >> 20) % SHELF], held[at]);
                if (other)
                    release(other);
            }
            held[at] = 0;
        }
        uint64_t bytes = (uint64_t)1 << (seed >> 50) % 23;
        if (ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_ANYHOW, &block, &status) ==
            MS_POOL_SERVED) {
            held[at] = block.address;
            hold(block.address, thread);
            atomic_fetch_add(&served, 1);
        } else {
            atomic_fetch_add(&refused, 1);
        }
        if (i % 512 == 7) {
            fake_issue(context);
            struct ms_pool_figures f;
            ms_pool_figures(0, &f);
        }
        if (i % 512 == 300) {
            uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
            fake_finish(context);
            ms_pool_sync_end((uintptr_t)context, mark, 0);
        }
    }
    for (uint32_t i = 0; i < HELD; i++)
        if (held[i])
            release(held[i]);
    return NULL;
}

static void run_threads(void *(*function)(void *), uint32_t count)
{
    pthread_t threads[THREADS + 2];
    for (uintptr_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, function, (void *)(i + 1));
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* --- the pool stands still, in the middle of it all --- */

struct seen {
    uint64_t segments, live, pending, pinned, end, address;
    bool gaps;
};

static void see(void *arg, const struct ms_piece_record *piece)
{
    struct seen *seen = arg;
    if (piece->segment->address != seen->address) {
        seen->segments += piece->segment->bytes;
        seen->gaps |= seen->address && seen->end != 0;
        seen->address = piece->segment->address;
        seen->end = piece->segment->bytes;
    }
    seen->end -= piece->bytes; /* what is left of the segment */
    seen->live += piece->state == MS_PIECE_LIVE ? piece->requested : 0;
    seen->pending += piece->state == MS_PIECE_PENDING ? piece->bytes : 0;
    seen->pinned += piece->state == MS_PIECE_PINNED ? piece->bytes : 0;
}

/* Out of the pending list, and not yet the program's: its thread may be anywhere between two locks. */
static void test_on_its_way(void)
{
    const struct ms_request request = {
        .requested = MS_MIB, .granted = MS_MIB, .align = MS_STEP_BYTES, .class_index = MS_NO_CLASS};
    struct fake_context *context;
    struct ms_pool_block block;
    struct ms_pool_figures f;
    struct seen seen = {0};
    int status = 0;
    gpu = fake_fresh((uint64_t)2 << 30);
    context = fake_context(0);
    fake_set_current(context);
    ok(ms_pool_alloc(gpu, (uintptr_t)context, 0, MS_MIB, MS_POOL_ANYHOW, &block, &status) == MS_POOL_SERVED,
       "a block is served");
    fake_issue(context);
    release(block.address);
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    fake_finish(context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
    struct ms_slot *slot = ms_fallback_from_heap(block.own_heap, &request);
    ok(slot && ms_slot_address(slot) == block.address, "freed and over, it comes out of limbo");
    ms_pool_figures(0, &f);
    ms_pool_walk(see, &seen);
    is_u64(f.parts.pending, 0, "where no figure counts it");
    is_u64(seen.pending, 0, "nor any piece");
    struct ms_cache *cache = &((struct ms_heap *)block.own_heap)->cache;
    struct ms_tcache *tcache = ms_tcache_lock(cache);
    ms_tcache_put_ready(cache, tcache, slot);
    ms_tcache_unlock(tcache);
}

static atomic_bool over;
static _Atomic uint32_t stops, differences;

/* As often as it gets to it; `over` ends it, but not before the first time. */
static void *stopper(void *arg)
{
    const struct timespec pause = {0, 200000};
    (void)arg;
    do {
        struct ms_pool_figures f, again;
        struct seen seen = {0};
        if (!ms_pool_stop(10000))
            continue;
        ms_pool_figures(0, &f);
        ms_pool_walk(see, &seen);
        ms_pool_figures(0, &again);
        const struct ms_parts *p = &f.parts;
        uint64_t sum = p->requested + p->rounding + p->pending + p->cached + p->stranded + p->pinned;
        bool same = f.reserved_bytes == again.reserved_bytes && f.served_allocs == again.served_allocs &&
                    p->pending == again.parts.pending;
        bool right = !seen.gaps && seen.end == 0 && seen.segments == f.reserved_bytes &&
                     seen.live == p->requested && seen.pending == p->pending && seen.pinned == p->pinned &&
                     sum == f.reserved_bytes && f.reserved_bytes <= f.peak_reserved_bytes;
        ms_pool_go();
        atomic_fetch_add(&stops, 1);
        atomic_fetch_add(&differences, !same || !right);
        nanosleep(&pause, NULL);
    } while (!atomic_load(&over) || !atomic_load(&stops));
    return NULL;
}

static void *try_to_stop(void *arg)
{
    *(bool *)arg = ms_pool_stop(1);
    return NULL;
}

static void test_stop_is_bounded(void)
{
    bool second = true;
    pthread_t thread;
    ok(ms_pool_stop(10000), "the pool can be stopped when nobody is in it");
    ok(!ms_pool_stop(10000), "not twice");
    pthread_create(&thread, NULL, try_to_stop, &second);
    pthread_join(thread, NULL);
    ok(!second, "nor by another thread, which does not wait for that");
    ms_pool_go();
    struct ms_heap *heap = ms_heaps[0];
    ms_lock(&heap->lock);
    second = true;
    pthread_create(&thread, NULL, try_to_stop, &second);
    pthread_join(thread, NULL);
    ms_unlock(&heap->lock);
    ok(!second, "where somebody keeps a lock it is given up");
    ok(ms_pool_stop(10000), "and then everything was let go");
    ms_pool_go();
}

static void test_sharing(void)
{
    pthread_t stopping;
    gpu = fake_fresh((uint64_t)2 << 30);
    contexts[0] = fake_context(0);
    contexts[1] = fake_context(0);
    pthread_create(&stopping, NULL, stopper, NULL);
    run_threads(worker, THREADS);
    atomic_store(&over, true);
    pthread_join(stopping, NULL);
    ok(atomic_load(&stops) > 0 && atomic_load(&differences) == 0,
       "each of %u times that the pool was stopped its figures and its pieces were of one moment (%u were "
       "not)",
       atomic_load(&stops), atomic_load(&differences));
    test_stop_is_bounded();
    for (uint32_t i = 0; i < SHELF; i++) {
        uint64_t left = atomic_exchange(&shelf[i], 0);
        if (left)
            release(left);
    }
    struct ms_pool_figures f;
    ms_pool_figures(0, &f);
    const char *wrong = ms_pool_check();
    ok(!wrong, "every invariant holds once all threads are gone %s", wrong ? wrong : "");
    ok(atomic_load(&twice) == 0, "no block was held by two threads");
    ok(atomic_load(&lost) == 0, "every block could be freed, by whichever thread");
    is_u64(f.parts.requested, 0, "nothing is live at the end");
    is_u64(f.served_allocs, atomic_load(&served), "every allocation was counted");
    is_u64(f.served_frees, atomic_load(&served), "every free was counted");
    is_u64(fake.calls[FAKE_SYNC], 0, "nothing waited for the device");
}

/* Contexts come and go; each thread has its own, and some free what is no more. */
static void *mortal(void *arg)
{
    uint64_t seed = (uintptr_t)arg;
    for (uint32_t life = 0; life < 30; life++) {
        struct fake_context *context = fake_context((int)((uintptr_t)arg % 3));
        struct ms_pool_block blocks[40], again;
        uint32_t count = 0;
        int status = 0;
        fake_set_current(context);
        for (uint32_t i = 0; i < 40; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t bytes = (uint64_t)1 << (seed >> 50) % 25;
            if (ms_pool_alloc(gpu, (uintptr_t)context, context->device, bytes, MS_POOL_ANYHOW, &blocks[count],
                              &status) == MS_POOL_SERVED)
                count++;
            if (i % 3 == 0 && count &&
                ms_pool_free_begin(blocks[count - 1].address, MS_POOL_ANYHOW, &again, &status) ==
                    MS_POOL_SERVED) {
                ms_pool_free_end(&again);
                count--;
            }
        }
        struct ms_pool_block halfway;
        bool half = count && ms_pool_free_begin(blocks[0].address, MS_POOL_ANYHOW, &halfway, &status) ==
                                 MS_POOL_SERVED;
        ms_pool_context_ending((uintptr_t)context);
        if (ms_pool_alloc(gpu, (uintptr_t)context, context->device, 100, MS_POOL_ANYHOW, &again, &status) !=
            MS_POOL_PASSED)
            atomic_fetch_add(&lost, 1);
        fake_kill(context);
        ms_pool_context_ended((uintptr_t)context, true);
        if (half)
            ms_pool_free_end(&halfway);
        fake_set_current(NULL);
    }
    return NULL;
}

static void test_deaths(void)
{
    gpu = fake_fresh((uint64_t)64 << 30);
    atomic_store(&lost, 0);
    run_threads(mortal, THREADS);
    struct ms_pool_figures f;
    const char *wrong = ms_pool_check();
    ok(!wrong, "every invariant holds after contexts died %s", wrong ? wrong : "");
    for (int device = 0; device < 3; device++) {
        ms_pool_figures(device, &f);
        is_u64(f.reserved_bytes, 0, "device %d: nothing is reserved when its contexts are gone", device);
        ok(f.served_allocs > 0 && f.peak_reserved_bytes > 0, "device %d: what they did is still counted",
           device);
    }
    is_u64(fake_segments, 0, "the observer heard of the end of every segment");
    is_u64(atomic_load(&lost), 0, "a context that ends is not served");
    is_u64(fake.unknown_frees, 0, "the driver was asked for nothing that died with its context");
}

/* The driver may give the memory of a context to somebody else before its end is known here. */
static void *end_slowly(void *arg)
{
    const struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    fake_kill(arg);
    ms_pool_context_ended((uintptr_t)arg, true);
    return NULL;
}

static int answered_too_early(void)
{
    gpu = fake_fresh((uint64_t)64 << 30);
    int status = 0, wrong = 0;
    for (int i = 0; i < 4; i++) {
        struct fake_context *context = fake_context(0);
        struct ms_pool_block block;
        pthread_t thread;
        fake_set_current(context);
        if (ms_pool_alloc(gpu, (uintptr_t)context, 0, 1000, MS_POOL_ANYHOW, &block, &status) !=
            MS_POOL_SERVED)
            bail("nothing is served");
        uint64_t address = block.address;
        ms_pool_context_ending((uintptr_t)context);
        if (pthread_create(&thread, NULL, end_slowly, context))
            bail("no thread");
        if (i < 2)
            wrong += i == 0 ? ms_pool_owns(address) : ms_pool_find(address, &block);
        else /* the block, and what is none */
            wrong += ms_pool_free_begin(address + (uint64_t)(i - 2) * 256, MS_POOL_ANYHOW, &block, &status) !=
                     MS_POOL_PASSED;
        pthread_join(thread, NULL);
        fake_set_current(NULL);
    }
    return wrong;
}

/* Nobody waits for ever: a machine that stands still for a fifth of a second gets another chance. */
static void test_end_is_awaited(void)
{
    int wrong = 1;
    for (int i = 0; i < 3 && wrong; i++)
        wrong = answered_too_early();
    is_int(wrong, 0, "what is asked about memory of a context that ends is answered when it has ended");
}

int main(void)
{
    const char *text = getenv("TEST_ROUNDS");
    rounds = text ? (uint32_t)strtoul(text, NULL, 0) : 20000;
    plan(0);
    test_on_its_way();
    test_sharing();
    test_deaths();
    test_end_is_awaited();
    return done();
}
