/* mstx.c - memshim as what MSTX calls an injection: its ranges and marks are phases.
 *
 * Floor 3. MSTX is a header that is compiled into programs, and into libms_tools_ext.so. At the first call
 * each such object looks up InitInjectionMstx, among all that is loaded or in the library that
 * MSTX_INJECTION_PATH names, and has it fill in the places of its functions; what is not filled in does
 * nothing and answers 0. The vendor's profiler is such a tool and is found in the same way, so the one that
 * would have been found without memshim fills in first, and is called with all that the program says. Its
 * answers are the program's; where it has none (0, as where nobody profiles), numbers and handles are ours,
 * which it is not asked about.
 *
 * One tool stands behind our functions, that of the first object: another object for which there is another
 * is left to it. Any thread; no lock is held across a tool's function. */
#include <dlfcn.h>

#include "vendor/abi/mstx.h"
#include "hooks/observe/phases.h"
#include "hooks/lookup/resolve.h"

MS_EXPORT int InitInjectionMstx(ms_mstx_tables_t tables);

enum { PLACES = 6, DOMAINS = 256 };
/* In numbers and handles of ours: no address has it, and no number that counts ranges. */
#define OURS (UINT64_C(1) << 63)

static bool is_settled;
static _Atomic(ms_mstx_function_t) tool_core[PLACES], tool_domain[PLACES];
static struct ms_phase_number numbers[MS_PHASE_OPENS];

/* The names of domains, by the tool's handles of them. Calls in domains beyond these are told without a
 * domain. */
static struct {
    _Atomic uintptr_t handle;
    _Atomic uint32_t text;
} domains[DOMAINS];

#define TOOL(table, place, result, ...) ((result(*)(__VA_ARGS__))atomic_load(&(table)[place]))

static bool mstx_is_ours(uint64_t number)
{
    return number & OURS;
}

static bool is_our_handle(const void *handle)
{
    return mstx_is_ours((uintptr_t)handle);
}

static void note_domain(const void *handle, uint32_t text)
{
    for (unsigned i = 0; i < DOMAINS; i++) {
        uintptr_t held = 0;
        if (atomic_compare_exchange_strong(&domains[i].handle, &held, (uintptr_t)handle) ||
            held == (uintptr_t)handle) {
            atomic_store(&domains[i].text, text);
            return;
        }
    }
}

static uint32_t mstx_text_of(const void *handle)
{
    if (is_our_handle(handle))
        return (uint32_t)(uintptr_t)handle;
    for (unsigned i = 0; handle && i < DOMAINS; i++) {
        uintptr_t held = atomic_load(&domains[i].handle);
        if (held == (uintptr_t)handle)
            return atomic_load(&domains[i].text);
        if (!held)
            break;
    }
    return 0;
}

static void tell_mark(uint32_t domain, const char *message)
{
    MS_PHASES_WITHIN ms_phase_mark(MS_PHASE_MSTX, domain, ms_phase_text(message));
}

/* The program's number of a range that is `theirs` to the tool. */
static uint64_t tell_start(uint32_t domain, const char *message, uint64_t theirs)
{
    struct ms_hook_scope scope;
    if (!ms_phases_enter(&scope))
        return theirs;
    uint64_t phase = ms_phase_begin(MS_PHASE_MSTX, domain, ms_phase_text(message));
    if (theirs)
        ms_phase_number_keep(numbers, theirs, phase);
    ms_hook_scope_leave(&scope);
    return theirs || !phase ? theirs : phase | OURS;
}

static void tell_end(uint64_t id)
{
    struct ms_hook_scope scope;
    if (!id || !ms_phases_enter(&scope))
        return;
    uint64_t phase = ms_phase_number_take(numbers, id);
    ms_phase_end(phase || !mstx_is_ours(id) ? phase : id & ~OURS);
    ms_hook_scope_leave(&scope);
}

static void mstx_mark(const char *message, void *stream)
{
    void (*tool)(const char *, void *) = TOOL(tool_core, MS_MSTX_MARK_A, void, const char *, void *);
    tell_mark(0, message);
    if (tool)
        tool(message, stream);
}

static uint64_t mstx_start(const char *message, void *stream)
{
    uint64_t (*tool)(const char *, void *) =
        TOOL(tool_core, MS_MSTX_RANGE_START_A, uint64_t, const char *, void *);
    return tell_start(0, message, tool ? tool(message, stream) : 0);
}

static void mstx_end(uint64_t id)
{
    void (*tool)(uint64_t) = TOOL(tool_core, MS_MSTX_RANGE_END, void, uint64_t);
    tell_end(id);
    if (tool && !mstx_is_ours(id))
        tool(id);
}

static void *domain_create(const char *name)
{
    void *(*tool)(const char *) = TOOL(tool_domain, MS_MSTX_DOMAIN_CREATE_A, void *, const char *);
    void *handle = tool ? tool(name) : NULL;
    struct ms_hook_scope scope;
    if (!ms_phases_enter(&scope))
        return handle;
    uint32_t text = ms_phase_text(name);
    if (handle)
        note_domain(handle, text);
    else
        handle = (void *)(uintptr_t)(OURS | text);
    ms_hook_scope_leave(&scope);
    return handle;
}

static void domain_destroy(void *domain)
{
    void (*tool)(void *) = TOOL(tool_domain, MS_MSTX_DOMAIN_DESTROY, void, void *);
    if (tool && !is_our_handle(domain))
        tool(domain);
}

static void domain_mark(void *domain, const char *message, void *stream)
{
    void (*tool)(void *, const char *, void *) =
        TOOL(tool_domain, MS_MSTX_DOMAIN_MARK_A, void, void *, const char *, void *);
    tell_mark(mstx_text_of(domain), message);
    if (tool && !is_our_handle(domain))
        tool(domain, message, stream);
}

static uint64_t domain_start(void *domain, const char *message, void *stream)
{
    uint64_t (*tool)(void *, const char *, void *) =
        TOOL(tool_domain, MS_MSTX_DOMAIN_RANGE_START_A, uint64_t, void *, const char *, void *);
    uint64_t theirs = tool && !is_our_handle(domain) ? tool(domain, message, stream) : 0;
    return tell_start(mstx_text_of(domain), message, theirs);
}

static void domain_end(void *domain, uint64_t id)
{
    void (*tool)(void *, uint64_t) = TOOL(tool_domain, MS_MSTX_DOMAIN_RANGE_END, void, void *, uint64_t);
    tell_end(id);
    if (tool && !is_our_handle(domain) && !mstx_is_ours(id))
        tool(domain, id);
}

static const ms_mstx_function_t our_core[PLACES] = {
    [MS_MSTX_MARK_A] = (ms_mstx_function_t)mstx_mark,
    [MS_MSTX_RANGE_START_A] = (ms_mstx_function_t)mstx_start,
    [MS_MSTX_RANGE_END] = (ms_mstx_function_t)mstx_end,
};
static const ms_mstx_function_t our_domain[PLACES] = {
    [MS_MSTX_DOMAIN_CREATE_A] = (ms_mstx_function_t)domain_create,
    [MS_MSTX_DOMAIN_DESTROY] = (ms_mstx_function_t)domain_destroy,
    [MS_MSTX_DOMAIN_MARK_A] = (ms_mstx_function_t)domain_mark,
    [MS_MSTX_DOMAIN_RANGE_START_A] = (ms_mstx_function_t)domain_start,
    [MS_MSTX_DOMAIN_RANGE_END] = (ms_mstx_function_t)domain_end,
};

/* The places of an object's functions that are ours to fill, and what lay there before any tool came. */
struct object {
    ms_mstx_function_t *core[PLACES], *domain[PLACES];
    ms_mstx_function_t core_before[PLACES], domain_before[PLACES];
};

static void read_places(ms_mstx_tables_t tables, int module, const ms_mstx_function_t *ours,
                        ms_mstx_function_t **places, ms_mstx_function_t *before)
{
    ms_mstx_function_t **table = NULL;
    unsigned size = 0;
    if (tables(module, &table, &size) != MS_MSTX_SUCCESS || !table)
        return;
    for (unsigned i = 1; i < PLACES && i < size; i++) {
        places[i] = ours[i] ? table[i] : NULL;
        before[i] = places[i] ? *places[i] : NULL;
    }
}

/* The function that a tool has put there; NULL if none has. */
static ms_mstx_function_t put_by_tool(ms_mstx_function_t *const *places, const ms_mstx_function_t *before,
                                      unsigned i)
{
    return places[i] && *places[i] != before[i] ? *places[i] : NULL;
}

/* True if the tool behind our functions is the object's, or none is behind either. */
static bool has_our_tool(const struct object *object)
{
    for (unsigned i = 1; i < PLACES; i++) {
        if ((object->core[i] &&
             put_by_tool(object->core, object->core_before, i) != atomic_load(&tool_core[i])) ||
            (object->domain[i] &&
             put_by_tool(object->domain, object->domain_before, i) != atomic_load(&tool_domain[i])))
            return false;
    }
    return true;
}

/* Settles, once, which tool is behind our functions. True if the object's functions may be ours. */
static bool mstx_settle(const struct object *object)
{
    bool may_fill;
    ms_lock(&ms_resolve_lock);
    for (unsigned i = 1; i < PLACES && !is_settled; i++) {
        atomic_store(&tool_core[i], put_by_tool(object->core, object->core_before, i));
        atomic_store(&tool_domain[i], put_by_tool(object->domain, object->domain_before, i));
    }
    is_settled = true;
    may_fill = has_our_tool(object);
    ms_unlock(&ms_resolve_lock);
    return may_fill;
}

static void mstx_fill(const struct object *object)
{
    for (unsigned i = 1; i < PLACES; i++) {
        if (object->core[i])
            *object->core[i] = our_core[i];
        if (object->domain[i])
            *object->domain[i] = our_domain[i];
    }
}

/* The tool that MSTX would have found without us. */
static ms_mstx_init_t find_tool(void)
{
    void *found;
    ms_resolve_loader();
    found = ms_real_dlsym(RTLD_NEXT, "InitInjectionMstx");
    return ms_is_ours((uintptr_t)found) ? NULL : (ms_mstx_init_t)found;
}

int InitInjectionMstx(ms_mstx_tables_t tables)
{
    struct object object = {0};
    struct ms_hook_scope scope;
    ms_mstx_init_t tool = find_tool();
    bool may_fill = tables && ms_phases_is_preloaded() && ms_init_active() && ms_thread.depth == 0;
    int status = MS_MSTX_FAIL;
    if (may_fill) {
        read_places(tables, MS_MSTX_MODULE_CORE, our_core, object.core, object.core_before);
        read_places(tables, MS_MSTX_MODULE_DOMAIN, our_domain, object.domain, object.domain_before);
    }
    if (tool)
        status = tool(tables);
    if (!may_fill || (tool && status != MS_MSTX_SUCCESS))
        return status;
    ms_hook_scope_enter(&scope);
    if (mstx_settle(&object)) {
        mstx_fill(&object);
        status = MS_MSTX_SUCCESS;
    }
    ms_hook_scope_leave(&scope);
    return status;
}
