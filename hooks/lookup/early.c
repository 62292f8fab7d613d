/* early.c - the way of dlsym: whose name is it, and is it ours to answer?
 *
 * Runs before anything else in the process does: a sanitizer in the host asks dlsym before its own memory is
 * there. So this file, loader.c and elf.c are built without instrumentation and call no function that
 * somebody may replace; no lock, no allocation. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "base/objects/elf.h"
#include "base/thread/guard.h"
#include "hooks/lookup/entry.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "hooks/lookup/unknown.h"
#include "record/live/uses.h"

/* Names: a hash table built once from the rows. Building it twice at once writes the same words. */
#define NAME_SLOTS 2048
_Static_assert(MS_ROW_COUNT <= NAME_SLOTS / 2, "a search ends at an empty place");

static _Atomic uint16_t names[NAME_SLOTS]; /* row + 1 */
static _Atomic bool names_built;

static unsigned name_hash(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % NAME_SLOTS;
}

static void build_names(void)
{
    for (unsigned row = 0; row < MS_ROW_COUNT; row++) {
        unsigned i = name_hash(ms_rows[row]->symbol);
        while (atomic_load_explicit(&names[i], memory_order_relaxed) &&
               atomic_load_explicit(&names[i], memory_order_relaxed) != row + 1)
            i = (i + 1) % NAME_SLOTS;
        atomic_store_explicit(&names[i], (uint16_t)(row + 1), memory_order_relaxed);
    }
    atomic_store_explicit(&names_built, true, memory_order_release);
}

/* The two letters that names of some interface begin with (cu and cuda, hip, nccl, and pncclX beside it,
 * roctx, acl, nvml, and C++'s names): what others ask for, and that is nearly all, is told by them. */
static bool is_worth_a_search(const char *name)
{
    static const char begins[][2] = {{'c', 'u'}, {'h', 'i'}, {'n', 'c'}, {'p', 'n'},
                                     {'r', 'o'}, {'a', 'c'}, {'n', 'v'}, {'_', 'Z'}};

    for (unsigned i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        if (name[0] == begins[i][0] && name[1] == begins[i][1])
            return true;
    }
    return false;
}

static int row_of_name(const char *name)
{
    uint16_t held;

    if (!is_worth_a_search(name))
        return -1;
    if (!atomic_load_explicit(&names_built, memory_order_acquire))
        build_names();
    for (unsigned i = name_hash(name); (held = atomic_load_explicit(&names[i], memory_order_relaxed));
         i = (i + 1) % NAME_SLOTS) {
        if (ms_elf_same_name(ms_rows[held - 1]->symbol, name))
            return held - 1;
    }
    return -1;
}

static bool may_capture(const char *name, enum ms_api *api_p)
{
    return ms_unknown_has_prefix(name) && ms_init_active() && ms_unknown_is(name, api_p);
}

static struct ms_verdict way_to_capture(void *handle, const char *name, const char *version, enum ms_api api)
{
    void *answer;

    if (handle == RTLD_NEXT) {
        ms_unknown_note(name);
        return (struct ms_verdict){0, NULL};
    }
    answer = ms_resolve_unseen_symbol(handle, name, version, api);
    return (struct ms_verdict){answer != NULL, answer};
}

struct ms_verdict ms_enter_dlsym(void *handle, const char *name, const char *version, const void *caller)
{
    struct ms_verdict leave = {0, NULL};
    enum ms_api api;
    int row;

    if (!__atomic_load_n(&ms_real_dlsym, __ATOMIC_ACQUIRE))
        ms_resolve_loader();
    if (!name || ms_thread.depth > 0 || ms_is_second)
        return leave;
    if ((row = row_of_name(name)) < 0)
        return may_capture(name, &api) ? way_to_capture(handle, name, version, api) : leave;
    if (ms_rows[row]->class == MS_CLASS_USE && !(ms_init_active() && ms_uses_wanted()))
        return leave;
    if (handle == RTLD_NEXT) {
        ms_init_note_next(row);
        return leave;
    }
    return (struct ms_verdict){1, ms_resolve_symbol(handle, name, version, caller, row)};
}
