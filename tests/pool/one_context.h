/* one_context.h - the pool over the driver of fake.h with one context, and what a program calls and asks. One
 * test includes it. */
#ifndef MS_TESTS_POOL_ONE_CONTEXT_H
#define MS_TESTS_POOL_ONE_CONTEXT_H

#include "pool/stream/stream.h"
#include "tests/pool/calls.h"
#include "tests/tap.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const struct ms_gpu *gpu;
static struct fake_context *context;
static _Thread_local struct ms_pool_block latest; /* that take() was given */

static void fresh(uint64_t capacity)
{
    gpu = fake_fresh(capacity);
    context = fake_context(0);
    fake_set_current(context);
}

/* The pool's status; -1 if the driver is to answer. */
static int status_of(uint64_t bytes)
{
    int status = 0;
    enum ms_pool_verdict verdict =
        ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_ANYHOW, &latest, &status);
    return verdict == MS_POOL_SERVED ? 0 : verdict == MS_POOL_PASSED ? -1 : status;
}

/* 0 if there is none. */
static uint64_t take(uint64_t bytes)
{
    return status_of(bytes) == 0 ? latest.address : 0;
}

__attribute__((unused)) static void begin_capture(void)
{
    ms_pool_capture_enter((uintptr_t)context);
    context->captures = 1;
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, true);
}

__attribute__((unused)) static void end_capture(void)
{
    ms_pool_capture_enter((uintptr_t)context);
    context->captures = 0;
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, false);
}

__attribute__((unused)) static void end_stream(uint64_t stream)
{
    ms_pool_capture_enter((uintptr_t)context);
    ms_stream_ending((uintptr_t)context, stream);
    ms_pool_capture_leave((uintptr_t)context, stream, false);
}

static void sound(const char *when)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", when, wrong ? ", but " : "", wrong ? wrong : "");
}

#endif
