/*
 * waits.c - memory that one stream frees while it still has work, and that others ask for on a device that
 * has no more: with each combination of the pool's three rules of reuse. Prints "what value" lines, which
 * must be the same natively and under memshim. Streams are held by a wait for a value that the host writes,
 * so nothing here depends on how fast anything is.
 *
 * Arguments: three digits, 0 or 1 (follow events, opportunistic, internal dependencies), and "device" or
 * "most" for what ends: the device's memory, or what the pool may hold.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB   ((size_t)1 << 20)
#define LARGE (24 * MIB)

enum { FLAGS = 4 };

static cudaMemPool_t pool;
static volatile uint32_t *flags;
static CUdeviceptr device_flags;
static cudaStream_t a, b, c;
static const char *where;

static void must(int status, const char *what)
{
    if (status) {
        printf("%s.%s %d\n", where, what, status);
        fflush(stdout);
        exit(3);
    }
}

static void say(const char *what, long value)
{
    printf("%s.%s %ld\n", where, what, value);
    fflush(stdout);
}

static void hold(cudaStream_t stream, int flag)
{
    must((int)cuStreamWaitValue32_v2((CUstream)stream, device_flags + (unsigned)flag * 4, 1,
                                     CU_STREAM_WAIT_VALUE_EQ),
         "hold");
}

static void release(int flag)
{
    __atomic_store_n(&flags[flag], 1, __ATOMIC_RELEASE);
}

static cudaStream_t new_stream(unsigned kind)
{
    cudaStream_t stream = NULL;

    must((int)cudaStreamCreateWithFlags(&stream, kind), "stream");
    return stream;
}

static void *take(size_t bytes, cudaStream_t stream)
{
    void *p = NULL;

    must((int)cudaMallocFromPoolAsync(&p, bytes, pool, stream), "take");
    must((int)cudaMemsetAsync(p, 0x11, bytes, stream), "fill");
    return p;
}

static void give(void *p, cudaStream_t stream)
{
    must((int)cudaFreeAsync(p, stream), "give");
}

static void behind(cudaStream_t second, cudaStream_t first)
{
    cudaEvent_t event = NULL;

    must((int)cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    must((int)cudaEventRecord(event, first), "record");
    must((int)cudaStreamWaitEvent(second, event, 0), "wait");
    must((int)cudaEventDestroy(event), "destroy");
}

/* What another stream still has to do to the memory would show in it. */
struct request {
    void *p;
    size_t bytes;
    cudaStream_t stream;
    const char *what;
};

static struct request ask(const char *what, size_t bytes, cudaStream_t stream)
{
    struct request request = {NULL, bytes, stream, what};
    int status = (int)cudaMallocFromPoolAsync(&request.p, bytes, pool, stream);

    say(what, status);
    cudaGetLastError();
    if (status)
        request.p = NULL;
    else
        must((int)cudaMemsetAsync(request.p, 0x5a, bytes, stream), "fill");
    return request;
}

/* Its stream has got there. */
static void look(struct request *request)
{
    static unsigned char bytes[LARGE];
    char line[64];
    size_t wrong = 0;

    if (!request->p)
        return;
    must((int)cudaMemcpyAsync(bytes, request->p, request->bytes, cudaMemcpyDeviceToHost, request->stream),
         "copy");
    must((int)cudaStreamSynchronize(request->stream), "sync");
    for (size_t i = 0; i < request->bytes; i++)
        wrong += bytes[i] != 0x5a;
    snprintf(line, sizeof line, "%s_wrong", request->what);
    say(line, (long)wrong);
    give(request->p, request->stream);
    request->p = NULL;
}

/* --- scenes --------------------------------------------------------------------------------------------- */

static void freed_while_held(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
}

/* The hold comes after the free, and only whoever got the memory lets it go. */
static void held_after_the_free(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    hold(a, 1);
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r); /* waits for b */
    release(1);
}

static void after_a_wait_of_the_host(void)
{
    void *p = take(LARGE, a);
    give(p, a);
    must((int)cudaStreamSynchronize(a), "sync");
    hold(a, 0);
    struct request r = ask("b", LARGE, b);
    look(&r);
    release(0);
}

static void put_behind_by_the_program(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    behind(b, a);
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
}

static void put_behind_too_early(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    behind(b, a);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
}

static void put_behind_by_way_of_a_third(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    behind(c, a);
    behind(b, c);
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
}

static void an_event_that_was_recorded_again(void)
{
    cudaEvent_t event = NULL;
    void *p = take(LARGE, a);

    must((int)cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    must((int)cudaEventRecord(event, a), "record");
    must((int)cudaEventRecord(event, c), "record");
    must((int)cudaStreamWaitEvent(b, event, 0), "wait"); /* for c, which has nothing to do */
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
    must((int)cudaEventDestroy(event), "destroy");
}

static void freed_on_a_third(cudaStream_t who, const char *what)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    behind(c, a);
    give(p, c);
    struct request r = ask(what, LARGE, who);
    release(0);
    look(&r);
}

static void freed_on_a_third_for_another(void)
{
    freed_on_a_third(b, "b");
}
static void freed_on_a_third_for_itself(void)
{
    freed_on_a_third(c, "c");
}
static void freed_on_a_third_for_the_first(void)
{
    freed_on_a_third(a, "a");
}

static void chain(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    struct request r = ask("b", LARGE, b);
    if (r.p)
        give(r.p, b);
    struct request s = ask("c", LARGE, c);
    if (s.p)
        give(s.p, c);
    struct request t = ask("a", LARGE, a);
    release(0);
    look(&t);
}

static void destroyed(void)
{
    cudaStream_t gone = new_stream(cudaStreamNonBlocking);
    void *p = take(LARGE, gone);
    hold(gone, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, gone), "late");
    give(p, gone);
    hold(gone, 1);
    must((int)cudaStreamDestroy(gone), "destroy");
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
    release(1);
}

static void beside_a_capture(void)
{
    cudaGraph_t graph = NULL;
    void *p = take(LARGE, a);

    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    must((int)cudaStreamBeginCapture(c, cudaStreamCaptureModeRelaxed), "begin");
    give(p, a);
    struct request r = ask("b", LARGE, b);
    say("end", (long)cudaStreamEndCapture(c, &graph));
    say("graph", graph != NULL);
    release(0);
    look(&r);
    cudaGraphDestroy(graph);
}

static void for_the_legacy_stream(void)
{
    cudaStream_t blocking = new_stream(cudaStreamDefault);
    void *p = take(LARGE, blocking);

    hold(blocking, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, blocking), "late");
    give(p, blocking);
    struct request r = {NULL, LARGE, cudaStreamLegacy, "legacy"};
    say("legacy", (long)cudaMallocFromPoolAsync(&r.p, LARGE, pool, cudaStreamLegacy));
    cudaGetLastError();
    release(0);
    if (r.p)
        must((int)cudaMemsetAsync(r.p, 0x5a, LARGE, cudaStreamLegacy), "fill");
    look(&r);
    must((int)cudaStreamDestroy(blocking), "destroy");
}

static void of_the_legacy_stream(void)
{
    void *p = take(LARGE, cudaStreamLegacy);

    hold(cudaStreamLegacy, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, cudaStreamLegacy), "late");
    give(p, cudaStreamLegacy);
    struct request r = ask("b", LARGE, b);
    release(0);
    look(&r);
}

static void *in_another_thread(void *unused)
{
    (void)unused;
    void *p = take(LARGE, cudaStreamPerThread);
    hold(cudaStreamPerThread, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, cudaStreamPerThread), "late");
    give(p, cudaStreamPerThread);
    return NULL;
}

static void of_a_thread_that_ended(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, in_another_thread, NULL))
        exit(3);
    pthread_join(thread, NULL);
    struct request r = ask("own", LARGE, cudaStreamPerThread);
    release(0);
    look(&r);
}

static void in_pieces(void)
{
    struct request r[3];
    void *p = take(LARGE, a);

    hold(a, 0);
    must((int)cudaMemsetAsync(p, 0x22, LARGE, a), "late");
    give(p, a);
    r[0] = ask("b", LARGE / 3, b);
    r[1] = ask("c", LARGE / 3, c);
    r[2] = ask("b_again", LARGE / 3, b);
    release(0);
    for (int i = 0; i < 3; i++)
        look(&r[i]);
}

static void two_blocks(void)
{
    void *p = take(LARGE / 2, a), *q = take(LARGE / 2, c);

    hold(a, 0);
    hold(c, 1);
    must((int)cudaMemsetAsync(p, 0x22, LARGE / 2, a), "late");
    must((int)cudaMemsetAsync(q, 0x22, LARGE / 2, c), "late");
    give(p, a);
    give(q, c);
    struct request r = ask("b", LARGE / 2, b), s = ask("b_again", LARGE / 2, b);
    release(0);
    release(1);
    look(&r);
    look(&s);
}

static void its_own(void)
{
    void *p = take(LARGE, a);
    hold(a, 0);
    give(p, a);
    struct request r = ask("a", LARGE, a);
    release(0);
    look(&r);
}

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {
    {"freed_while_held", freed_while_held},
    {"held_after_the_free", held_after_the_free},
    {"after_a_wait_of_the_host", after_a_wait_of_the_host},
    {"put_behind_by_the_program", put_behind_by_the_program},
    {"put_behind_too_early", put_behind_too_early},
    {"put_behind_by_way_of_a_third", put_behind_by_way_of_a_third},
    {"an_event_that_was_recorded_again", an_event_that_was_recorded_again},
    {"freed_on_a_third_for_another", freed_on_a_third_for_another},
    {"freed_on_a_third_for_itself", freed_on_a_third_for_itself},
    {"freed_on_a_third_for_the_first", freed_on_a_third_for_the_first},
    {"chain", chain},
    {"destroyed", destroyed},
    {"beside_a_capture", beside_a_capture},
    {"for_the_legacy_stream", for_the_legacy_stream},
    {"of_the_legacy_stream", of_the_legacy_stream},
    {"of_a_thread_that_ended", of_a_thread_that_ended},
    {"in_pieces", in_pieces},
    {"two_blocks", two_blocks},
    {"its_own", its_own},
};

static void set_up(const char *rules, bool most)
{
    static const enum cudaMemPoolAttr names[] = {cudaMemPoolReuseFollowEventDependencies,
                                                 cudaMemPoolReuseAllowOpportunistic,
                                                 cudaMemPoolReuseAllowInternalDependencies};
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};

    props.maxSize = most ? LARGE + 4 * MIB : 0;
    must((int)cudaMemPoolCreate(&pool, &props), "pool");
    for (int i = 0; i < 3; i++) {
        int value = rules[i] == '1';
        must((int)cudaMemPoolSetAttribute(pool, names[i], &value), "rule");
    }
    a = new_stream(cudaStreamNonBlocking);
    b = new_stream(cudaStreamNonBlocking);
    c = new_stream(cudaStreamNonBlocking);
    memset((void *)(uintptr_t)flags, 0, FLAGS * sizeof *flags);
}

static void clear_up(void)
{
    must((int)cudaDeviceSynchronize(), "device");
    must((int)cudaMemPoolDestroy(pool), "pool");
    must((int)cudaStreamDestroy(a), "stream");
    must((int)cudaStreamDestroy(b), "stream");
    must((int)cudaStreamDestroy(c), "stream");
    must((int)cudaDeviceSynchronize(), "device");
}

int main(int argc, char **argv)
{
    void *host = NULL, *device = NULL;

    if (argc < 3 || strlen(argv[1]) != 3)
        return 2;
    where = "start";
    must((int)cudaHostAlloc(&host, 64, cudaHostAllocMapped), "host");
    must((int)cudaHostGetDevicePointer(&device, host, 0), "host");
    flags = host;
    device_flags = (uintptr_t)device;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (argc > 3 && strcmp(argv[3], scenes[i].name))
            continue;
        where = scenes[i].name;
        set_up(argv[1], !strcmp(argv[2], "most"));
        scenes[i].play();
        clear_up();
    }
    return 0;
}
