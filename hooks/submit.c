/* submit.c - see submit.h. Runs in the program's threads: the usual way takes no lock, allocates nothing and
 * asks the driver at most which context is current.
 *
 * Slots are given out under the resolve lock and read without: one is written before its wrapper is handed
 * out, and never changed. */
#include "hooks/submit.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "hooks/init.h"
#include "hooks/resolve.h"
#include "hooks/section.h"

#define LEGACY_STREAM 1u
#define OWN_STREAM    2u

atomic_bool ms_submit_on;

/* What the thread's latest streams are; a record holds as long as no stream and no context has ended. */
static MS_TLS struct memory {
    uint64_t handle, context;
    struct ms_pool_stream *stream;
    uint32_t life;
} remembered[4];

/* MEMSHIM_FREE=ordered, which is withdrawn, was what turned it on. */
void ms_submit_start(void)
{
    atomic_store_explicit(&ms_submit_on, false, memory_order_release);
}

void ms_submit_give_up(const char *format, const char *what)
{
    char line[200], reason[160];

    snprintf(reason, sizeof(reason), format, what);
    snprintf(line, sizeof(line), "MEMSHIM_FREE=ordered goes on as fence: %s", reason);
    ms_pool_ordered_off(line);
}

void ms_submit_off(unsigned row)
{
    struct ms_section section;
    char format[160];

    if (!atomic_load_explicit(&ms_submit_on, memory_order_relaxed) || ms_thread.depth > 0 ||
        !ms_init_active())
        return;
    ms_section_enter(&section);
    snprintf(format, sizeof(format), "%%s was called: %s", ms_submit_rows[row].off);
    ms_submit_give_up(format, ms_submit_rows[row].symbol);
    ms_section_leave(&section);
}

void ms_submit_next(unsigned row)
{
    struct ms_section section;

    ms_section_enter(&section);
    ms_submit_give_up("%s was looked up with dlsym(RTLD_NEXT)", ms_submit_rows[row].symbol);
    ms_section_leave(&section);
}

/* --- around a call --- */

static uint64_t context_of(const struct ms_gpu *gpu, uint64_t handle)
{
    CUcontext context = NULL;

    if (handle > OWN_STREAM) {
        if (!gpu->stream_get_ctx ||
            gpu->stream_get_ctx((CUstream)(uintptr_t)handle, &context) != CUDA_SUCCESS)
            return 0;
    } else if (!gpu->ctx_get_current || gpu->ctx_get_current(&context) != CUDA_SUCCESS) {
        return 0;
    }
    return (uintptr_t)context;
}

static struct ms_pool_stream *stream_of(const struct ms_gpu *gpu, uint64_t handle)
{
    uint64_t context = handle <= OWN_STREAM ? context_of(gpu, handle) : 0;
    uint32_t life = atomic_load_explicit(&ms_pool_streams_life, memory_order_acquire);
    struct memory *memory =
        &remembered[(handle ^ handle >> 4 ^ handle >> 9 ^ context >> 4) % MS_ARRAY_LEN(remembered)];
    struct ms_section section;

    if (MS_LIKELY(memory->stream && memory->handle == handle && memory->context == context &&
                  memory->life == life))
        return memory->stream;
    if (handle <= OWN_STREAM && !context)
        return NULL;
    ms_section_enter(&section);
    memory->stream = ms_pool_stream_find(gpu, context ? context : context_of(gpu, handle), handle);
    memory->handle = handle;
    memory->context = context;
    memory->life = life;
    ms_section_leave(&section);
    return memory->stream;
}

struct ms_pool_stream *ms_submit_stream(const struct ms_gpu *gpu, uint64_t handle)
{
    return atomic_load_explicit(&ms_submit_on, memory_order_relaxed) && gpu
               ? stream_of(gpu, handle ? handle : LEGACY_STREAM)
               : NULL;
}

static bool begin_slowly(const struct ms_gpu *gpu, struct ms_pool_stream *stream)
{
    struct ms_section section;
    bool begun;

    ms_section_enter(&section);
    begun = ms_pool_submit_begin(gpu, stream);
    ms_section_leave(&section);
    return begun;
}

static void reach(const struct ms_pool_stream *stream, enum ms_reach reach, uint64_t first, uint64_t second)
{
    struct ms_section section;

    ms_section_enter(&section);
    if (reach == MS_REACH_ANY) {
        ms_pool_submit_reaches(stream, 0);
    } else {
        if (first)
            ms_pool_submit_reaches(stream, first);
        if (second)
            ms_pool_submit_reaches(stream, second);
    }
    ms_section_leave(&section);
}

/* Without a context, or with a handle that is none, the driver refuses; else there is a stream that cannot be
 * followed. */
static void be_strange(const struct ms_gpu *gpu, uint64_t handle)
{
    struct ms_section section;
    uint64_t context;

    ms_section_enter(&section);
    context = context_of(gpu, handle);
    if (context)
        ms_pool_submit_stranger(context, handle);
    ms_section_leave(&section);
}

/* A handler that interrupted memshim itself: nothing can be looked up now. */
static void unseen(void)
{
    ms_pool_ordered_off(NULL);
}

void ms_submit_begin(struct ms_submit *submit, unsigned row, const struct ms_gpu *gpu, uint64_t handle,
                     uint64_t first, uint64_t second)
{
    const struct ms_submit_info *info = &ms_submit_rows[row];
    struct ms_pool_stream *stream;

    submit->stream = NULL;
    if (ms_thread.depth > 0) {
        unseen();
        return;
    }
    if (!gpu || !ms_init_active())
        return;
    if (!handle)
        handle = info->per_thread ? OWN_STREAM : LEGACY_STREAM;
    stream = stream_of(gpu, handle);
    if (MS_UNLIKELY(!stream)) {
        be_strange(gpu, handle);
        return;
    }
    if (MS_UNLIKELY(!ms_pool_submit_is_plain(stream)) && !begin_slowly(gpu, stream))
        return;
    if (MS_UNLIKELY(info->reach != MS_REACH_OWN && ms_pool_contexts() > 1))
        reach(stream, info->reach, first, second);
    submit->stream = stream;
}

void ms_submit_end(const struct ms_submit *submit)
{
    if (MS_LIKELY(submit->stream != NULL))
        ms_pool_submit_end(submit->stream);
}

/* --- lookups --- */

int ms_submit_row_of_symbol(const char *symbol)
{
    for (int row = 0; row < MS_SUBMIT_COUNT; row++) {
        if (strcmp(ms_submit_rows[row].symbol, symbol) == 0)
            return row;
    }
    return -1;
}

void *ms_submit_wrap_locked(unsigned row, void *pointer, const struct ms_gpu *gpu)
{
    for (unsigned k = 0; k < MS_SUBMIT_SLOTS; k++) {
        struct ms_submit_slot *slot = &ms_submit_slots[row][k];
        if (slot->real && slot->real != pointer)
            continue;
        if (!slot->real)
            *slot = (struct ms_submit_slot){pointer, gpu};
        return ms_submit_rows[row].wrappers[k];
    }
    ms_submit_give_up("more variants of %s are loaded than there are wrappers", ms_submit_rows[row].symbol);
    return pointer;
}

/* The row that the lookup's own rule leads to: the newest that is not newer than the version, the thread's
 * twin if asked for. */
static int row_of_lookup(const char *name, int version, bool per_thread, unsigned *candidates_p)
{
    int best = -1;

    *candidates_p = 0;
    for (int row = 0; row < MS_SUBMIT_COUNT; row++) {
        const struct ms_submit_info *r = &ms_submit_rows[row];
        if (strcmp(r->lookup, name) != 0)
            continue;
        ++*candidates_p;
        if ((r->per_thread && !per_thread) || (version && r->version > version))
            continue;
        if (best < 0 || r->version > ms_submit_rows[best].version ||
            (r->version == ms_submit_rows[best].version && r->per_thread))
            best = row;
    }
    return best;
}

/* The row of this name whose function in the library is exactly `pointer`. */
static int row_of_pointer(const struct ms_library *library, const void *pointer, const char *name)
{
    for (int row = 0; library && row < MS_SUBMIT_COUNT; row++) {
        if (strcmp(ms_submit_rows[row].lookup, name) == 0 &&
            ms_library_symbol_locked(library, ms_submit_rows[row].symbol) == (uintptr_t)pointer)
            return row;
    }
    return -1;
}

void *ms_submit_pointer_locked(void *pointer, const char *name, int version, bool per_thread)
{
    const struct ms_library *library = ms_library_at_locked((uintptr_t)pointer, MS_API_CUDA_DRIVER);
    const struct ms_gpu *gpu =
        library ? &library->gpu : ms_library_bind_locked(MS_ROW_cuMemAlloc_v2, 0, MS_NODE_NONE, false).gpu;
    unsigned candidates;
    int named = row_of_lookup(name, version, per_thread, &candidates),
        row = candidates ? row_of_pointer(library, pointer, name) : -1;

    if (!candidates) {
        if (name[0] == 'c' && name[1] == 'u' && !ms_submit_knows(name))
            ms_submit_give_up("%s was looked up, which memshim does not know", name);
        return pointer;
    }
    row = row >= 0 ? row : named;
    if (row < 0) {
        ms_submit_give_up("a variant of %s was looked up that memshim does not know", name);
        return pointer;
    }
    return ms_submit_wrap_locked((unsigned)row, pointer, gpu);
}
