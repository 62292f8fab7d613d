/* replay.c - traces of requests, replayed through the pool over the fake driver. A tool, and a library for a
 * test.
 *
 * replay [-n] [-v] [-i] [-a KIB] [-c MIB] [-x PERCENT] [-s TIMES] [-k MIB] TRACE...: live peak, reserved
 * peak, their ratio, calls of the vendor's, and the least capacity (not with -n). -v: memory is made of
 * handles. -i: what is freed may be used again at once. -a: MEMSHIM_ALIGN. -c: how much the device has where
 * it is not looked for what is enough; -x: the same as a share of the live peak. -s: so often in one process,
 * with all freed and a wait for the device after each time: calls are those of the last time. -k:
 * MEMSHIM_KEEP, set. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define MIB 1048576.0

struct event {
    uint64_t id, bytes;
    bool alloc;
};

struct trace {
    struct event *events;
    uint64_t count, ids, live_peak, frees;
};

static struct trace read_trace(const char *path)
{
    struct trace t = {0};
    char line[256], op;
    uint64_t room = 0, live = 0, us, stream;
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(2);
    }
    while (fgets(line, sizeof(line), file)) {
        struct event e;
        if (line[0] == '#' ||
            sscanf(line, "%" SCNu64 " %c %" SCNu64 " %" SCNu64 " %" SCNu64, &us, &op, &e.id, &e.bytes,
                   &stream) != 5 ||
            (op != 'a' && op != 'f')) /* the others are pieces of blocks */
            continue;
        e.alloc = op == 'a';
        if (t.count == room) {
            room = room ? room * 2 : 4096;
            t.events = realloc(t.events, room * sizeof(e));
        }
        t.events[t.count++] = e;
        t.ids = e.id >= t.ids ? e.id + 1 : t.ids;
        live += e.alloc ? e.bytes : -e.bytes;
        t.frees += !e.alloc;
        t.live_peak = live > t.live_peak ? live : t.live_peak;
    }
    fclose(file);
    return t;
}

static bool immediate;
static uint64_t align = 64 << 10, times = 1, keep_mib = UINT64_MAX;

static void give(uint64_t address)
{
    struct ms_pool_block block;
    int status;
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED) {
        fprintf(stderr, "a free was refused\n");
        exit(1);
    }
    ms_pool_free_end(&block);
}

/* Whether every request was answered. */
static bool replay_once(const struct trace *t, const struct ms_gpu *gpu, uintptr_t context,
                        uint64_t *addresses)
{
    bool fits = true;
    for (uint64_t i = 0; i < t->count && fits; i++) {
        const struct event *e = &t->events[i];
        struct ms_pool_block block;
        int status;
        if (e->alloc) {
            fits =
                ms_pool_alloc(gpu, context, 0, e->bytes, MS_POOL_ANYHOW, &block, &status) == MS_POOL_SERVED;
            addresses[e->id] = fits ? block.address : 0;
        } else {
            give(addresses[e->id]);
            addresses[e->id] = 0;
        }
        if (getenv("REPLAY_CHECK")) {
            const char *wrong = ms_pool_check();
            if (wrong) {
                fprintf(stderr, "event %" PRIu64 ": %s\n", i, wrong);
                exit(1);
            }
        }
    }
    return fits;
}

/* All of it is freed, and the program waits. */
static void end_of_step(const struct trace *t, struct fake_context *context, uint64_t *addresses)
{
    for (uint64_t id = 0; id < t->ids; id++) {
        if (addresses[id])
            give(addresses[id]);
        addresses[id] = 0;
    }
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    fake_finish(context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
}

static bool replay(const struct trace *t, uint64_t capacity, struct ms_pool_figures *f)
{
    const struct ms_gpu *gpu = fake_fresh(capacity);
    struct fake_context *context = fake_context(0);
    uint64_t *addresses = calloc(t->ids, sizeof(*addresses)), allocs = 0, frees = 0;
    bool fits = true;
    fake_policy.align_bytes = align;
    fake_policy.keep_is_set = keep_mib != UINT64_MAX;
    if (keep_mib != UINT64_MAX)
        fake_sizes.keep = keep_mib << 20;
    if (immediate)
        fake_policy.free_rule = MS_POOL_IMMEDIATE;
    fake_set_current(context);
    for (uint64_t i = 0; i < times && fits; i++) {
        ms_pool_figures(0, f);
        allocs = f->vendor_allocs;
        frees = f->vendor_frees;
        fits = replay_once(t, gpu, (uintptr_t)context, addresses);
        if (times > 1)
            end_of_step(t, context, addresses);
    }
    ms_pool_figures(0, f);
    f->vendor_allocs -= allocs;
    f->vendor_frees -= frees;
    free(addresses);
    return fits;
}

static uint64_t least_capacity(const struct trace *t)
{
    struct ms_pool_figures f;
    uint64_t step = 2u << 20, low = t->live_peak / step, high = low * 2 + 64;
    if (t->live_peak > ((uint64_t)1 << 30))
        step *= 4, low /= 4, high /= 4;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (replay(t, middle * step, &f))
            high = middle;
        else
            low = middle + 1;
    }
    return low * step;
}

int main(int argc, char **argv)
{
    bool capacity = true;
    uint64_t room = (uint64_t)1 << 44, percent = 0;
    printf("%-36s %9s %9s %6s %6s %6s %7s %9s %6s %6s\n", "trace", "live MiB", "reserved", "ratio", "allocs",
           "frees", "fences/k", "least", "ratio", "tight");
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v")) {
            fake_vmm = true;
            continue;
        }
        if (!strcmp(argv[i], "-i")) {
            immediate = true;
            continue;
        }
        if (!strcmp(argv[i], "-a") && i + 1 < argc) {
            align = strtoull(argv[++i], NULL, 10) << 10;
            continue;
        }
        if (!strcmp(argv[i], "-n")) {
            capacity = false;
            continue;
        }
        if (!strcmp(argv[i], "-c") && i + 1 < argc) {
            room = strtoull(argv[++i], NULL, 10) << 20;
            continue;
        }
        if (!strcmp(argv[i], "-x") && i + 1 < argc) {
            percent = strtoull(argv[++i], NULL, 10);
            continue;
        }
        if (!strcmp(argv[i], "-s") && i + 1 < argc) {
            times = strtoull(argv[++i], NULL, 10);
            continue;
        }
        if (!strcmp(argv[i], "-k") && i + 1 < argc) {
            keep_mib = strtoull(argv[++i], NULL, 10);
            continue;
        }
        struct ms_pool_figures f, tight = {0};
        struct trace t = read_trace(argv[i]);
        const char *name = strrchr(argv[i], '/');
        bool enough = replay(&t, percent ? t.live_peak / 100 * percent : room, &f);
        uint64_t least = capacity ? least_capacity(&t) : 0;
        bool fits = capacity && replay(&t, t.live_peak + t.live_peak / 20, &tight);
        printf("%-36.36s %9.1f %9.1f %6.3f %6" PRIu64 " %6" PRIu64 " %7.1f %9.1f %6.3f %6" PRIu64 "%s\n",
               name ? name + 1 : argv[i], t.live_peak / MIB, f.peak_reserved_bytes / MIB,
               (double)f.peak_reserved_bytes / t.live_peak, f.vendor_allocs, f.vendor_frees,
               t.frees ? 1000.0 * f.fences / t.frees : 0, least / MIB, (double)least / t.live_peak,
               tight.vendor_allocs + tight.vendor_frees,
               !enough             ? " (refused)"
               : fits || !capacity ? ""
                                   : " (does not fit)");
        free(t.events);
    }
    return 0;
}
