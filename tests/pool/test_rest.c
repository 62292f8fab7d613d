/* test_rest.c - what goes back when the program has rested: of contexts, while nothing is under way. */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "pool/external/external.h"
#include "pool/api/internal.h"
#include "tests/pool/one_context.h"

enum { LIVE = 16, IDLE = 40 };

static uint64_t live[LIVE], idle[IDLE];

static uint64_t most(uint64_t requested)
{
    return requested + requested / 4 + 64 * MIB;
}

/* Blocks of 4 MiB that stay, and of `bytes` that went. */
static void fill(uint64_t bytes)
{
    for (int i = 0; i < IDLE; i++)
        idle[i] = take(bytes);
    for (int i = 0; i < LIVE; i++)
        live[i] = take(4 * MIB);
    for (int i = 0; i < IDLE; i++)
        give(idle[i]);
}

static void test_rested(uint64_t bytes, bool vmm)
{
    char what[40];
    snprintf(what, sizeof what, "%llu MiB%s", (unsigned long long)(bytes / MIB), vmm ? ", by handle" : "");
    fresh(8 * GIB);
    fake_policy.vmm = vmm;
    fake_issue(context);
    fill(bytes);
    ms_pool_rested();
    ok(figures().reserved_bytes >= IDLE * bytes, "%s: nothing goes back while the device is at work", what);
    fake_finish(context);
    ms_pool_rested();
    struct ms_pool_figures f = figures();
    ok(f.reserved_bytes <= most(f.parts.requested),
       "%s: then no more stays than a quarter of what is live and 64 MiB (%llu MiB)", what,
       (unsigned long long)(f.reserved_bytes / MIB));
    is_u64(fake.blocking_frees, 0, "%s: and nobody waited", what);
    uint64_t calls = figures().vendor_frees;
    ms_pool_rested();
    is_u64(figures().vendor_frees, calls, "%s: a second rest finds nothing to do", what);
    sound(what);
    fake_policy.vmm = false;
}

static void test_keep(void)
{
    fresh(8 * GIB);
    fake_sizes.keep = 512 * MIB;
    fake_policy.keep_is_set = true;
    fill(32 * MIB);
    ms_pool_rested();
    struct ms_pool_figures f = figures();
    ok(f.reserved_bytes <= most(f.parts.requested) + 512 * MIB && f.reserved_bytes >= 512 * MIB,
       "what MEMSHIM_KEEP allows stays as well, where it is set");
    fake_policy.keep_is_set = false;
}

static void test_captured(void)
{
    fresh(8 * GIB);
    fill(32 * MIB);
    ms_pool_capture_enter((uintptr_t)context);
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, true);
    ms_pool_rested();
    ok(figures().reserved_bytes >= IDLE * 32 * MIB, "nothing goes back while a capture is open");
    is_u64(fake.destroyed_captures, 0, "which is not harmed");
    ms_pool_capture_enter((uintptr_t)context);
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, false);
}

static struct fake_context *at_work;
static int asked;

static void finish_when_asked_again(void)
{
    if (++asked == 2)
        fake_finish(at_work);
}

/* An event of an idle device is not over at once. */
static void test_moment(void)
{
    fresh(8 * GIB);
    fill(32 * MIB);
    at_work = context;
    asked = 0;
    fake_issue(context);
    ms_fence_poll(latest.own_heap); /* of what came before nothing is left to be asked about */
    fake_on_query = finish_when_asked_again;
    ms_pool_rested();
    fake_on_query = NULL;
    struct ms_pool_figures f = figures();
    ok(f.reserved_bytes <= most(f.parts.requested), "an event that is over a moment later counts");
    is_u64(fake.blocking_frees, 0, "and nobody waited");
}

/* Two contexts share what may stay on their device. */
static void test_two(void)
{
    fresh(8 * GIB);
    struct fake_context *first = context;
    fill(32 * MIB);
    context = fake_context(0);
    fake_set_current(context);
    for (int i = 0; i < IDLE; i++)
        idle[i] = take(32 * MIB);
    for (int i = 0; i < IDLE; i++)
        give(idle[i]);
    ms_pool_rested();
    struct ms_pool_figures f = figures();
    ok(f.reserved_bytes <= most(f.parts.requested),
       "what may stay is one amount for all contexts of a device");
    context = first;
    fake_set_current(context);
}

/* --- another library's buffers --- */

static uint64_t next_buffer = (uint64_t)1 << 46;

static int make_buffer(uint64_t bytes, uint64_t *address_p)
{
    *address_p = next_buffer;
    next_buffer += bytes;
    return 0;
}

static int unmake_buffer(uint64_t address)
{
    (void)address;
    return 0;
}

/* They are what is live here, and what is kept. */
static void test_buffers(void)
{
    static const struct ms_external_source source = {make_buffer, unmake_buffer};
    struct ms_external_block blocks[IDLE];
    int status = 0, made = 0;
    fresh(8 * GIB);
    give(take(MIB));
    struct ms_external_request request = {
        .source = &source, .gpu = gpu, .context = (uintptr_t)context, .device = 0};
    request.requested = request.granted = 16 * MIB;
    for (int i = 0; i < IDLE; i++)
        made += ms_external_make(&request, &blocks[i], &status);
    is_int(made, IDLE, "another library makes %d buffers of 16 MiB", IDLE);
    for (int i = 0; i < IDLE / 2; i++) {
        ms_external_free_begin(blocks[i].address, &blocks[i]);
        ms_external_free_end(&blocks[i], gpu, (uintptr_t)context);
    }
    ms_pool_rested();
    struct ms_pool_figures f = figures();
    ok(f.reserved_bytes <= most(f.parts.requested),
       "what is kept of those that were freed is bounded too (%llu MiB)",
       (unsigned long long)(f.reserved_bytes / MIB));
    ok(f.reserved_bytes > most(f.parts.requested) - 16 * MIB,
       "by a quarter of what others' buffers have live, and 64 MiB");
}

/* The clock notices that nobody asked, and that the one who asks was waiting. */
static void test_clock(void)
{
    static _Atomic uint32_t word;
    ms_clock_start();
    ms_clock_ns();
    ms_clock_tell_rests(&word, 4);
    ms_clock_sleep(20000000);
    ms_clock_ns();
    is_u64(word, 0, "a moment is no rest");
    ms_clock_sleep(1100000000);
    ms_clock_no_rest();
    ms_clock_ns();
    is_u64(word, 0, "nor is a wait");
    ms_clock_sleep(1100000000);
    ms_clock_ns();
    is_u64(word, 4, "a second is");
}

int main(void)
{
    plan(0);
    test_rested(32 * MIB, false);
    test_rested(8 * MIB, false);
    test_rested(2 * MIB, false);
    test_rested(32 * MIB, true);
    test_rested(5 * MIB, true);
    test_keep();
    test_captured();
    test_moment();
    test_two();
    test_buffers();
    test_clock();
    return done();
}
