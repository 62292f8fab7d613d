/* unknown.c - see unknown.h.
 *
 * Ways are given out under the resolve lock and never taken back: the program may keep one for ever. No
 * allocation. */
#include "hooks/lookup/unknown.h"

#include <stdio.h>
#include <string.h>

#include "base/objects/elf.h"
#include "base/log.h"
#include "hooks/lookup/resolve.h"

enum { NAME_BYTES = 64 };

void *ms_trampoline_reals[MS_TRAMPOLINES];
_Atomic uint32_t ms_trampoline_called[MS_TRAMPOLINES];
static char names[MS_TRAMPOLINES][NAME_BYTES];
static char noted[NAME_BYTES]; /* the first that was not called by a way */
static atomic_bool any_noted;  /* true once that is written */
atomic_bool ms_unknown_told;

/* The libraries that have such functions. The CUDA runtime gets all of its own from the driver. */
static const char *const holders[MS_API_COUNT] = {
    [MS_API_CUDA_DRIVER] = "libcuda.so", [MS_API_HIP] = "libamdhip64.so"};

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A later version of what is known to begin nothing has its name, and more. */
static bool is_passed(const char *name)
{
    static const char *const passed[] = {
#define MS_HOOK(result, symbol, ...)
#define MS_HOOK0(result, symbol, ...)
#define MS_PASS(symbol, class, reason) #symbol,
#include "hooks/table/cuda_driver.def"
#include "hooks/table/hip.def"
#undef MS_HOOK
#undef MS_HOOK0
#undef MS_PASS
    };

    for (unsigned i = 0; i < MS_ARRAY_LEN(passed); i++) {
        size_t length = strlen(passed[i]);
        if (strncmp(name, passed[i], length) == 0 && (!name[length] || name[length] == '_'))
            return true;
    }
    return false;
}

static bool has_row(const char *name)
{
    for (unsigned row = 0; row < MS_ROW_COUNT; row++) {
        const struct ms_row_info *r = ms_rows[row];
        if (strcmp(r->symbol, name) == 0 || (r->lookup && strcmp(r->lookup, name) == 0))
            return true;
    }
    return false;
}

bool ms_unknown_is(const char *name, enum ms_api *api_p)
{
    *api_p = name[0] == 'h' ? MS_API_HIP : MS_API_CUDA_DRIVER;
    return ms_unknown_has_prefix(name) && strstr(name, "apture") && !has_row(name) && !is_passed(name);
}

void ms_unknown_note(const char *name)
{
    static atomic_bool taken;

    if (!atomic_exchange(&taken, true)) {
        snprintf(noted, sizeof(noted), "%s", name);
        atomic_store_explicit(&any_noted, true, memory_order_release);
    }
    atomic_store(&ms_captures_unseen, 1);
}

void *ms_unknown_trampoline_locked(void *pointer, const char *name)
{
    for (unsigned k = 0; k < MS_TRAMPOLINES; k++) {
        if (ms_trampoline_reals[k] && ms_trampoline_reals[k] != pointer)
            continue;
        if (!ms_trampoline_reals[k])
            snprintf(names[k], sizeof(names[k]), "%s", name);
        __atomic_store_n(&ms_trampoline_reals[k], pointer, __ATOMIC_RELEASE);
        return (void *)(uintptr_t)&ms_trampolines[k * MS_TRAMPOLINE_BYTES];
    }
    ms_unknown_note(name);
    return pointer;
}

static void look_at_import(const char *name, void *library)
{
    enum ms_api api;

    if (ms_unknown_is(name, &api) && holders[api] == library)
        ms_unknown_note(name);
}

void ms_unknown_look_at(const struct ms_elf *elf)
{
    const char *needed;

    for (unsigned i = 0; (needed = ms_elf_needed(elf, i)); i++) {
        for (unsigned api = 0; api < MS_API_COUNT; api++) {
            if (holders[api] && begins_with(needed, holders[api]))
                ms_elf_each_import(elf, look_at_import, (void *)(uintptr_t)holders[api]);
        }
    }
}

static const char *consequence(const char *name)
{
    return name[0] == 'h' ? "what is freed is used again when the program has waited for the device"
                          : "an event in each stream takes the place of one over the context";
}

static void unknown_tell(const char *name)
{
    ms_diagnostic(
        MS_LOG_WARN, "pool",
        "%s was called, which may begin a capture and of which memshim knows no more: from now on %s", name,
        consequence(name));
}

void ms_unknown_tell_slowly(void)
{
    bool any = false;

    for (unsigned k = 0; k < MS_TRAMPOLINES; k++) {
        if (atomic_load_explicit(&ms_trampoline_called[k], memory_order_acquire)) {
            any = true;
            unknown_tell(names[k]);
        }
    }
    bool unnamed = atomic_load_explicit(&any_noted, memory_order_acquire);
    atomic_store_explicit(&ms_unknown_told, any || unnamed, memory_order_relaxed);
    if (unnamed)
        ms_diagnostic(
            MS_LOG_WARN, "pool",
            "%s may be called unseen, which may begin a capture and of which memshim knows no more: %s",
            noted, consequence(noted));
}
