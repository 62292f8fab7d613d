/* inner_user.c - a program whose memory comes from an allocator of its own: inner_user WAY [NUMBER].
 *
 * - torch RELEASE: the stand-in of PyTorch, opened as Python opens it, by the report of that release (0 to
 * 2); some pieces stay. Prints what the report must say: live, count, peak, reserved; and whether all that
 * was reported reached PyTorch's own function
 * - threads: the same with four threads
 * - wait: some pieces, and then nothing until it is ended
 * - kill: the same, and ends itself by SIGKILL in the middle of a step
 * - fork: some pieces, and then a child of fork that takes five and keeps them
 * - host: the same, with memory of the host besides
 * - grow: steps that are phases, each of which keeps one piece more; freed in the end
 * - steady: the same, and of each but 512 bytes, beside what the first warms up
 * - refused RELEASE: on a device of 64 MiB the allocator has no memory for a piece, for three reasons, and
 * once it has some by giving back what is idle; then the program itself asks in vain
 * - emptied: idle segments are given back in the end, of which nothing is reported
 * - hopeless: on a device of 64 MiB the allocator has no memory for its first piece, 30 times
 * - elsewhere: the same once, of a device that memshim does not know
 * - cost FRAMES: prints the nanoseconds of processor time of a piece that comes and goes, of thousands, with
 * so many frames more on the stack
 * - pools: two pools of one name and another, by include/memshim.h
 * - wrong: pieces that no block has, and some that lie over each other; prints how many these are
 * - many PIECES BLOCKS: as many pieces in as many blocks, and some bytes free behind them
 * - arenas: pieces whose blocks are freed with them in it; prints how many are left */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "c10.h"
#include "include/memshim.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMallocManaged(void **pointer, size_t bytes, unsigned flags);
int cudaMallocAsync(void **pointer, size_t bytes, void *stream);
int cudaFreeAsync(void *pointer, void *stream);

enum { STEPS = 3000, PIECES = 200, KEPT = 10, THREADS = 4 };

static struct {
    void *(*take)(int, size_t);
    void (*give)(int, void *);
    void *(*take_large)(int, size_t, uint64_t);
    void (*empty)(void);
    void (*device)(int8_t);
    void (*host)(int, void *, size_t);
    void *(*host_take)(size_t);
    void (*host_give)(void *);
    void (*told)(struct caching *);
    void (*seen)(uint64_t *, uint64_t *);
} torch;
static int release;

static double clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void open_torch(void)
{
    void *cuda = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_LOCAL),
         *c10 = dlopen("libc10.so", RTLD_NOW | RTLD_LOCAL);
    if (!cuda || !c10) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    *(void **)&torch.take = dlsym(cuda, "caching_take");
    *(void **)&torch.give = dlsym(cuda, "caching_give");
    *(void **)&torch.take_large = dlsym(cuda, "caching_take_large");
    *(void **)&torch.device = dlsym(cuda, "caching_device");
    *(void **)&torch.empty = dlsym(cuda, "caching_empty");
    *(void **)&torch.host = dlsym(cuda, "caching_host");
    *(void **)&torch.host_take = dlsym(cuda, "host_take");
    *(void **)&torch.host_give = dlsym(cuda, "host_give");
    *(void **)&torch.told = dlsym(cuda, "caching_told");
    *(void **)&torch.seen = dlsym(c10, "c10_seen");
}

__attribute__((noinline)) static void *forward(size_t bytes)
{
    void *piece = torch.take(release, bytes);
    __asm__ volatile("" : "+r"(piece));
    return piece;
}

__attribute__((noinline)) static void *optimizer(size_t bytes)
{
    void *piece = torch.take(release, bytes);
    __asm__ volatile("# not the same as forward" : "+r"(piece));
    return piece;
}

static void *step(void *arg)
{
    static const size_t sizes[] = {1, 512, 3000, 70000, 300000};
    void *pieces[PIECES] = {NULL};
    unsigned random = 1 + (unsigned)(size_t)arg;
    for (unsigned i = 0; i < STEPS; i++) {
        random = random * 1103515245u + 12345u;
        void **piece = &pieces[(random >> 16) % PIECES];
        size_t bytes = sizes[(random >> 8) % 5];
        if (*piece)
            torch.give(release, *piece);
        *piece = *piece ? NULL : i % 3 ? forward(bytes) : optimizer(bytes);
        if (i % 100 == 0)
            torch.host(release, pieces, bytes);
    }
    for (unsigned i = KEPT; i < PIECES; i++) {
        if (pieces[i])
            torch.give(release, pieces[i]);
    }
    unsigned long kept = 0;
    for (unsigned i = 0; i < KEPT; i++)
        kept += pieces[i] != NULL;
    return (void *)kept;
}

static void say(unsigned long kept)
{
    struct caching told;
    uint64_t calls, sum;
    torch.told(&told);
    torch.seen(&calls, &sum);
    printf("%llu %lu %llu %llu %s\n", (unsigned long long)told.allocated, kept, (unsigned long long)told.peak,
           (unsigned long long)told.reserved, calls == told.calls && sum == told.sum ? "all" : "lost");
    fflush(stdout);
}

static void with_threads(void)
{
    pthread_t threads[THREADS];
    unsigned long kept = 0;
    void *own;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, step, (void *)i);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &own);
        kept += (unsigned long)own;
    }
    say(kept);
}

static void with_child(void)
{
    say((unsigned long)step((void *)7));
    pid_t child = fork();
    for (unsigned i = 0; child == 0 && i < 5; i++)
        forward(512);
    if (child)
        waitpid(child, NULL, 0);
}

/* As a training loop: some pieces for a step, and one that is kept. */
__attribute__((noinline)) static void *keep_loss(size_t bytes)
{
    void *piece = torch.take(release, bytes);
    __asm__ volatile("# not the same as these" : "+r"(piece));
    return piece;
}

static void train(bool grows)
{
    void *kept[20] = {NULL}, *small[20] = {NULL}, *warm = NULL;
    for (unsigned i = 0; i < 20; i++) {
        MEMSHIM_PHASE_PUSH("train step");
        void *first = forward(300000), *second = forward(70000);
        kept[i] = keep_loss(60000);
        torch.give(release, second);
        torch.give(release, first);
        if (!i && !grows)
            warm = forward(1 << 20);
        if (!grows)
            torch.give(release, kept[i]);
        small[i] = grows ? NULL : optimizer(1);
        MEMSHIM_PHASE_POP();
    }
    for (unsigned i = 0; i < 20; i++)
        torch.give(release, grows ? kept[i] : small[i]);
    if (warm)
        torch.give(release, warm);
    say(0);
}

/* The allocator's own work is a part of it: the same with memshim and without. */
__attribute__((noinline)) static double pairs(unsigned frames)
{
    enum { PAIRS = 20000 };
    double taken;
    if (frames) {
        taken = pairs(frames - 1);
        __asm__ volatile("" ::: "memory");
        return taken;
    }
    double begun = clock_ns();
    for (unsigned i = 0; i < PAIRS; i++)
        torch.give(release, forward(512));
    return (clock_ns() - begun) / PAIRS;
}

static void cost(unsigned frames)
{
    enum { ROUNDS = 20 };
    double least = pairs(frames);
    for (unsigned i = 0; i < ROUNDS; i++) {
        double taken = pairs(frames);
        least = taken < least ? taken : least;
    }
    printf("%.1f\n", least);
}

static void say_now(void)
{
    struct caching told;
    torch.told(&told);
    printf("%llu %llu\n", (unsigned long long)told.allocated, (unsigned long long)told.reserved);
}

__attribute__((noinline)) static void *ask(size_t bytes, uint64_t allowed)
{
    void *piece = torch.take_large(release, bytes, allowed);
    __asm__ volatile("" : "+r"(piece));
    return piece;
}

/* Five pieces stay, and their segments. */
static void emptied(void)
{
    void *pieces[200];
    for (unsigned i = 0; i < 200; i++)
        pieces[i] = forward(300000);
    for (unsigned i = 5; i < 200; i++)
        torch.give(release, pieces[i]);
    torch.empty();
    say(5);
}

/* No piece was ever given. */
static void hopeless(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        ask((size_t)100 << 20, UINT64_MAX);
}

static void refused(void)
{
    enum { HALVES = 80 };
    const size_t mib = 1 << 20;
    void *pieces[HALVES], *own;
    for (unsigned i = 0; i < HALVES; i++)
        pieces[i] = forward(mib / 2);
    for (unsigned i = 1; i < HALVES; i += 2)
        torch.give(release, pieces[i]);
    say_now();
    bool refused = !ask(30 * mib, UINT64_MAX); /* between pieces and on the device there is as much */
    refused &= !ask(60 * mib, UINT64_MAX);     /* more than the device has beside the pieces */
    refused &= !ask(10 * mib, 45 * mib);       /* more than the allocator may have */
    for (unsigned i = 0; i < HALVES - 8; i += 2)
        torch.give(release, pieces[i]);
    void *had = ask(40 * mib, UINT64_MAX);
    refused &= cudaMalloc(&own, 50 * mib) != 0;
    printf("%s\n", refused && had ? "as planned" : "otherwise");
    say(5);
}

/* Tensors of the host beside those of the device: what is live of them, and how many. */
static void with_host(void)
{
    static void *held[30]; /* no leak of the host's, to who looks for those */
    unsigned long kept = (unsigned long)step((void *)7), live = 0, live_count = 0;
    for (unsigned i = 0; i < 30; i++)
        held[i] = torch.host_take(1000 * (i + 1));
    for (unsigned i = 0; i < 30; i++) {
        if (i % 3 == 0)
            torch.host_give(held[i]);
        live += i % 3 ? 1000 * (i + 1) : 0;
        live_count += i % 3 != 0;
    }
    printf("%lu %lu\n", live, live_count);
    say(kept);
}

static void pools(void)
{
    char *first, *second;
    uint64_t weights = MEMSHIM_POOL("weights"), cache = MEMSHIM_POOL("cache"),
             again = MEMSHIM_POOL("weights");
    cudaMalloc((void **)&first, 1 << 20);
    cudaMalloc((void **)&second, 1 << 20);
    for (unsigned i = 0; i < 16; i++)
        MEMSHIM_INNER_ALLOC(i % 2 ? again : weights, first + i * 1024, 1000);
    MEMSHIM_INNER_ALLOC(cache, second, 1 << 20);
    MEMSHIM_INNER_FREE(second);
    MEMSHIM_INNER_ALLOC(cache, second + 4096, 4096);
    MEMSHIM_INNER_ALLOC(0, second + 65536, 77);
    for (unsigned i = 0; i < 8; i++)
        MEMSHIM_INNER_FREE(first + i * 1024);
    MEMSHIM_INNER_FREE(first); /* nobody's by now */
    printf("%d\n", weights == again && weights != cache);
}

enum { EACH = 100 };

static void carve(uint64_t pool, char *block, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        MEMSHIM_INNER_ALLOC(pool, block + i * 1024, 1000);
}

/* A block of each kind that ends in a way of its own; the first ends once more, as another. */
static void arenas(void)
{
    char *served, *again, *managed, *ordered, *stays, *large;
    uint64_t arena = MEMSHIM_POOL("arena");
    cudaMalloc((void **)&served, 1 << 20);
    cudaMalloc((void **)&stays, 1 << 20);
    cudaMalloc((void **)&large, 64 << 20);
    cudaMallocManaged((void **)&managed, 1 << 20, 1);
    cudaMallocAsync((void **)&ordered, 1 << 20, NULL);
    carve(arena, served, EACH);
    carve(arena, managed, EACH);
    carve(arena, ordered, EACH);
    carve(arena, stays, EACH);
    carve(arena, large + (32 << 20), EACH);
    cudaFree(served);
    cudaFree(managed);
    cudaFreeAsync(ordered, NULL);
    cudaFree(large);
    cudaMalloc((void **)&again, 1 << 20);
    carve(arena, again, EACH / 10);
    cudaFree(again);
    MEMSHIM_INNER_FREE(stays);
    printf("%d\n", EACH - 1);
}

static void wrong(void)
{
    static char own[4096];
    char *served, *large;
    uint64_t arena = MEMSHIM_POOL("arena");
    cudaMalloc((void **)&served, 1 << 20);
    cudaMalloc((void **)&large, 64 << 20);
    MEMSHIM_INNER_ALLOC(arena, own, sizeof own);
    MEMSHIM_INNER_ALLOC(arena, served, 8 << 20);
    MEMSHIM_INNER_ALLOC(arena, served + 4096, UINT64_MAX);
    MEMSHIM_INNER_ALLOC(arena, large + (63 << 20), 2 << 20);
    MEMSHIM_INNER_ALLOC(arena, large + 4096, UINT64_C(1) << 60);
    for (unsigned i = 0; i < 3; i++)
        MEMSHIM_INNER_ALLOC(arena, served + 1024 * i, 1 << 19);
    printf("%d\n", 3);
}

/* Pieces of 64 bytes. */
static void many(unsigned long pieces, unsigned long blocks)
{
    char *block;
    uint64_t arena = MEMSHIM_POOL("arena");
    for (unsigned long i = 0; i < blocks; i++) {
        cudaMalloc((void **)&block, pieces / blocks * 64 + (1 << 20));
        for (unsigned long k = 0; k < pieces / blocks; k++)
            MEMSHIM_INNER_ALLOC(arena, block + k * 64, 64);
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "wrong") == 0) {
        wrong();
        return 0;
    }
    if (strcmp(way, "many") == 0 && argc > 3) {
        many(strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0));
        return 0;
    }
    release = argc > 2 && strcmp(way, "cost") ? atoi(argv[2]) : 2;
    if (strcmp(way, "pools") == 0 || strcmp(way, "arenas") == 0) {
        (strcmp(way, "pools") == 0 ? pools : arenas)();
        return 0;
    }
    open_torch();
    if (strcmp(way, "torch") == 0)
        say((unsigned long)step((void *)7));
    else if (strcmp(way, "wait") == 0) {
        say((unsigned long)step((void *)7));
        for (;;)
            pause();
    } else if (strcmp(way, "threads") == 0)
        with_threads();
    else if (strcmp(way, "host") == 0)
        with_host();
    else if (strcmp(way, "fork") == 0)
        with_child();
    else if (strcmp(way, "cost") == 0)
        cost(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
    else if (strcmp(way, "refused") == 0)
        refused();
    else if (strcmp(way, "emptied") == 0)
        emptied();
    else if (strcmp(way, "hopeless") == 0)
        hopeless(30);
    else if (strcmp(way, "elsewhere") == 0) {
        torch.device(TYPE_XPU);
        hopeless(1);
    } else if (strcmp(way, "grow") == 0 || strcmp(way, "steady") == 0)
        train(strcmp(way, "grow") == 0);
    else if (strcmp(way, "kill") == 0) {
        say((unsigned long)step((void *)7));
        forward(12345);
        kill(getpid(), SIGKILL);
    } else {
        return 2;
    }
    return 0;
}
