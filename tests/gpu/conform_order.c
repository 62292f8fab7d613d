/*
 * conform_order.c: the order of work in streams and between them, and what streams and events answer
 * meanwhile.
 */
#include "conform.h"

#include <pthread.h>
#include <stdlib.h>

#define STILL_MS 400
#define SOON_MS  5000
#define BYTES    (256 * KIT_KIB)

/* While one stream is held: whether work of the other gets done. */
static void passes(const char *name, CUstream held, CUstream other)
{
    struct kit_hold hold;
    CUdeviceptr d = conform_get(4096);

    kit_must(kit_hold(&hold, held));
    kit_must(kit_fill(d, 1, 4, other));
    bool over = kit_over(other, STILL_MS);
    say_yes(name, over);
    kit_release(&hold);
    kit_must(cuStreamSynchronize(held));
    kit_must(cuStreamSynchronize(other));
    kit_must(cuMemFree_v2(d));
}

static void between_streams(void)
{
    CUstream blocking, blocking2, one, two;

    kit_must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    kit_must(cuStreamCreate(&blocking2, CU_STREAM_DEFAULT));
    kit_must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    passes("nonblocking_passes_nonblocking", one, two);
    passes("nonblocking_passes_legacy", CU_STREAM_LEGACY, one);
    passes("legacy_passes_nonblocking", one, CU_STREAM_LEGACY);
    passes("blocking_passes_blocking", blocking, blocking2);
    passes("blocking_passes_legacy", CU_STREAM_LEGACY, blocking);
    passes("legacy_passes_blocking", blocking, CU_STREAM_LEGACY);
    passes("per_thread_passes_nonblocking", one, CU_STREAM_PER_THREAD);
    passes("per_thread_passes_legacy", CU_STREAM_LEGACY, CU_STREAM_PER_THREAD);
    passes("legacy_passes_per_thread", CU_STREAM_PER_THREAD, CU_STREAM_LEGACY);
}

static void queries(void)
{
    struct kit_hold hold;
    CUstream stream;
    CUevent before, after;
    float ms = 0;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&before, CU_EVENT_DEFAULT));
    kit_must(cuEventCreate(&after, CU_EVENT_DEFAULT));
    say_status("query_idle", cuStreamQuery(stream));
    kit_must(cuEventRecord(before, stream));
    kit_must(kit_hold(&hold, stream));
    kit_must(cuEventRecord(after, stream));
    say_status("query_held", cuStreamQuery(stream));
    say_status("event_before", cuEventSynchronize(before));
    say_status("event_after", cuEventQuery(after));
    say_status("elapsed_while_held", cuEventElapsedTime(&ms, before, after));
    kit_release(&hold);
    say_status("synchronize", cuStreamSynchronize(stream));
    say_status("event_after_synchronize", cuEventQuery(after));
    say_status("elapsed", cuEventElapsedTime(&ms, before, after));
    say_yes("elapsed_is_positive", ms > 0);
    say_status("query_after", cuStreamQuery(stream));
}

static void events_and_values(void)
{
    struct kit_hold hold, second;
    CUstream one, two;
    CUevent event;
    CUdeviceptr d = conform_get(BYTES);
    unsigned char *byte; /* pinned: a copy to other memory would wait for what holds the stream */

    kit_must(cuMemHostAlloc((void **)&byte, 16, 0));
    kit_must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuMemsetD8_v2(d, 1, BYTES));
    kit_must(cuCtxSynchronize()); /* the streams here do not wait for the legacy one */
    kit_must(kit_hold(&hold, one));
    kit_must(cuMemsetD8Async(d, 2, BYTES, one));
    kit_must(cuEventRecord(event, one));
    say_status("wait_event", cuStreamWaitEvent(two, event, 0));
    kit_must(cuMemcpyDtoHAsync_v2(byte, d, 1, two));
    kit_release(&hold);
    kit_must(cuStreamSynchronize(two));
    say("seen_after_event", "%d", *byte);
    /* An event stands for the work at the moment of its recording, and a wait for the recording at its
     * moment. */
    kit_must(kit_hold(&hold, one));
    kit_must(cuEventRecord(event, one));
    kit_must(kit_hold(&second, one));
    kit_release(&hold);
    uint64_t until = kit_now_ns() + SOON_MS * 1000000ULL;
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY && kit_now_ns() < until)
        kit_pause_ms(1);
    say_status("event_between_two_holds", cuEventQuery(event));
    say_status("stream_between_two_holds", cuStreamQuery(one));
    kit_release(&second);
    kit_must(cuStreamSynchronize(one));
    say_status("wait_value", cuStreamWaitValue32_v2(two, hold.address, 1, CU_STREAM_WAIT_VALUE_GEQ));
    say_yes("wait_value_met", kit_over(two, SOON_MS));
    say_status("write_value", cuStreamWriteValue32_v2(two, d, 0x33, CU_STREAM_WRITE_VALUE_DEFAULT));
    kit_must(cuStreamSynchronize(two));
    say("written_value", "%d", conform_byte(d));
    kit_must(cuMemFree_v2(d));
}

static void append(void *data)
{
    char **end = data;

    *(*end)++ = 'h';
}

static void host_functions(void)
{
    char seen[8] = "", *end = seen;
    CUstream stream;
    CUdeviceptr d = conform_get(16);
    unsigned char byte = 0;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuMemsetD8Async(d, 5, 16, stream));
    say_status("host_function", cuLaunchHostFunc(stream, append, &end));
    kit_must(cuMemcpyDtoHAsync_v2(&byte, d, 1, stream));
    kit_must(cuLaunchHostFunc(stream, append, &end));
    kit_must(cuStreamSynchronize(stream));
    say("host_functions_run", "%s %d", seen, byte);
    kit_must(cuMemFree_v2(d));
}

static void *thread_stream_id(void *data)
{
    kit_must(cuCtxSetCurrent(data));
    unsigned long long *id = calloc(1, sizeof *id);
    kit_must(cuStreamGetId(CU_STREAM_PER_THREAD, id));
    return id;
}

static void identities(CUcontext ctx)
{
    unsigned long long null_id = 0, legacy = 0, thread = 0, one = 0, two = 0, *other;
    CUstream stream;
    CUcontext owner = NULL;
    unsigned flags = 99;
    pthread_t second;

    kit_must(cuStreamGetId(NULL, &null_id));
    kit_must(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    kit_must(cuStreamGetId(CU_STREAM_PER_THREAD, &thread));
    say_yes("id_of_null_is_legacys", null_id == legacy);
    say_yes("id_of_per_thread_differs", thread != legacy);
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamGetId(stream, &one));
    say_status("flags", cuStreamGetFlags(stream, &flags));
    say("flags_are", "%u", flags);
    say_status("context", cuStreamGetCtx(stream, &owner));
    say_yes("context_is_current", owner == ctx);
    kit_must(cuStreamDestroy_v2(stream));
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamGetId(stream, &two));
    say_yes("id_is_never_used_again", one != two);
    if (pthread_create(&second, NULL, thread_stream_id, ctx) != 0)
        kit_give_up("no thread could be started");
    pthread_join(second, (void **)&other);
    say_yes("id_of_per_thread_by_thread", *other != thread);
    free(other);
}

void conform_order(int argc, char **argv)
{
    CUcontext ctx = kit_begin();

    (void)argc;
    (void)argv;
    between_streams();
    queries();
    events_and_values();
    host_functions();
    identities(ctx);
}
