/* serve_policy.c - the pool's beginning: MEMSHIM_* become its policy, and what it tells becomes part of the
 * record.
 *
 * Owns the policy and the observer, which the pool reads from then on. The observer runs in the program's
 * threads, inside a hook scope, with no lock held; it takes the record's locks only. */
#include "hooks/serve/serve.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/options/options.h"
#include "base/thread/slow_path.h"
#include "hooks/follow/balance.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/neighbours.h"
#include "hooks/serve/serve_handles.h"
#include "hooks/lookup/unknown.h"
#include "pool/stream/stream.h"

#define REFRESH_NS 10000000u

_Atomic bool ms_serve_on;
_Atomic uint32_t ms_serve_due;
bool ms_serve_strictly;

/* Of a share of what is live: a program that has little may be this far ahead of the device all the same. It
 * bounds the memory that the pending list takes of such a program, and how often its frees wait. */
#define PENDING_LEAST_BYTES ((uint64_t)32 << 20)

static uint64_t limbo_of(uint64_t live_bytes)
{
    uint64_t bytes = ms_option_size(MS_OPT_LIMBO, live_bytes);

    return ms_option_is_percent(MS_OPT_LIMBO) && bytes < PENDING_LEAST_BYTES ? PENDING_LEAST_BYTES : bytes;
}

static uint64_t serve_policy_size_of(char option, uint64_t total_bytes)
{
    switch (option) {
    case 'P':
        return ms_option_size(MS_OPT_PREALLOC, total_bytes);
    case 'K':
        return ms_option_size(MS_OPT_KEEP, total_bytes);
    case 'B':
        return limbo_of(total_bytes);
    default:
        return ms_option_size(MS_OPT_SINGLE_MIN, total_bytes);
    }
}

static struct ms_pool_policy policy = {
    .learn_limit = ms_limit_learn, .size_of = serve_policy_size_of, .ask_others = ms_neighbours_ask};

/* --- what the pool tells --- */

static void tell_figures(int device, const struct ms_pool_figures *figures)
{
    ms_ledger_pool(device, figures);
    ms_neighbours_tell(device, figures->parts.cached);
    ms_balance_grew(device);
}

static void segment_removed(const struct ms_segment_record *segment)
{
    ms_ledger_segment_removed(segment->address);
}

static void serve_policy_note(const char *line)
{
    ms_diagnostic(MS_LOG_INFO, "pool", "%s", line);
}

static void warn(const char *line)
{
    ms_diagnostic(MS_LOG_WARN, "pool", "%s", line);
}

static const struct ms_pool_observer observer = {.segment_added = ms_ledger_segment_added,
                                                 .segment_removed = segment_removed,
                                                 .figures = tell_figures,
                                                 .note = serve_policy_note,
                                                 .warn = warn};

/* --- all of it at one moment, for the report --- */

/* The end of a process in a signal handler that interrupted memshim: this very thread may hold the pool's
 * locks. */
static bool stop(unsigned timeout_ms)
{
    if (ms_thread.depth > 1 || !ms_recycled_stop(timeout_ms))
        return false;
    if (ms_pool_stop(timeout_ms))
        return true;
    ms_recycled_go();
    return false;
}

static void go(void)
{
    ms_pool_go();
    ms_recycled_go();
}

static void tell_all_figures(void)
{
    struct ms_pool_figures figures;

    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (!ms_ledger_device_known(device))
            continue;
        ms_pool_figures(device, &figures);
        if (figures.vendor_allocs || figures.served_allocs)
            ms_snapshot_put_pool(device, &figures);
    }
    ms_stream_each(ms_snapshot_put_stream_arena);
    ms_recycled_tell_figures();
}

static void tell_piece(void *arg, const struct ms_piece_record *piece)
{
    (void)arg;
    ms_snapshot_put_piece(piece);
}

static void tell_all_pieces(void)
{
    ms_pool_walk(tell_piece, NULL);
    ms_recycled_tell_pieces();
}

static const struct ms_pool_source source = {
    .stop = stop, .tell_figures = tell_all_figures, .tell_pieces = tell_all_pieces, .go = go};

/* --- what is loaded --- */

struct search {
    const char *const *prefixes;
    const char *found;
};

static int serve_policy_look_at(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const char *slash = strrchr(info->dlpi_name ? info->dlpi_name : "", '/');
    const char *name = slash ? slash + 1 : info->dlpi_name ? info->dlpi_name : "";
    struct search *search = arg;

    (void)bytes;
    for (const char *const *prefix = search->prefixes; *prefix && !search->found; prefix++) {
        if (strncmp(name, *prefix, strlen(*prefix)) == 0)
            search->found = *prefix;
    }
    return search->found != NULL;
}

static const char *loaded(const char *const *prefixes)
{
    struct search search = {prefixes, NULL};

    ms_each_object(serve_policy_look_at, &search);
    return search.found;
}

/* The driver loads what CUDA_INJECTION64_PATH names; compute-sanitizer and the profilers come that way, or by
 * preloading. cuda-gdb sets CUDA_MEMCHECK for the program whose accesses it checks. */
const char *ms_serve_tool(void)
{
    static const char *const tools[] = {"libsanitizer-collection", "libsanitizer-public",
                                        "libInterceptorInjection", "libTreeLauncher",
                                        "libcuda-injection",       NULL};
    const char *memcheck = secure_getenv("CUDA_MEMCHECK"),
               *injection = secure_getenv("CUDA_INJECTION64_PATH");

    if (injection && *injection)
        return "an injected tool (CUDA_INJECTION64_PATH)";
    if (memcheck && *memcheck && strcmp(memcheck, "0") != 0)
        return "a memory checker (CUDA_MEMCHECK)";
    return loaded(tools);
}

/* --- beginning and end --- */

static void read_policy(void)
{
    static const uint8_t rules[] = {[MS_FREE_FENCE] = MS_POOL_FENCE,
                                    [MS_FREE_ORDERED] = MS_POOL_FENCE,
                                    [MS_FREE_STRICT] = MS_POOL_STRICT,
                                    [MS_FREE_IMMEDIATE] = MS_POOL_IMMEDIATE};
    static const uint8_t packs[] = {[MS_PACK_SMALL] = MS_POOL_PACK_SMALL,
                                    [MS_PACK_ALL] = MS_POOL_PACK_ALL,
                                    [MS_PACK_NONE] = MS_POOL_PACK_NONE};
    int64_t poison = ms_option_int(MS_OPT_POISON);
    _Static_assert(MS_ALIGN_2M == 5, "each value of MEMSHIM_ALIGN is twice the one before it");

    ms_serve_strictly = ms_option_int(MS_OPT_FREE) == MS_FREE_STRICT;
    policy.free_rule = rules[ms_option_int(MS_OPT_FREE)];
    policy.vmm = ms_option_int(MS_OPT_BACKING) == MS_BACKING_VMM;
    policy.pack = packs[ms_option_int(MS_OPT_PACK)];
    policy.poison_alloc = poison == MS_POISON_ALLOC || poison == MS_POISON_BOTH;
    policy.poison_free = poison == MS_POISON_FREE || poison == MS_POISON_BOTH;
    policy.keep_is_set = ms_option_source(MS_OPT_KEEP) != MS_SOURCE_DEFAULT;
    policy.large_whole = ms_option_source(MS_OPT_SINGLE_MIN) != MS_SOURCE_DEFAULT;
    policy.align_bytes = (uint64_t)65536 << ms_option_int(MS_OPT_ALIGN);
    policy.oom_wait_ms = (uint64_t)ms_option_int(MS_OPT_OOM_WAIT_MS);
}

void ms_serve_export_whole(void)
{
    __atomic_store_n(&policy.export_whole, true, __ATOMIC_RELAXED);
}

void ms_serve_align_pages(void)
{
    if (ms_option_source(MS_OPT_ALIGN) == MS_SOURCE_DEFAULT)
        __atomic_store_n(&policy.align_bytes, (uint64_t)65536 << MS_ALIGN_2M, __ATOMIC_RELAXED);
}

void ms_serve_large_whole(void)
{
    __atomic_store_n(&policy.large_whole, true, __ATOMIC_RELAXED);
}

void ms_serve_start(bool again)
{
    bool on = ms_option_int(MS_OPT_MODE) == MS_MODE_POOL;

    if (!on)
        return;
    if (!again) {
        read_policy();
        if (ms_option_int(MS_OPT_FREE) == MS_FREE_ORDERED)
            ms_diagnostic(MS_LOG_WARN, "options", "MEMSHIM_FREE=ordered is withdrawn, and means fence");
        ms_pool_init(&policy, &observer);
        ms_clock_tell_rests(&ms_serve_due, MS_SERVE_RESTED);
    }
    ms_ledger_set_pool_source(&source);
    atomic_store_explicit(&ms_serve_on, true, memory_order_release);
    ms_slow_path_clear(MS_SLOW_PATH_SERVICE);
    if (ms_serve_strictly || ms_serve_any_down())
        ms_slow_path_set(MS_SLOW_PATH_SERVICE);
}

void ms_serve_see_to_due(void)
{
    uint32_t due = atomic_exchange_explicit(&ms_serve_due, 0, memory_order_relaxed);

    if (due & MS_SERVE_RESTED) {
        ms_recycled_rested();
        ms_pool_rested();
    }
    if (due & MS_SERVE_ASKED)
        ms_neighbours_answer();
}

void ms_serve_refresh(void)
{
    static _Atomic uint64_t latest_ns;
    uint64_t now_ns = ms_clock_ns(), before_ns = atomic_load_explicit(&latest_ns, memory_order_relaxed);
    struct ms_pool_figures figures;

    if (now_ns - before_ns < REFRESH_NS || !atomic_compare_exchange_strong(&latest_ns, &before_ns, now_ns))
        return;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (!ms_ledger_device_known(device))
            continue;
        ms_pool_figures(device, &figures);
        if (figures.vendor_allocs)
            tell_figures(device, &figures);
    }
    ms_stream_each(ms_ledger_stream_arena);
}

void ms_serve_finish(void)
{
    if (!atomic_load_explicit(&ms_serve_on, memory_order_acquire) || !ms_ledger_touched())
        return;
    ms_unknown_tell();
    if (ms_serve_dropped_frees())
        ms_diagnostic(MS_LOG_WARN, "pool",
                      "%llu blocks were freed in signal handlers that interrupted memshim, and stay reserved",
                      (unsigned long long)ms_serve_dropped_frees());
}
