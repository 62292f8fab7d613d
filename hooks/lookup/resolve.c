/* resolve.c - what dlsym, cuGetProcAddress and the exported symbols answer with, where a name is ours.
 *
 * The real lookup is always asked first and its answer decides: a wrapper takes the place of exactly the
 * function that the program would have got. Called from early.c, from wrappers and from dispatch.c. */
#include "hooks/lookup/resolve.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "base/objects/elf.h"
#include "base/thread/guard.h"
#include "base/objects/objects.h"
#include "hooks/init.h"
#include "hooks/lookup/listeners.h"
#include "hooks/hook_scope.h"
#include "hooks/lookup/unknown.h"
#include "record/live/uses.h"

/* --- wrappers: a row has MS_WRAPPER_SLOTS of them; slot k holds the one real function that wrapper k calls.
 * Slots are taken under the resolve lock. One is given to another function only when its own went away with
 * its library: a program that still calls the old wrapper calls what it unloaded itself. --- */

struct ms_wrapped ms_wrapper_slots[MS_ROW_COUNT][MS_WRAPPER_SLOTS];

static bool is_loaded(enum ms_row row, const void *real)
{
    const struct ms_gpu *gpu;
    enum ms_row found;

    return ms_library_row_locked((uintptr_t)real, (int)row, &found, &gpu);
}

/* The slot that has this function, else an empty one, else one whose function is gone; -1 if there is
 * none. */
static int choose_locked(enum ms_row row, const void *real)
{
    int choice = -1;

    for (int k = 0; k < MS_WRAPPER_SLOTS && ms_wrapper_slots[row][k].target.real; k++) {
        if (ms_wrapper_slots[row][k].target.real == real)
            return k;
    }
    for (int k = MS_WRAPPER_SLOTS - 1; k >= 0; k--) {
        if (!ms_wrapper_slots[row][k].target.real)
            choice = k;
    }
    for (int k = 0; k < MS_WRAPPER_SLOTS && choice < 0; k++) {
        if (ms_wrapper_slots[row][k].of_library && !is_loaded(row, ms_wrapper_slots[row][k].target.real))
            choice = k;
    }
    return choice;
}

void *ms_wrapper_slot_take_locked(enum ms_row row, const struct ms_target *target)
{
    int k = choose_locked(row, target->real);

    if (k < 0)
        return NULL;
    if (ms_wrapper_slots[row][k].target.real != target->real)
        ms_wrapper_slots[row][k] = (struct ms_wrapped){*target, is_loaded(row, target->real)};
    return ms_rows[row]->wrappers[k];
}

/* --- lookups --- */

/* The row that cuGetProcAddress would answer (name, version, flags) with; -1 if none. A version that is not
 * known (0) decides only where the name has a single row. */
static int row_of_lookup(const char *name, int version, uint64_t flags)
{
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    int best = -1;
    unsigned candidates = 0;

    for (int row = 0; row < MS_ROW_COUNT; row++) {
        const struct ms_row_info *r = ms_rows[row];
        if (!r->lookup || strcmp(r->lookup, name) != 0 || (r->per_thread && !per_thread))
            continue;
        candidates++;
        if (version != 0 && r->version > version)
            continue;
        if (best < 0 || r->version > ms_rows[best]->version ||
            (r->version == ms_rows[best]->version && r->per_thread))
            best = row;
    }
    return version != 0 || candidates == 1 ? best : -1;
}

/* True of a row that is not hooked: its function stays the vendor's. */
static bool is_left_alone(int row)
{
    return row >= 0 && ms_rows[row]->class == MS_CLASS_USE && !ms_uses_wanted();
}

/* Launches are hooked for a status that hardly ever comes: not beside a tool that listens for them. */
static bool is_left_to_tools_locked(int row)
{
    return ms_rows[row]->class == MS_CLASS_LAUNCH && !ms_uses_wanted() &&
           ms_listener_is_there(ms_library_count_locked(MS_API_CUPTI) > 0);
}

static void *wrap_locked(enum ms_row row, const struct ms_target *target, void *pointer)
{
    void *wrapper = is_left_alone(row) || is_left_to_tools_locked(row)
                        ? pointer
                        : ms_wrapper_slot_take_locked(row, target);

    if (!wrapper && ms_rows[row]->class == MS_CLASS_LISTEN)
        ms_listener_unseen();
    if (!wrapper)
        ms_ledger_blind_spot(
            "more variants of one function are loaded than there are wrappers; the later ones are not seen");
    return wrapper ? wrapper : pointer;
}

/* A version that no row is for may have other arguments: a wrapper that knows them would lose some. */
static void *leave_later_locked(void *pointer, int row, const char *name)
{
    ms_ledger_blind_spot("a function was looked up in a later version than memshim has a row for");
    return ms_rows[row]->class == MS_CLASS_CAPTURE ? ms_unknown_trampoline_locked(pointer, name) : pointer;
}

void *ms_resolve_driver_pointer(void *pointer, const char *name, int version, uint64_t flags)
{
    int preferred = name ? row_of_lookup(name, version, flags) : -1;
    struct ms_target target = {.real = pointer};
    enum ms_row row;
    enum ms_api api;
    void *answer = pointer;

    if (!pointer || ms_is_ours((uintptr_t)pointer) || is_left_alone(preferred))
        return pointer;
    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    if (ms_library_row_locked((uintptr_t)pointer, preferred, &row, &target.gpu)) {
        answer = wrap_locked(row, &target, pointer);
    } else if (preferred >= 0 && ms_library_is_later_locked((uintptr_t)pointer, name)) {
        answer = leave_later_locked(pointer, preferred, name);
    } else if (preferred >= 0) {
        target.gpu = ms_library_bind_locked(preferred, 0, MS_NODE_NONE, false).gpu;
        answer = wrap_locked(preferred, &target, pointer);
        ms_ledger_divergent();
    } else if (name && MS_UNLIKELY(ms_unknown_is(name, &api))) {
        answer = ms_unknown_trampoline_locked(pointer, name);
    }
    ms_unlock(&ms_resolve_lock);
    if (answer != pointer)
        ms_ledger_route(MS_ROUTE_GET_PROC);
    return answer;
}

/* dlsym found `pointer` under an owned name: the wrapper, if it lies in a library of that interface. */
static void *wrap_symbol(int named, void *pointer)
{
    const struct ms_library *library;
    struct ms_target target = {.real = pointer};
    void *answer = pointer;
    enum ms_row row;

    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    library = ms_library_at_locked((uintptr_t)pointer, ms_rows[named]->api);
    if (library && ms_library_row_locked((uintptr_t)pointer, named, &row, &target.gpu))
        answer = wrap_locked(row, &target, pointer);
    ms_unlock(&ms_resolve_lock);
    if (answer != pointer)
        ms_ledger_route(MS_ROUTE_DLSYM);
    return answer;
}

/* The real lookup. Both RTLD_DEFAULT and the main program's handle find our export before the vendor's
 * function; what they would have found without us comes after us in the global scope, or, for RTLD_DEFAULT,
 * among the caller's own dependencies. */
static void *resolve_look_up(void *handle, const char *name, const char *version, const void *caller, int row)
{
    void *found = version ? ms_real_dlvsym(handle, name, version) : ms_real_dlsym(handle, name);
    struct ms_target own = {NULL, NULL};

    if (!found || !ms_is_ours((uintptr_t)found))
        return found;
    found = version ? ms_real_dlvsym(RTLD_NEXT, name, version) : ms_real_dlsym(RTLD_NEXT, name);
    if (found || handle != RTLD_DEFAULT)
        return found;
    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    own = ms_library_bind_locked(row, (uintptr_t)caller, MS_NODE_NONE, true);
    ms_unlock(&ms_resolve_lock);
    if (own.real)
        dlerror(); /* the lookup above left an error that the program would not have seen */
    return own.real;
}

void *ms_resolve_symbol(void *handle, const char *name, const char *version, const void *caller,
                        enum ms_row row)
{
    bool active = ms_init_active();
    struct ms_hook_scope scope;
    void *answer;

    ms_hook_scope_enter(&scope);
    answer = resolve_look_up(handle, name, version, caller, row);
    if (answer && active)
        answer = wrap_symbol(row, answer);
    ms_hook_scope_leave(&scope);
    return answer;
}

void *ms_resolve_unseen_symbol(void *handle, const char *name, const char *version, enum ms_api api)
{
    struct ms_hook_scope scope;
    void *answer;

    ms_hook_scope_enter(&scope);
    answer = version ? ms_real_dlvsym(handle, name, version) : ms_real_dlsym(handle, name);
    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    if (answer && ms_library_at_locked((uintptr_t)answer, api))
        answer = ms_unknown_trampoline_locked(answer, name);
    else if (!answer && handle == RTLD_DEFAULT && ms_library_count_locked(api) > 0)
        ms_unknown_note(name); /* looked up where its caller alone may find it */
    ms_unlock(&ms_resolve_lock);
    ms_hook_scope_leave(&scope);
    return answer;
}

/* Exported symbols: which real function a call site belongs to, remembered by return address. A reader that
 * sees an entry change under its hands takes the slow way. */
#define SITES 4096

static struct site {
    _Atomic uint32_t sequence; /* odd while it is written */
    _Atomic uint32_t generation;
    _Atomic uint64_t key;
    _Atomic(void *) real;
    _Atomic(const struct ms_gpu *) gpu;
} sites[SITES];
_Atomic uint32_t ms_resolve_generation;

static inline bool site_read(struct site *site, uint64_t key, struct ms_target *target_p)
{
    uint32_t before = atomic_load_explicit(&site->sequence, memory_order_acquire);

    if ((before & 1) || atomic_load_explicit(&site->key, memory_order_relaxed) != key ||
        atomic_load_explicit(&site->generation, memory_order_relaxed) !=
            atomic_load_explicit(&ms_resolve_generation, memory_order_relaxed))
        return false;
    target_p->real = atomic_load_explicit(&site->real, memory_order_relaxed);
    target_p->gpu = atomic_load_explicit(&site->gpu, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&site->sequence, memory_order_relaxed) == before;
}

/* Under the resolve lock: there is one writer. */
static void site_write_locked(struct site *site, uint64_t key, const struct ms_target *target)
{
    uint32_t sequence = atomic_load_explicit(&site->sequence, memory_order_relaxed);

    atomic_store_explicit(&site->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&site->key, key, memory_order_relaxed);
    atomic_store_explicit(&site->generation, atomic_load(&ms_resolve_generation), memory_order_relaxed);
    atomic_store_explicit(&site->real, target->real, memory_order_relaxed);
    atomic_store_explicit(&site->gpu, target->gpu, memory_order_relaxed);
    atomic_store_explicit(&site->sequence, sequence + 2, memory_order_release);
}

static MS_NOINLINE struct ms_target resolve_slowly(enum ms_row row, const void *caller,
                                                   enum ms_version_node node, uint64_t key, struct site *site)
{
    struct ms_target target;
    struct ms_hook_scope scope;
    bool active;

    if (ms_thread.depth > 0) /* a signal handler: this thread may hold the lock already */
        return ms_library_bind_lockless(row, (uintptr_t)caller, node);
    active = ms_init_active(); /* first of all, since a fork child has locks to forget */
    ms_hook_scope_enter(&scope);
    ms_lock(&ms_resolve_lock);
    ms_libraries_refresh_locked();
    target = ms_library_bind_locked(row, (uintptr_t)caller, node, false);
    if (target.real)
        site_write_locked(site, key, &target);
    ms_unlock(&ms_resolve_lock);
    if (target.real && active)
        ms_ledger_route(MS_ROUTE_EXPORTED);
    ms_hook_scope_leave(&scope);
    return target;
}

struct ms_target ms_resolve_exported(enum ms_row row, const void *caller, enum ms_version_node node)
{
    uint64_t key = ms_resolve_key(row, caller, node);
    struct site *site = &sites[(key * 0x9e3779b97f4a7c15u >> 40) % SITES];
    struct ms_target target;

    return MS_LIKELY(site_read(site, key, &target)) ? target : resolve_slowly(row, caller, node, key, site);
}

/* A signal handler's call finds no entry that is half written, and writes none into its middle: the key is
 * first and last, and below memshim's own code nothing is kept. */
struct ms_target ms_resolve_and_keep(enum ms_row row, const void *caller, enum ms_version_node node)
{
    uint32_t generation = atomic_load_explicit(&ms_resolve_generation, memory_order_acquire);
    struct ms_target target = ms_resolve_exported(row, caller, node);
    struct ms_kept_site *kept;

    if (!target.real || ms_thread.depth > 0)
        return target;
    ms_guard_enter();
    kept = ms_kept_site_mine(row);
    if (kept) {
        kept->key = 0;
        atomic_signal_fence(memory_order_seq_cst);
        if (kept->target.real != target.real)
            kept->word = 0;
        kept->target = target;
        kept->generation = generation;
        atomic_signal_fence(memory_order_seq_cst);
        kept->key = ms_resolve_key(row, caller, node);
    }
    ms_guard_leave();
    return target;
}

bool ms_resolve_keep(enum ms_row row, const void *caller, enum ms_version_node node)
{
    ms_resolve_and_keep(row, caller, node);
    return ms_kept_site(row)->key == ms_resolve_key(row, caller, node);
}

void ms_resolve_unloaded(void)
{
    atomic_fetch_add(&ms_resolve_generation, 1);
}

void ms_resolve_reset(void)
{
    ms_lock_reset(&ms_resolve_lock);
    ms_resolve_unloaded();
}
MS_AT_FORK(MS_FORK_HOOKS, ms_resolve_reset);
