/*
 * work THREADS STEPS SEED [hold]: threads that make, map, write, share, unmap and give back handles and plain
 * blocks at random, each looking whether its memory still holds what it wrote. It keeps a book of its own and
 * prints the bytes that are live at the end. A status other than success has to be one that the environment
 * asked for: WORK_STATUS. With "hold" it then waits to be killed.
 */
#include <pthread.h>
#include <stdint.h>

#include "tests/acl/acl_test.h"

enum { SLOTS = 12 };

struct slot {
    aclrtDrvMemHandle handle; /* NULL: freed or none */
    char *va;                 /* reserved, and mapped if `mapped` */
    void *block;              /* or a plain block */
    size_t bytes;
    bool mapped;
    unsigned char value;
};

struct worker {
    pthread_t thread;
    uint64_t random;
    int device;
    struct slot slots[SLOTS];
};

static int allowed, steps;
static atomic_int wrong;
static atomic_llong refused;

static uint32_t draw(struct worker *w, uint32_t below)
{
    w->random = w->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static void complain(const char *what, int status)
{
    if (atomic_fetch_add(&wrong, 1) < 10)
        printf("%s: %d\n", what, status);
}

/* True for success; false where the environment asked for a failure. */
static bool good(aclError status, const char *what)
{
    if (status == ACL_SUCCESS)
        return true;
    atomic_fetch_add(&refused, 1);
    if (status != allowed && status != ACL_ERROR_RT_MEMORY_ALLOCATION)
        complain(what, status);
    return false;
}

static void verify(struct slot *s)
{
    const char *at = s->block ? s->block : s->va;
    unsigned char ends[2] = {(unsigned char)(s->value + 1), (unsigned char)(s->value + 1)};

    if (good(aclrtMemcpy(&ends[0], 1, at, 1, ACL_MEMCPY_DEVICE_TO_HOST), "read") && ends[0] != s->value)
        complain("somebody else's bytes at the beginning", ends[0]);
    if (good(aclrtMemcpy(&ends[1], 1, at + s->bytes - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST), "read") &&
        ends[1] != s->value)
        complain("somebody else's bytes at the end", ends[1]);
}

static void make(struct worker *w, struct slot *s)
{
    aclrtPhysicalMemProp prop = physical_of((uint32_t)w->device);
    void *va = NULL;

    s->bytes = (1 + draw(w, 3)) * 2 * MIB;
    s->value = (unsigned char)(1 + draw(w, 250));
    if (draw(w, 5) == 0) {
        s->bytes -= draw(w, 4096);
        if (!good(aclrtMallocAlign32(&s->block, s->bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMallocAlign32"))
            s->block = NULL;
        else if (!good(aclrtMemset(s->block, s->bytes, s->value, s->bytes), "aclrtMemset"))
            s->value = 0;
        return;
    }
    if (!good(aclrtMallocPhysical(&s->handle, s->bytes, &prop, 0), "aclrtMallocPhysical")) {
        s->handle = NULL;
        return;
    }
    if (!good(aclrtReserveMemAddress(&va, s->bytes, 0, NULL, 1), "aclrtReserveMemAddress"))
        return;
    s->va = va;
    s->mapped = good(aclrtMapMem(va, s->bytes, 0, s->handle, 0), "aclrtMapMem");
    if (s->mapped && !good(aclrtMemset(va, s->bytes, s->value, s->bytes), "aclrtMemset"))
        s->value = 0;
}

/* Takes a slot apart, as far as the vendor lets it; the handle may go before its mapping. */
static void unmake(struct worker *w, struct slot *s)
{
    uint64_t shared;

    if (s->value && (s->block || s->mapped))
        verify(s);
    if (s->block) {
        if (good(aclrtFree(s->block), "aclrtFree"))
            s->block = NULL;
        return;
    }
    if (s->handle && draw(w, 16) == 0)
        aclrtMemExportToShareableHandle(s->handle, ACL_MEM_HANDLE_TYPE_NONE, 0, &shared);
    bool early = draw(w, 6) == 0;
    if (early && s->handle && good(aclrtFreePhysical(s->handle), "aclrtFreePhysical"))
        s->handle = NULL;
    if (s->mapped && good(aclrtUnmapMem(s->va), "aclrtUnmapMem"))
        s->mapped = false;
    if (s->va && !s->mapped && good(aclrtReleaseMemAddress(s->va), "aclrtReleaseMemAddress"))
        s->va = NULL;
    if (s->handle && !s->mapped && good(aclrtFreePhysical(s->handle), "aclrtFreePhysical"))
        s->handle = NULL;
}

static bool is_empty(const struct slot *s)
{
    return !s->handle && !s->mapped && !s->block && !s->va;
}

static void *run(void *arg)
{
    struct worker *w = arg;

    while (!good(aclrtSetDevice(w->device), "aclrtSetDevice"))
        ;
    for (int i = 0; i < steps; i++) {
        struct slot *s = &w->slots[draw(w, SLOTS)];
        if (is_empty(s))
            make(w, s);
        else
            unmake(w, s);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[16] = {0};
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    long long live = 0;

    allowed = getenv("WORK_STATUS") ? atoi(getenv("WORK_STATUS")) : 0;
    steps = argc > 2 ? atoi(argv[2]) : 100;
    aclInit(NULL);
    for (int i = 0; i < threads; i++) {
        workers[i].random = (uint64_t)(argc > 3 ? atoi(argv[3]) : 1) * 1000 + (uint64_t)i;
        workers[i].device = i % 2;
        pthread_create(&workers[i].thread, NULL, run, &workers[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < threads; i++)
        for (int k = 0; k < SLOTS; k++) {
            const struct slot *s = &workers[i].slots[k];
            if (s->handle || s->mapped || s->block)
                live += (long long)s->bytes;
        }
    printf("live %lld\n", live);
    fprintf(stderr, "# %lld calls were refused\n", atomic_load(&refused));
    fflush(stdout);
    while (argc > 4)
        pause();
    return atomic_load(&wrong) != 0;
}
