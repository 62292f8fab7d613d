/*
 * Drives a fuzz target where libFuzzer does not: what was found before and the seeds as they are, then the
 * seeds changed at random for MILLISECONDS (2000). Prints TAP.
 *
 * Usage: fuzz_X [MILLISECONDS [RANDOM_SEED]], or fuzz_X --seeds DIRECTORY to write the seeds there.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { MAX = 4 << 20, CHANGES = 12 };

static uint8_t seed[MAX];

static int write_seeds(const char *directory)
{
    char path[4096];
    size_t size;

    for (unsigned number = 0; (size = fuzz_seed(number, seed, MAX)) != 0; number++) {
        snprintf(path, sizeof path, "%s/seed-%u", directory, number);
        FILE *file = fopen(path, "w");
        if (!file || fwrite(seed, 1, size, file) != size || fclose(file) != 0)
            return 1;
    }
    return 0;
}

#ifdef MS_LIBFUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *directory = getenv("FUZZ_SEEDS");

    (void)argc;
    (void)argv;
    return directory ? write_seeds(directory) : 0;
}

#else

static uint8_t data[MAX];
static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t interesting(void)
{
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fff,
                                      0xffff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      INT64_MAX,
                                      (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX};

    return next() % 4 ? values[next() % (sizeof values / sizeof *values)] : next();
}

/* A place in data[]; half of them where there is something to break. */
static size_t place(size_t size)
{
    size_t at = next() % size;

    for (int tries = 0; tries < 64 && next() % 2 && !data[at]; tries++)
        at = next() % size;
    return at;
}

static size_t change(size_t size)
{
    size_t at = place(size), width = (size_t)1 << next() % 4;
    uint64_t value = interesting();

    switch (next() % 8) {
    case 0:
        return next() % 8 ? size : 1 + next() % size;
    case 1:
        data[at] ^= (uint8_t)(1u << next() % 8);
        break;
    case 2:
        for (size_t from = place(size), i = 0; i < 64 && at + i < size && from + i < size; i++)
            data[at + i] = data[from + i];
        break;
    default:
        at -= at % width;
        if (at + width <= size)
            memcpy(data + at, &value, width);
    }
    return size;
}

#pragma weak LLVMFuzzerCustomMutator

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size)
{
    (void)bytes; /* always data[] */
    (void)max_size;
    return size ? change(size) : 0;
}

static size_t mutate(size_t size)
{
    if (LLVMFuzzerCustomMutator && next() % 4)
        return LLVMFuzzerCustomMutator(data, size, MAX, (unsigned)next());
    return change(size);
}

static void try_found(void)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/tests/fuzz/found/%s", top ? top : ".", fuzz_name);
    DIR *directory = opendir(path);
    if (!directory || chdir(path) != 0)
        abort();
    while ((entry = readdir(directory)) != NULL) {
        FILE *file = *entry->d_name == '.' ? NULL : fopen(entry->d_name, "r");
        if (file) {
            LLVMFuzzerTestOneInput(data, fread(data, 1, MAX, file));
            fclose(file);
        }
    }
    closedir(directory);
    if (chdir("/") != 0)
        abort();
}

/* In a child, so that what it dies of can be told with the number that brings it back. */
static void fuzz(uint64_t milliseconds)
{
    unsigned seeds = 0, rounds = 0;
    uint64_t end = now_ms() + milliseconds;
    size_t size;

    alarm(20);
    try_found();
    for (; (size = fuzz_seed(seeds, seed, MAX)) != 0; seeds++)
        LLVMFuzzerTestOneInput(seed, size);
    for (; now_ms() < end; rounds++) {
        size = fuzz_seed(rounds % seeds, seed, MAX);
        memcpy(data, seed, size);
        for (uint64_t i = 1 + next() % CHANGES; i && size; i--)
            size = mutate(size);
        alarm(20); /* an input that is never done with */
        LLVMFuzzerTestOneInput(data, size);
    }
    printf("# %u inputs\n", rounds);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    int status;

    if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
        return write_seeds(argv[2]);
    state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid();
    state = state ? state : 1;
    printf("1..1\n# random seed %llu\n", (unsigned long long)state);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        fuzz(argc > 1 ? strtoull(argv[1], NULL, 0) : 2000);
    waitpid(child, &status, 0);
    printf("%s 1 - nothing breaks the reader (status %#x)\n", status == 0 ? "ok" : "not ok",
           (unsigned)status);
    return status != 0;
}

#endif
