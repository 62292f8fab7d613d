/* oom_user.c - a program that runs out of memory, in a way that is planted, on a device of 1 GiB:
 * oom_user WAY [kind=KIND] [bytes=BYTES] [free=BYTES] [wait] [most=BYTES] [kill]. What is asked for is of the
 * kind (ask.h), and of `bytes` where the way says no size. The other words do what oom[].would_fit of the
 * report says: free so much of what the site holds that it names (there is one such site in each way), wait
 * for the device before asking, ask for no more than so much; kill ends it at the refusal. Ends with 0 if the
 * request was answered, and 3 if not. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/memshim.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "tests/oom/ask.h"
#include "tests/program.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMallocAsync(void **pointer, size_t bytes, void *stream);
int cudaFreeAsync(void *pointer, void *stream);
int cudaStreamCreate(void **stream);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *arg);
int cudaDeviceSynchronize(void);

#define MIB ((size_t)1 << 20)
enum { BLOCKS = 256 };

static void *held[BLOCKS];
static size_t held_bytes[BLOCKS];
static unsigned held_count;
static const char *kind = "device";
static size_t to_free, bytes_given, most = SIZE_MAX;
static bool waits, dies;
static _Atomic bool released;

/* The line that holds memory: all that is freed is freed of it. */
__attribute__((noinline)) static void hoard(size_t bytes, unsigned count)
{
    for (unsigned i = 0; i < count && held_count < BLOCKS; i++, held_count++) {
        held_bytes[held_count] = bytes;
        if (cudaMalloc(&held[held_count], bytes))
            say("no memory for what is planted");
    }
}

static void give_back(void)
{
    for (unsigned i = 0; i < held_count && to_free; i++) {
        if (!held[i])
            continue;
        cudaFree(held[i]);
        held[i] = NULL;
        to_free -= to_free < held_bytes[i] ? to_free : held_bytes[i];
    }
}

/* What is given to a stream from here on waits until the host lets it go. */
static void hold(void *arg)
{
    (void)arg;
    while (!released)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

__attribute__((noinline)) static int request(size_t bytes)
{
    int status;

    MEMSHIM_PHASE_PUSH("request");
    give_back();
    if (waits) {
        released = true;
        cudaDeviceSynchronize();
    }
    status = ask_for(kind, bytes < most ? bytes : most);
    say("status %d", status);
    if (status != 0 && dies)
        raise(SIGKILL);
    released = true;
    cudaDeviceSynchronize();
    MEMSHIM_PHASE_POP();
    return status == 0 ? 0 : 3;
}

/* Eight ways; each leaves a request that is refused. */
static int leak(void)
{
    hoard(64 * MIB, 14);
    return request(256 * MIB);
}

static int too_large(void)
{
    hoard(32 * MIB, 1);
    return request(2048 * MIB);
}

static int limited(void)
{
    hoard(50 * MIB, 8);
    return request(200 * MIB);
}

static int is_pending(void)
{
    void *stream, *block;

    cudaStreamCreate(&stream);
    cudaMalloc(&block, 700 * MIB);
    cudaLaunchHostFunc(stream, hold, NULL);
    cudaFree(block);
    return request(600 * MIB);
}

/* Every second of the smaller blocks is freed. */
static int interleaved(void)
{
    void *large;

    hoard(4 * MIB, 70);
    cudaMalloc(&large, 640 * MIB);
    for (unsigned i = 0; i < held_count; i += 2) {
        cudaFree(held[i]);
        held[i] = NULL;
    }
    cudaDeviceSynchronize();
    return request(200 * MIB);
}

/* What was taken beforehand is vacant, and stays. */
static int in_segments(void)
{
    void *block;

    cudaMalloc(&block, MIB);
    cudaFree(block);
    cudaDeviceSynchronize();
    return request(700 * MIB);
}

static int for_streams(void)
{
    void *stream, *block;

    cudaStreamCreate(&stream);
    cudaMallocAsync(&block, 700 * MIB, stream);
    cudaLaunchHostFunc(stream, hold, NULL);
    cudaFreeAsync(block, stream);
    return request(600 * MIB);
}

static int beside_driver(void)
{
    hoard(100 * MIB, 5);
    return request(300 * MIB);
}

/* Nothing is planted: it is the driver that refuses. */
static int plain(void)
{
    hoard(MIB, 1);
    return request(bytes_given);
}

/* What the pool keeps is nobody's. */
static int idle(void)
{
    void *block;

    if (cudaMalloc(&block, 700 * MIB) || cudaFree(block))
        say("no memory for what is planted");
    return request(600 * MIB);
}

/* Nothing was called before. */
static int context(void)
{
    return ask_for("device", MIB) == 0 ? 0 : 3;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*play)(void);
    } ways[] = {{"leak", leak},
                {"too_large", too_large},
                {"limited", limited},
                {"in_limbo", is_pending},
                {"interleaved", interleaved},
                {"in_segments", in_segments},
                {"for_streams", for_streams},
                {"beside_driver", beside_driver},
                {"idle", idle},
                {"plain", plain},
                {"context", context}};

    for (int i = 2; i < argc; i++) {
        if (!strncmp(argv[i], "free=", 5))
            to_free = strtoull(argv[i] + 5, NULL, 10);
        if (!strncmp(argv[i], "kind=", 5))
            kind = argv[i] + 5;
        if (!strncmp(argv[i], "bytes=", 6))
            bytes_given = strtoull(argv[i] + 6, NULL, 10);
        if (!strncmp(argv[i], "most=", 5))
            most = strtoull(argv[i] + 5, NULL, 10);
        if (!strcmp(argv[i], "wait"))
            waits = true;
        if (!strcmp(argv[i], "kill"))
            dies = true;
    }
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (!strcmp(argv[1], ways[i].name))
            return ways[i].play();
    say("no such way");
    return 2;
}
