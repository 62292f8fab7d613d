/* regions_user.c - a program whose allocator says by NVTX what it gives: regions_user WAY [NUMBER].
 *
 * book           heaps and regions of each kind; prints what the report must say: live, count, peak, total
 * threads        four threads, each with a heap of one name
 * fork           a child that does as if its parent's heap were its own
 * hostile        handles that nobody has, and what is not memory
 * version V S    as an object of that version of the extension, whose structures are S bytes longer
 * other          as an object of another extension */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regions.h"
#include "tests/program.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaMallocHost(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { KIB = 1024, ARENA = 1024 * KIB, THREADS = 4, STEPS = 2000, SLOTS = 32 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long live, count, peak, total;

/* One region more, or, below 0, one fewer; or one that has grown, or shrunk. */
static void book(long bytes, long regions)
{
    pthread_mutex_lock(&mutex);
    live += (unsigned long)bytes;
    count += (unsigned long)regions;
    total += bytes > 0 ? (unsigned long)bytes : 0;
    peak = live > peak ? live : peak;
    pthread_mutex_unlock(&mutex);
}

static char *arena(void)
{
    void *memory = NULL;
    cudaMalloc(&memory, ARENA);
    return memory;
}

__attribute__((noinline)) static void take(void *heap, char *at, size_t bytes)
{
    struct region region = {bytes, at};
    book((long)bytes, 1);
    regions_begin(heap, &region, 1, NULL);
}

static void give(void *at, size_t bytes)
{
    regions_end(&at, 1, 0);
    book(-(long)bytes, -1);
}

static void sized(char *at, size_t before, size_t bytes)
{
    struct region region = {bytes, at};
    book((long)bytes - (long)before, 0);
    regions_resize(&region, 1);
}

static void tell(void)
{
    say("%lu %lu %lu %lu", live, count, peak, total);
}

static void all_kinds(void)
{
    char *first = arena(), *second = arena(), *third = arena(), *alone = arena();
    void *weights = heap_begin(first, ARENA, "weights"), *again = heap_begin(second, ARENA, "weights"),
         *cache = heap_begin(third, ARENA, "cache"), *handles[4] = {NULL};
    struct region batch[4];
    say("%d %d", weights == first && cache == third, permissions());
    for (int i = 0; i < 4; i++)
        batch[i] = (struct region){4 * KIB, third + i * 8 * KIB};
    book(16 * KIB, 4);
    regions_begin(cache, batch, 4, handles);
    regions_end(handles, 2, 1);
    book(-8 * KIB, -2);
    take(weights, first, 100 * KIB);
    take(weights, first + 512 * KIB, 50 * KIB);
    region_name(first, L"layer.0");
    sized(first, 100 * KIB, 200 * KIB);
    sized(first + 512 * KIB, 50 * KIB, 30 * KIB);
    region_name(first, L"layer.\u00e4");
    region_name(first + 512 * KIB, L"layer.1");
    take(again, second, 300 * KIB);
    take(again, second + 400 * KIB, 1);
    heap_end(again);
    book(-300 * KIB - 1, -2);
    heap_empty(cache);
    book(-8 * KIB, -2);
    take(cache, third, 7);
    take(NULL, alone, ARENA);
    region_name(alone, L"workspace");
    take(weights, first + 700 * KIB, 64);
    give(first + 700 * KIB, 64);
}

static void *one_thread(void *number)
{
    char *memory = arena();
    void *heap = heap_begin(memory, ARENA, "shared name");
    size_t held[SLOTS] = {0};
    unsigned random = 17 + (unsigned)(size_t)number;
    for (unsigned i = 0; i < STEPS; i++) {
        random = random * 1103515245u + 12345u;
        unsigned slot = (random >> 16) % SLOTS;
        char *at = memory + slot * 32 * KIB;
        size_t bytes = 1 + (random >> 8) % (32 * KIB);
        if (!held[slot])
            take(heap, at, bytes);
        else if (i % 3)
            give(at, held[slot]);
        else
            sized(at, held[slot], bytes);
        held[slot] = !held[slot] || i % 3 == 0 ? bytes : 0;
    }
    if ((size_t)number % 2) { /* the others' regions stay */
        for (unsigned slot = 0; slot < SLOTS; slot++)
            book(-(long)held[slot], -(held[slot] != 0));
        heap_end(heap);
    }
    return NULL;
}

static void with_threads(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, one_thread, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void with_child(void)
{
    char *memory = arena();
    void *heap = heap_begin(memory, ARENA, "inherited");
    int status = 1;
    take(heap, memory, 1000);
    pid_t child = fork();
    if (!child) {
        regions_end((void *const *)&memory, 1, 0);
        regions_begin(heap, &(struct region){5000, memory + 8 * KIB}, 1, NULL);
        heap_end(heap);
        heap_empty(NULL);
        exit(0);
    }
    waitpid(child, &status, 0);
    say("%d", status);
    take(heap, memory + 8 * KIB, 2000);
}

/* Half of a heap is another's. */
static void with_nested(void)
{
    char *memory = arena();
    void *outer = heap_begin(memory, ARENA, "outer"),
         *inner = heap_begin(memory + ARENA / 2, ARENA / 2, "inner");
    take(outer, memory, 1000);
    take(inner, memory + ARENA / 2, 2000);
}

static void with_what_is_none(void)
{
    char *memory = arena(), *host = NULL;
    static char own[64];
    void *nobody = (void *)(uintptr_t)0x123456789, *handle = NULL;
    struct region regions[3] = {{KIB, memory}, {0, memory + KIB}, {KIB, NULL}};
    cudaMallocHost((void **)&host, ARENA);
    void *pinned = heap_begin(host, ARENA, "pinned"), *plain = heap_begin(own, sizeof own, "the host's");
    regions_begin(nobody, regions, 3, NULL);
    book(KIB, 1);
    heap_end(nobody);
    heap_empty(nobody);
    regions_end(&nobody, 1, 0);
    regions_end(&nobody, 1, 1);
    region_name(nobody, L"nobody");
    region_name(memory, L"\x110000 of no character");
    regions_resize(&(struct region){KIB, nobody}, 1);
    regions_begin(pinned, &(struct region){KIB, host}, 1, &handle);
    regions_begin(plain, &(struct region){8, own}, 1, NULL);
    regions_begin(NULL, &(struct region){8, own}, 1, NULL);
    regions_begin(NULL, NULL, 3, NULL);
    say("%d", handle == host);
    heap_end(pinned);
    heap_end(plain);
    heap_end(plain);
    heap_begin(NULL, 5, NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    cudaFree(NULL);
    if (strcmp(way, "book") == 0)
        all_kinds();
    else if (strcmp(way, "threads") == 0)
        with_threads();
    else if (strcmp(way, "fork") == 0)
        with_child();
    else if (strcmp(way, "nested") == 0)
        with_nested();
    else if (strcmp(way, "hostile") == 0)
        with_what_is_none();
#ifndef REAL_NVTX
    else if (strcmp(way, "version") == 0 && argc > 3) {
        module_version = structure_version = (uint16_t)strtoul(argv[2], NULL, 0);
        structure_more = (uint16_t)atoi(argv[3]);
        all_kinds();
    } else if (strcmp(way, "other") == 0) {
        module_id = 2;
        all_kinds();
    }
#endif
    else
        return 2;
    tell();
    return 0;
}
